// SPDX-License-Identifier: Apache-2.0
//
// What every example does before and after its own part: find the driver, say which
// one it is, and prove at the end that nothing was left behind.

#ifndef CUGUEST_EXAMPLES_SUPPORT_EXAMPLE_H_
#define CUGUEST_EXAMPLES_SUPPORT_EXAMPLE_H_

#include "absl/status/status.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"

namespace support {

inline constexpr int kSkipped = 77;  // the exit code that Meson and automake read as "skipped"

// The part that is the example's own. An error ends it: something it needs failed.
using Demonstration = absl::Status (*)(const cuguest::Driver& driver, cuguest::Device device);

// Runs `demonstration` on the first device and returns main()'s exit code: 0 if all it
// claims is so, 1 if not, 77 without a driver or device.
[[nodiscard]] int RunExample(const char* question, Demonstration demonstration);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_EXAMPLE_H_
