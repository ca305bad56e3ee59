// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every example does before and after its own part: find the driver, say which one it is,
// and check at the end that nothing is left.

#ifndef CUGUEST_EXAMPLES_SUPPORT_EXAMPLE_H_
#define CUGUEST_EXAMPLES_SUPPORT_EXAMPLE_H_

#include <string>

#include "absl/status/status.h"
#include "cuguest/device.h"
#include "cuguest/objects/driver.h"

namespace support {

inline constexpr int kSkipped = 77;  // the exit code that Meson and automake read as "skipped"

// The example's own part. It returns an error if something that it needs failed.
using Demonstration = absl::Status (*)(const cuguest::ObjectDriver& driver, cuguest::Device device);

// Runs `demonstration` on the first device and returns main()'s exit code: 0 if every check
// passed, 1 if not, 77 without a driver or a device.
[[nodiscard]] int RunExample(const char* question, Demonstration demonstration);

// The simulation does not execute kernels. Registers the host functions that it runs instead.
// Does nothing on a real driver.
void RegisterHostKernels();

// The path of `file` in the directory of the running program.
[[nodiscard]] std::string Beside(const std::string& file);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_EXAMPLE_H_
