// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a launch, before the driver sees it.

#ifndef CUGUEST_LIB_MODULE_LAUNCH_CHECK_H_
#define CUGUEST_LIB_MODULE_LAUNCH_CHECK_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/driver.h"
#include "cuguest/export.h"
#include "cuguest/launch.h"
#include "cuguest/param_layout.h"
#include "lib/module/code.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// launch "saxpy"
std::string LaunchText(const KernelState& kernel);

// Zero wraps around, and is not within either.
inline bool IsWithin(const Dim3& size, const int (&most)[3]) {
  return size.x - 1 < static_cast<unsigned>(most[0]) &&
         size.y - 1 < static_cast<unsigned>(most[1]) && size.z - 1 < static_cast<unsigned>(most[2]);
}

inline std::uint64_t ThreadsOf(const Dim3& block) {
  return std::uint64_t{block.x} * block.y * block.z;
}

inline bool FitsLimits(const LaunchShape& shape, const FunctionInContext& function) {
  const DeviceLimits& device = *function.device;
  return IsWithin(shape.grid, device.max_grid) && IsWithin(shape.block, device.max_block) &&
         ThreadsOf(shape.block) <= static_cast<std::uint64_t>(function.max_threads_per_block) &&
         shape.shared_bytes <= static_cast<std::size_t>(function.max_dynamic_shared_bytes.load(
                                   std::memory_order_relaxed));
}

// A launch whose shape is not within the limits, as far as they are known. The limit that may
// have been changed is asked again first: it may be within them after all.
absl::Status RefuseShape(const Driver& driver, const KernelState& kernel, const LaunchShape& shape,
                         FunctionInContext* function);

// A kernel, and what the driver can be asked about it.
struct CheckedKernel {
  const Driver& driver;
  KernelState& kernel;
  CUfunction function;
};

// What these find right, they keep in the kernel's AcceptedParams.
absl::Status CheckValues(const CheckedKernel& checked, const ParamLayoutView& layout);
absl::Status CheckPacked(const CheckedKernel& checked, const ParamLayoutView& layout);
absl::Status CheckCount(const CheckedKernel& checked, std::size_t count);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_LAUNCH_CHECK_H_
