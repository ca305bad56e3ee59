// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Managed memory: what it is advised to be used for, and where it is prefetched to. Nothing moves:
// the advice is kept, by the page, for cuMemRangeGetAttribute.
//
// Memory that is not the driver's is refused. Source: test/advice_facts_test.cc.

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/memory/memory.h"
#include "driver/stream/schedule.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

struct Placement {
  CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
  int id = 0;

  bool operator==(const Placement& other) const { return type == other.type && id == other.id; }
};

struct CpuLast {
  bool operator()(CUdevice a, CUdevice b) const {
    return static_cast<unsigned>(a) < static_cast<unsigned>(b);
  }
};

struct Advice {
  bool read_mostly = false;
  Placement preferred;
  std::set<CUdevice, CpuLast> accessed_by;
  Placement prefetched;
};

// Of one allocation: each of its stretches begins at the offset that is its key.
using Stretches = std::map<size_t, Advice>;

std::mutex advice_mutex;

// By Allocation::buffer_id.
struct Advised {
  std::uintptr_t base = 0;
  Stretches stretches = {{0, {}}};
};
std::map<std::uint64_t, Advised>& AllAdvised() {
  static auto& entries = *new std::map<std::uint64_t, Advised>;
  return entries;
}

// Those of memory that was freed.
void ForgetGone() {
  for (auto it = AllAdvised().begin(); it != AllAdvised().end();) {
    Allocation allocation;
    const bool is_there =
        Memory::Find(it->second.base, &allocation) && allocation.buffer_id == it->first;
    it = is_there ? std::next(it) : AllAdvised().erase(it);
  }
}

// Whole pages of an allocation.
struct Range {
  Allocation allocation;
  size_t begin = 0;
  size_t end = 0;
};

CUresult FindRange(CUdeviceptr address, size_t bytes, Range* range) {
  Allocation& found = range->allocation;
  if (bytes == 0 || !Memory::Find(address, &found) || !found.IsManaged() ||
      !found.Contains(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  range->begin = (address - found.base) / kPage * kPage;
  range->end = WholePages(address - found.base + bytes);
  return CUDA_SUCCESS;
}

// So that a stretch begins there.
Stretches::iterator Split(Stretches* stretches, size_t at) {
  const auto before = std::prev(stretches->upper_bound(at));
  return stretches->emplace(at, before->second).first;
}

void Change(const Range& range, const std::function<void(Advice*)>& change) {
  const std::lock_guard<std::mutex> lock(advice_mutex);
  if (AllAdvised().count(range.allocation.buffer_id) == 0) ForgetGone();
  Advised& entry = AllAdvised()[range.allocation.buffer_id];
  entry.base = range.allocation.base;
  const auto end = Split(&entry.stretches, range.end);
  for (auto it = Split(&entry.stretches, range.begin); it != end; ++it) change(&it->second);
}

// What all of it was advised.
std::vector<Advice> AdviceOf(const Range& range) {
  const std::lock_guard<std::mutex> lock(advice_mutex);
  const auto found = AllAdvised().find(range.allocation.buffer_id);
  if (found == AllAdvised().end()) return {Advice{}};
  const Stretches& stretches = found->second.stretches;
  std::vector<Advice> all;
  auto it = std::prev(stretches.upper_bound(range.begin));
  for (; it != stretches.end() && it->first < range.end; ++it) all.push_back(it->second);
  return all;
}

CUresult CheckDevice(CUdevice device) {
  return IsDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// NUMA node 0 is the only one.
CUresult FindPlace(const CUmemLocation& location, Placement* place) {
  *place = {location.type, 0};
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      place->id = location.id;
      return CheckDevice(location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      place->type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUmemLocation LocationOfDevice(CUdevice device) {
  CUmemLocation location = {};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

// A device, or CU_DEVICE_CPU.
CUresult FindProcessor(const CUmemLocation& location, CUdevice* device) {
  *device = location.type == CU_MEM_LOCATION_TYPE_HOST ? CUdevice{CU_DEVICE_CPU} : location.id;
  if (location.type == CU_MEM_LOCATION_TYPE_HOST) return CUDA_SUCCESS;
  const bool is_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE && IsDevice(location.id);
  return is_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The place that all of the range has in common, if there is one.
Placement CommonPlace(const std::vector<Advice>& all, Placement Advice::*member) {
  const Placement first = all.front().*member;
  const bool is_common = std::all_of(all.begin(), all.end(),
                                     [&](const Advice& advice) { return advice.*member == first; });
  return is_common ? first : Placement{};
}

int DeviceOf(const Placement& place) {
  if (place.type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
  return place.type == CU_MEM_LOCATION_TYPE_DEVICE ? place.id : CU_DEVICE_CPU;
}

std::vector<int> ProcessorsOf(const std::vector<Advice>& all, size_t places) {
  std::vector<int> processors(places, CU_DEVICE_INVALID);
  size_t count = 0;
  for (const CUdevice device : all.front().accessed_by) {
    const bool is_common = std::all_of(all.begin(), all.end(), [&](const Advice& advice) {
      return advice.accessed_by.count(device) != 0;
    });
    if (is_common && count < places) processors[count++] = device;
  }
  return processors;
}

CUresult Write(const std::vector<int>& values, void* data, size_t size) {
  if (data == nullptr || size != values.size() * sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, values.data(), size);
  return CUDA_SUCCESS;
}

CUresult WriteAttribute(CUmem_range_attribute attribute, const std::vector<Advice>& all, void* data,
                        size_t size) {
  const Placement preferred = CommonPlace(all, &Advice::preferred);
  const Placement prefetched = CommonPlace(all, &Advice::prefetched);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return Write({std::all_of(all.begin(), all.end(),
                                [](const Advice& advice) { return advice.read_mostly; })},
                   data, size);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return Write({DeviceOf(preferred)}, data, size);
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      if (size == 0) return CUDA_ERROR_INVALID_VALUE;
      return Write(ProcessorsOf(all, size / sizeof(int)), data, size);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return Write({DeviceOf(prefetched)}, data, size);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return Write({static_cast<int>(preferred.type)}, data, size);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return Write({preferred.id}, data, size);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return Write({static_cast<int>(prefetched.type)}, data, size);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return Write({prefetched.id}, data, size);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult FindCurrentRange(CUdeviceptr address, size_t bytes, Range* range) {
  Incarnation incarnation;
  const CUresult code = CurrentReady(&incarnation);
  return code != CUDA_SUCCESS ? code : FindRange(address, bytes, range);
}

}  // namespace

// The location is ignored by the advice that it says nothing about.
CUresult MemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  Range range;
  CUresult code = FindCurrentRange(address, bytes, &range);
  if (code != CUDA_SUCCESS) return code;
  Placement place;
  CUdevice processor = 0;
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      Change(range, [=](Advice* of) { of->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY; });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      // A prefetch, and the first form, say INVALID_DEVICE (measured on an H200, driver
      // 580.159.04).
      if (FindPlace(location, &place) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
      [[fallthrough]];
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      Change(range, [=](Advice* of) { of->preferred = place; });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      code = FindProcessor(location, &processor);
      if (code == CUDA_SUCCESS)
        Change(range, [=](Advice* of) { of->accessed_by.insert(processor); });
      return code;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      code = FindProcessor(location, &processor);
      if (code == CUDA_SUCCESS)
        Change(range, [=](Advice* of) { of->accessed_by.erase(processor); });
      return code;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult MemAdviseFirst(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  const bool goes_there = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                          advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                          advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (goes_there && device != CU_DEVICE_CPU && !IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return MemAdvise(address, bytes, advice, LocationOfDevice(device));
}

// Work of the stream that does nothing. The location is known at once.
CUresult MemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                          CUstream stream_handle) {
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Range range;
  Placement place;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  code = FindRange(address, bytes, &range);
  if (code == CUDA_SUCCESS) code = FindPlace(location, &place);
  if (code != CUDA_SUCCESS) return code;
  Change(range, [=](Advice* of) { of->prefetched = place; });
  Job job;
  job.incarnation = stream.incarnation;
  Schedule::Submit(stream, job);
  return CUDA_SUCCESS;
}

CUresult MemPrefetchAsyncFirst(CUdeviceptr address, size_t bytes, CUdevice device,
                               CUstream stream) {
  return MemPrefetchAsync(address, bytes, LocationOfDevice(device), 0, stream);
}

CUresult MemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute attribute,
                              CUdeviceptr address, size_t bytes) {
  return MemRangeGetAttributes(&data, &size, &attribute, 1, address, bytes);
}

CUresult MemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes,
                               size_t count, CUdeviceptr address, size_t bytes) {
  Range range;
  CUresult code = FindCurrentRange(address, bytes, &range);
  if (code != CUDA_SUCCESS) return code;
  if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::vector<Advice> all = AdviceOf(range);
  for (size_t i = 0; i < count && code == CUDA_SUCCESS; ++i) {
    code = WriteAttribute(attributes[i], all, data[i], sizes[i]);
  }
  return code;
}

}  // namespace cudasim::driver
