// SPDX-License-Identifier: Apache-2.0

#include "driver/launch/launch_check.h"

#include "driver/context/device.h"
#include "driver/launch/occupancy.h"

namespace cudasim::driver {
namespace {

constexpr Dimensions kMaxGrid = {0x7fffffff, 65535, 65535};
constexpr Dimensions kMaxBlock = {1024, 1024, 64};

bool IsWithin(const Dimensions& size, const Dimensions& limit) {
  return !size.AnyZero() && size.x <= limit.x && size.y <= limit.y && size.z <= limit.z;
}

Dimensions ToDimensions(const unsigned from[3]) { return {from[0], from[1], from[2]}; }

// A block of one thread stands for the one that the function requires.
bool IsRequired(const FunctionTraits& traits, const Dimensions& block) {
  const Dimensions required = ToDimensions(traits.required_block);
  return required.AllZero() || block == required || block == Dimensions{1, 1, 1};
}

unsigned SettingOf(const Function& function, CUfunction_attribute attribute) {
  return static_cast<unsigned>(function.settings->Of(function.entry->traits, attribute));
}

Dimensions RequiredCluster(const Function& function) {
  return {SettingOf(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
          SettingOf(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
          SettingOf(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
}

// More than the largest cluster is found when it runs, if more than the portable is allowed.
bool IsRank(const Function& function, unsigned long long blocks) {
  const unsigned max = function.entry->traits.max_cluster_rank;
  return (max == 0 || blocks <= max) && (blocks <= kPortableCluster || AllowsAnyCluster(function));
}

CUresult CheckCooperative(const Function& function, const LaunchConfig& config,
                          unsigned multiprocessors) {
  const auto threads = static_cast<unsigned>(config.block.Count());
  const unsigned blocks = ActiveBlocksOf(function, threads, config.shared_bytes);
  const bool fits = config.grid.Count() <= 1ull * blocks * multiprocessors;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

}  // namespace

bool LacksCluster(const Function& function, const Dimensions& cluster) {
  return cluster.AllZero() && function.entry->traits.must_have_cluster;
}

Dimensions BlockOf(const Function& function, const LaunchConfig& config) {
  const Dimensions required = ToDimensions(function.entry->traits.required_block);
  return required.AllZero() ? config.block : required;
}

CUresult FindCluster(const Function& function, const LaunchConfig& config, Dimensions* cluster) {
  const Dimensions required = RequiredCluster(function);
  const bool contradicts = !config.cluster.AllZero() && config.cluster != required;
  if (!required.AllZero() && (required.AnyZero() || contradicts)) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  *cluster = required.AllZero() ? config.cluster : required;
  return CUDA_SUCCESS;
}

CUresult CheckCluster(const Function& function, const LaunchConfig& config) {
  Dimensions cluster;
  const CUresult code = FindCluster(function, config, &cluster);
  if (code != CUDA_SUCCESS) return code;
  if (cluster.AllZero()) {
    return config.preferred_cluster.AllZero() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const bool fits = cluster.Divides(config.grid) && IsRank(function, cluster.Count());
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult CheckBlocks(const Function& function, const LaunchConfig& config) {
  const FunctionTraits& traits = function.entry->traits;
  const bool fits = IsWithin(config.grid, kMaxGrid) && IsWithin(config.block, kMaxBlock) &&
                    config.block.Count() <= traits.max_threads && IsRequired(traits, config.block);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckResources(const Function& function, const LaunchConfig& config,
                        unsigned multiprocessors) {
  const CUresult code = CheckCluster(function, config);
  if (code != CUDA_SUCCESS) return code;
  if (config.shared_bytes > MaxDynamicSharedOf(function)) return CUDA_ERROR_INVALID_VALUE;
  return config.is_cooperative ? CheckCooperative(function, config, multiprocessors) : CUDA_SUCCESS;
}

CUresult CheckRun(const Function& function, const LaunchConfig& config) {
  const FunctionTraits& traits = function.entry->traits;
  if (config.block.Count() > traits.MaxThreads()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  Dimensions cluster;
  const CUresult code = FindCluster(function, config, &cluster);
  if (code != CUDA_SUCCESS) return code;
  if (LacksCluster(function, cluster) || cluster.Count() > kLargestCluster) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
