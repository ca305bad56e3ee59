// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the libraries of these examples compute: y = a * x + y, with the kernel of kernels/saxpy.cu.

#ifndef CUGUEST_EXAMPLES_GUEST_SAXPY_H_
#define CUGUEST_EXAMPLES_GUEST_SAXPY_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/status.h"
#include "kernels/saxpy.h"

namespace guest {

using Signal = std::vector<float>;

// Loaded once, by the first launch, for every context and every incarnation of it.
inline cuguest::Module::Once saxpy_code({cuguest_kernels::saxpy_fatbin,
                                         cuguest_kernels::saxpy_fatbin_size},
                                        "saxpy");
inline cuguest::Kernel::Once saxpy_kernel(saxpy_code, "saxpy");

inline absl::Status LaunchSaxpy(const cuguest::StreamRef& stream, float a,
                                const cuguest::DeviceView<const float>& x,
                                const cuguest::DeviceView<float>& y) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const saxpy, saxpy_kernel.Get());
  return cuguest::LaunchForElements(*saxpy, y.size(), stream, static_cast<unsigned>(y.size()), a, x,
                                    y);
}

// Of numbers in the host's memory, in the stream's context. Waits for the result.
inline absl::StatusOr<Signal> Saxpy(const cuguest::StreamRef& stream, float a, const Signal& x,
                                    const Signal& y) {
  using Buffer = cuguest::DeviceBuffer<float>;
  CUGUEST_ASSIGN_OR_RETURN(const Buffer device_x, Buffer::CopyOfAsync(stream, x));
  CUGUEST_ASSIGN_OR_RETURN(Buffer device_y, Buffer::CopyOfAsync(stream, y));
  CUGUEST_RETURN_IF_ERROR(LaunchSaxpy(stream, a, device_x.view(), device_y.view()));
  return cuguest::Download(device_y.view(), stream);
}

}  // namespace guest

#endif  // CUGUEST_EXAMPLES_GUEST_SAXPY_H_
