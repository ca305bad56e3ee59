// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/dev_resource.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/primary.h"
#include "driver/panic.h"
#include "driver/process.h"

namespace cudasim::driver {
namespace {

// A partition is at least, and a multiple of, this many multiprocessors on a device
// of compute capability 9.0.
constexpr unsigned kPartition = 8;
// The same without the promise that they are scheduled together.
constexpr unsigned kLoosePartition = 2;
// Of multiprocessors that are scheduled together, on compute capability 9.0 (documented).
constexpr unsigned kMostCoscheduled = 32;

// CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG and CU_DEV_SM_RESOURCE_GROUP_BACKFILL of 13.1.
constexpr unsigned kQueueConfig = 1000;
constexpr unsigned kBackfill = 1;
constexpr int kNewer = 13010;  // a driver of which no GPU here has one

// Which split a resource came out of, which may not be split again: 0 is none.
using SplitNumber = unsigned;
std::atomic<SplitNumber> last_split{0};

SplitNumber SplitOf(const CUdevResource& resource) {
  SplitNumber split = 0;
  std::memcpy(&split, resource._internal_padding, sizeof(split));
  return split;
}

CUdevResource MakeResource(unsigned multiprocessors, SplitNumber split) {
  CUdevResource resource = {};
  if (multiprocessors == 0) return resource;  // CU_DEV_RESOURCE_TYPE_INVALID
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource._internal_padding, &split, sizeof(split));
  resource.sm.smCount = multiprocessors;
  if (split == 0) {
    resource.sm.minSmPartitionSize = kPartition;
    resource.sm.smCoscheduledAlignment = kPartition;
  }
  return resource;
}

// CUdevWorkqueueConfigResource, in a resource's union.
struct QueueConfig {
  CUdevice device;
  unsigned limit;
  unsigned scope;
};

bool IsQueueConfig(CUdevResourceType type) {
  return static_cast<unsigned>(type) == kQueueConfig && Process::DriverVersion() >= kNewer;
}

CUdevResource MakeResource(const QueueConfig& config) {
  CUdevResource resource = {};
  const unsigned type = kQueueConfig;
  std::memcpy(&resource.type, &type, sizeof(type));
  std::memcpy(&resource.sm, &config, sizeof(config));
  return resource;
}

CUresult GetResource(CUdevice device, const Partition& partition, CUdevResource* resource,
                     CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsQueueConfig(type)) {
    *resource = MakeResource(QueueConfig{device, partition.queues.limit, partition.queues.scope});
    return CUDA_SUCCESS;
  }
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = MakeResource(partition.multiprocessors, 0);
  return CUDA_SUCCESS;
}

// The size of each group. (A real H100 makes fewer groups of 8 than would fit: some
// of its clusters are not full.)
unsigned GroupSize(unsigned least, unsigned flags, unsigned total) {
  const bool loose = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  const unsigned step = loose ? kLoosePartition : kPartition;
  const unsigned wanted = std::max(least, 1u);
  return std::min((wanted + step - 1) / step * step, total);
}

// What cuDevSmResourceSplit gives a group that `group` describes, of `left` multiprocessors.
CUresult Assign(const SmGroup& group, unsigned left, unsigned total, unsigned* given) {
  const bool fills = (group.flags & kBackfill) != 0;
  const unsigned together = group.coscheduled != 0 ? group.coscheduled : kPartition;
  if ((group.flags & ~kBackfill) != 0 || together > kMostCoscheduled || together % 2 != 0 ||
      group.count % 2 != 0 || group.count > total || (group.count % together != 0 && !fills)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const unsigned most = fills ? left / 2 * 2 : left / together * together;
  *given = group.count != 0 ? group.count : most;
  return *given <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

// What cuDevResourceGenerateDesc made. There is no call that frees one.
std::mutex descriptions_mutex;
std::deque<Partition>& Descriptions() {
  static auto& descriptions = *new std::deque<Partition>;
  return descriptions;
}

CUdevResourceDesc AddDescription(const Partition& description) {
  const std::lock_guard<std::mutex> lock(descriptions_mutex);
  Descriptions().push_back(description);
  return reinterpret_cast<CUdevResourceDesc>(&Descriptions().back());
}

}  // namespace

CUresult GetResource(const Context& context, CUdevResource* resource, CUdevResourceType type) {
  return GetResource(context.device(), context.partition(), resource, type);
}

Partition PartitionOf(CUdevResourceDesc handle) {
  if (handle == nullptr) return {};
  const std::lock_guard<std::mutex> lock(descriptions_mutex);
  for (const Partition& description : Descriptions()) {
    if (reinterpret_cast<CUdevResourceDesc>(const_cast<Partition*>(&description)) == handle) {
      return description;
    }
  }
  PanicHandle(handle, "this never was a resource description");
}

CUresult DeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return GetResource(device, Partition(), resource, type);
}

CUresult CtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;  // not the current one
  Context* context = nullptr;
  const CUresult code = Context::FindNamed(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  if (!context->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return GetResource(*context, resource, type);
}

CUresult GreenCtxGetDevResource(CUgreenCtx green, CUdevResource* resource, CUdevResourceType type) {
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  return code != CUDA_SUCCESS ? code : GetResource(*context, resource, type);
}

CUresult DevSmResourceSplitByCount(CUdevResource* groups, unsigned* count,
                                   const CUdevResource* input, CUdevResource* remaining,
                                   unsigned flags, unsigned least) {
  constexpr unsigned kFlags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                              CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  if (count == nullptr || input == nullptr || (flags & ~kFlags) != 0 ||
      (groups != nullptr && *count == 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const unsigned total = input->sm.smCount;
  if (SplitOf(*input) != 0 || least > total) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned size = GroupSize(least, flags, total);
  const unsigned most = total / size;
  const SplitNumber split = ++last_split;
  *count = groups != nullptr ? std::min(*count, most) : most;
  if (groups != nullptr) std::fill_n(groups, *count, MakeResource(size, split));
  if (remaining != nullptr) *remaining = MakeResource(total - *count * size, split);
  return CUDA_SUCCESS;
}

// Documented. Without `groups` it tells what they would have, which may be nothing.
CUresult DevSmResourceSplit(CUdevResource* groups, unsigned count, const CUdevResource* input,
                            CUdevResource* remaining, unsigned flags, SmGroup* wanted) {
  if (count == 0 || input == nullptr || wanted == nullptr || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (SplitOf(*input) != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  unsigned left = input->sm.smCount;
  std::vector<unsigned> given(count);
  for (unsigned i = 0; i < count; ++i) {
    const CUresult code = Assign(wanted[i], left, input->sm.smCount, &given[i]);
    if (code != CUDA_SUCCESS) return code;
    if (groups != nullptr && given[i] < std::max(wanted[i].coscheduled, 2u)) {
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    left -= given[i];
  }
  const SplitNumber split = ++last_split;
  for (unsigned i = 0; i < count; ++i) {
    wanted[i].count = given[i];
    if (groups != nullptr) groups[i] = MakeResource(given[i], split);
  }
  if (remaining != nullptr) *remaining = MakeResource(left, split);
  return CUDA_SUCCESS;
}

// Documented in 13.5: multiprocessors that are described together come out of one split. Driver 580
// does not look (measured).
CUresult DevResourceGenerateDesc(CUdevResourceDesc* handle, CUdevResource* resources,
                                 unsigned count) {
  if (handle == nullptr || resources == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) PanicNull();
  Partition partition;
  partition.multiprocessors = 0;
  SplitNumber split = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (IsQueueConfig(resources[i].type)) {
      QueueConfig config = {};
      std::memcpy(&config, &resources[i].sm, sizeof(config));
      partition.queues = {config.limit, config.scope};
      continue;
    }
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const SplitNumber another = std::exchange(split, SplitOf(resources[i]));
    if (partition.multiprocessors != 0 && another != split && Process::DriverVersion() >= kNewer) {
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    partition.multiprocessors += resources[i].sm.smCount;
  }
  if (partition.multiprocessors == 0) partition.multiprocessors = kMultiprocessors;
  *handle = AddDescription(partition);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
