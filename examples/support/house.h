// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A host with contexts of its own, and what examples check of results.

#ifndef CUGUEST_EXAMPLES_SUPPORT_HOUSE_H_
#define CUGUEST_EXAMPLES_SUPPORT_HOUSE_H_

#include <cuda.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/device_view.h"
#include "cuguest/driver.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace support {

// Two contexts of a host, X and A, on a device whose primary context is P.
struct House {
  [[nodiscard]] static absl::StatusOr<House> Create(const cuguest::Driver& driver,
                                                    cuguest::Device device);

  // Prints the calling thread's stack, and `remark` or whether P is active.
  void Show(const std::string& when, const std::string& remark = "") const;

  const cuguest::Driver& driver;
  cuguest::Device device;
  HostContext x;
  HostContext a;
  CUcontext p;
  Cast cast;
};

// Whether device memory has these elements. Waits for no stream.
[[nodiscard]] bool Holds(const cuguest::DeviceView<const float>& view,
                         const std::vector<float>& expected);

// Prints that `what` was refused, and why. Returns whether the status has `code`, and `words` in
// its message.
[[nodiscard]] bool IsRefused(const std::string& what, const absl::Status& status,
                             absl::StatusCode code, const std::string& words = "");

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_HOUSE_H_
