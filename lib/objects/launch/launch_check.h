// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Validates a launch before it reaches the driver.

#ifndef CUGUEST_LIB_OBJECTS_LAUNCH_LAUNCH_CHECK_H_
#define CUGUEST_LIB_OBJECTS_LAUNCH_LAUNCH_CHECK_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/param_buffer.h"
#include "lib/objects/code/code.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Zero wraps around, and is not within either.
inline bool IsWithin(const LaunchShape::Dim3& size, const int (&most)[3]) {
  return size.x - 1 < static_cast<unsigned>(most[0]) &&
         size.y - 1 < static_cast<unsigned>(most[1]) && size.z - 1 < static_cast<unsigned>(most[2]);
}

inline std::uint64_t ThreadsOf(const LaunchShape::Dim3& block) {
  return std::uint64_t{block.x} * block.y * block.z;
}

// Whether the grid is a multiple of the cluster that the kernel requires, and the launch asks for
// no other one.
inline bool FitsCluster(const LaunchShape& shape, std::uint64_t required) {
  // Set by cuFuncSetAttribute one by one, one may be missing: no grid is right then.
  const auto divides = [required](unsigned blocks, int dimension) {
    const unsigned size = SizeOf(required, dimension);
    return size != 0 && blocks % size == 0;
  };
  if (shape.cluster.has_value() &&
      (ThreadsOf(*shape.cluster) > 0xffff ||
       PackSizes(shape.cluster->x, shape.cluster->y, shape.cluster->z) != required)) {
    return false;
  }
  return divides(shape.grid.x, 0) && divides(shape.grid.y, 1) && divides(shape.grid.z, 2);
}

// Whether the block is the one that the kernel requires. The driver takes a block of one thread
// for it, too (cudasim/test/launch_facts_test.cc). Its sizes must be within the device's.
inline bool FitsBlock(const LaunchShape::Dim3& block, std::uint64_t required) {
  return PackSizes(block.x, block.y, block.z) == required || ThreadsOf(block) == 1;
}

inline bool FitsLimits(const LaunchShape& shape, const FunctionInContext& function) {
  const DeviceLimits& device = function.device;
  const std::uint64_t cluster = function.required_cluster.load(std::memory_order_relaxed);
  return IsWithin(shape.grid, device.max_grid) && IsWithin(shape.block, device.max_block) &&
         ThreadsOf(shape.block) <= static_cast<std::uint64_t>(function.max_threads_per_block) &&
         shape.shared_bytes <= static_cast<std::size_t>(function.max_dynamic_shared_bytes.load(
                                   std::memory_order_relaxed)) &&
         (__builtin_expect(function.required_block == 0, 1) ||
          FitsBlock(shape.block, function.required_block)) &&
         (__builtin_expect(cluster == 0, 1) || FitsCluster(shape, cluster));
}

// Whether what FitsLimits() has compared can have been changed by others: what would have the
// driver refuse the launch, and lose the stream's capture.
inline bool CanHaveChanged(const LaunchShape& shape, const FunctionInContext& function) {
  return shape.shared_bytes != 0 || function.device.cluster_launch != 0;
}

// Whether SetMaxDynamicSharedBytes() has allowed the launch its shared memory.
inline bool WasAllowed(const LaunchShape& shape, const FunctionInContext& function) {
  return shape.shared_bytes != 0 &&
         shape.shared_bytes <= static_cast<std::size_t>(function.allowed_shared_bytes.load());
}

// A launch whose shape is not within the limits, as far as they are known. Limits that may
// have been changed are asked again first: it may be within them after all.
absl::Status RefuseShape(const KernelInContext& launched, const LaunchShape& shape);

// The first of the parameters that is not the kernel's, as far as the caller tells what they are;
// params.count if there is none. In one piece each must lie where the kernel reads it, too. There
// are as many as the kernel takes.
inline std::size_t FirstWrong(const LaunchParams& params,
                              const KernelParams::Places& takes) noexcept {
  if (params.places == nullptr) return params.count;
  std::size_t i = 0;
  while (i < params.count && takes[i].size == params.places[i].size &&
         (params.extra == nullptr || takes[i].offset == params.places[i].offset)) {
    ++i;
  }
  return i;
}

// Refuses memory that the device of the launch does not reach.
absl::Status CheckDevices(const KernelInContext& launched, const LaunchParams& params);

// Whether the kernel is known to take such parameters.
inline bool TakesParams(const KernelState& kernel, const LaunchParams& params) noexcept {
  const KernelParams::Places* const takes = kernel.params.get();
  return takes != nullptr && takes->size() == params.count &&
         FirstWrong(params, *takes) == params.count;
}

// Where TakesParams() is false: the driver knows best, and what it says of the kernel's parameters
// is kept. Where it cannot say, all are right.
absl::Status CheckParams(const KernelInContext& launched, const LaunchParams& params);

// The parameters in `params` by their addresses, which are in `each`.
LaunchParams ParamsOneByOne(const ParamBuffer& params, std::vector<void*>* each);

// Whether cuLaunchKernel is enough.
inline bool IsPlain(const LaunchShape& shape) {
  return !shape.cluster.has_value() && !shape.cooperative && shape.attributes.size() == 0;
}

// What a shape is to cuLaunchKernelEx, if it passes CheckAttributes().
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

absl::Status CheckAttributes(const KernelInContext& launched, const LaunchShape& shape);

// How many clusters of that shape the device runs at once, by cuOccupancyMaxActiveClusters.
// The shape has one, and its context is current.
absl::StatusOr<int> CountClusters(const KernelInContext& launched, const LaunchShape& shape,
                                  const CUlaunchConfig& config);

// Whether the device has what the cluster or the cooperative grid needs.
absl::Status CheckConfig(const KernelInContext& launched, const LaunchShape& shape,
                         const StreamRef& stream, const CUlaunchConfig& config);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_LAUNCH_LAUNCH_CHECK_H_
