// SPDX-License-Identifier: Apache-2.0

#include "driver/launch/launch_config.h"

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

}  // namespace cudasim::driver
