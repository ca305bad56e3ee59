// SPDX-License-Identifier: Apache-2.0
//
// What a shape is to cuLaunchKernelEx, and whether the device can do it.

#ifndef CUGUEST_LIB_LAUNCH_LAUNCH_CONFIG_H_
#define CUGUEST_LIB_LAUNCH_LAUNCH_CONFIG_H_

#include <cuda.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/driver.h"
#include "cuguest/export.h"
#include "cuguest/launch.h"
#include "lib/module/code.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Whether cuLaunchKernel is enough.
inline bool IsPlain(const LaunchShape& shape) {
  return !shape.cluster.has_value() && !shape.cooperative && shape.attributes.size() == 0;
}

// Of a shape that passes CheckAttributes().
class LaunchConfig {
 public:
  LaunchConfig(const LaunchShape& shape, CUstream stream);
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  [[nodiscard]] const CUlaunchConfig* get() const noexcept { return &config_; }

 private:
  std::vector<CUlaunchAttribute> attributes_;
  CUlaunchConfig config_ = {};
};

absl::Status CheckAttributes(const KernelState& kernel, const LaunchShape& shape);

// How many clusters of that shape the device runs at once, by cuOccupancyMaxActiveClusters.
// The shape has one, and its context is current.
absl::StatusOr<int> CountClusters(const Driver& driver, const KernelState& kernel,
                                  const LaunchShape& shape, const FunctionInContext& function,
                                  const CUlaunchConfig& config);

// Whether the device has what the cluster or the cooperative grid needs.
absl::Status CheckConfig(const Driver& driver, const KernelState& kernel, const LaunchShape& shape,
                         const StreamRef& stream, const FunctionInContext& function,
                         const CUlaunchConfig& config);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_LAUNCH_LAUNCH_CONFIG_H_
