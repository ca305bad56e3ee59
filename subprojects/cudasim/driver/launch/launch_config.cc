// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/launch/launch_config.h"

#include "driver/context/device.h"
#include "driver/launch/occupancy.h"
#include "driver/stream/event.h"

namespace cudasim::driver {
namespace {

CUresult Require(bool is_good) { return is_good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

template <typename Xyz>
Dimensions ToDimensions(const Xyz& from) {
  return {from.x, from.y, from.z};
}

// All zeros are none, but some are a mistake.
CUresult ReadCluster(const Dimensions& given, Dimensions* cluster) {
  if (given.AnyZero() && !given.AllZero()) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *cluster = given;
  return CUDA_SUCCESS;
}

CUresult ReadEvent(CUevent given, CUevent* event) {
  *event = given;
  return CheckUntimed(given);
}

bool IsPolicy(CUclusterSchedulingPolicy policy) {
  return policy >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT &&
         policy <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
}

bool IsDomain(CUlaunchMemSyncDomain domain) {
  return domain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT || domain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
}

// Measured on an H100, driver 580.159.04. Of an attribute given twice the last one counts.
CUresult ReadAttribute(const CUlaunchAttribute& attribute, LaunchConfig* config) {
  const CUlaunchAttributeValue& value = attribute.value;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      config->is_cooperative = value.cooperative != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      return ReadCluster(ToDimensions(value.clusterDim), &config->cluster);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      return ReadCluster(ToDimensions(value.preferredClusterDim), &config->preferred_cluster);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return Require(IsPolicy(value.clusterSchedulingPolicyPreference));
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return Require(IsDomain(value.memSyncDomain));
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return Require(value.sharedMemCarveout <= CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return ReadEvent(value.programmaticEvent.event, &config->events[0]);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return ReadEvent(value.launchCompletionEvent.event, &config->events[1]);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      config->is_updatable = value.deviceUpdatableKernelNode.deviceUpdatable != 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;  // what there is not, and what only streams have
  }
}

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

CUresult ReadLaunchConfig(const CUlaunchConfig& from, LaunchConfig* config) {
  config->grid = {from.gridDimX, from.gridDimY, from.gridDimZ};
  config->block = {from.blockDimX, from.blockDimY, from.blockDimZ};
  config->shared_bytes = from.sharedMemBytes;
  if (from.numAttrs > 0 && from.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < from.numAttrs; ++i) {
    const CUresult code = ReadAttribute(from.attrs[i], config);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

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
