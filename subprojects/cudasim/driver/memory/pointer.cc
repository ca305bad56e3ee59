// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about a pointer: cuPointerGetAttribute, cuPointerGetAttributes and what
// cuPointerSetAttribute sets.

#include <cstring>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/graph/graph_memory.h"
#include "driver/memory/memory.h"
#include "driver/memory/virtual_memory.h"

namespace cudasim::driver {
namespace {

// One attribute's value, as wide as its type, with the code that the singular form
// gives for it; the plural form writes the value (zeros, if refused) and succeeds.
class Value {
 public:
  Value() = default;  // unknown attribute
  template <typename T>
  explicit Value(T value) : size_(sizeof(value)), code_(CUDA_SUCCESS) {
    static_assert(sizeof(value) <= sizeof(bytes_));
    std::memcpy(bytes_, &value, sizeof(value));
  }

  Value Refused(CUresult code) const {
    Value refused;
    refused.size_ = size_;
    refused.code_ = code;
    return refused;
  }

  bool is_known() const { return size_ != 0; }
  CUresult code() const { return code_; }
  void CopyTo(void* data) const { std::memcpy(data, bytes_, size_); }

 private:
  unsigned char bytes_[8] = {};
  size_t size_ = 0;
  CUresult code_ = CUDA_ERROR_INVALID_VALUE;
};

bool HasLivingCurrent() {
  Incarnation incarnation;
  return CurrentAlive(&incarnation) == CUDA_SUCCESS;
}

CUmemorytype TypeOf(const Allocation& allocation) {
  // Managed memory says device (measured on an H100, driver 580.159.04).
  return allocation.IsOnHost() || allocation.lies_on_host ? CU_MEMORYTYPE_HOST
                                                          : CU_MEMORYTYPE_DEVICE;
}

// Needs a current context, of whatever device, and access.
Value DevicePointer(const Allocation& allocation, std::uintptr_t address) {
  const Value value(CUdeviceptr{address});
  if (!HasLivingCurrent()) return value.Refused(CUDA_ERROR_INVALID_CONTEXT);
  return allocation.access != 0 ? value : value.Refused(CUDA_ERROR_INVALID_VALUE);
}

// Device memory has no host address, nor has memory of the host that is mapped without access.
Value HostPointer(const Allocation& allocation, std::uintptr_t address) {
  const Value value(address);
  const bool has = allocation.IsOnHost() || allocation.IsManaged() || allocation.host_access ||
                   (allocation.lies_on_host && allocation.kind == MemoryKind::kPool);
  return has ? value : value.Refused(CUDA_ERROR_INVALID_VALUE);
}

// Of the current context's device; of mapped memory without one: none.
unsigned AccessOf(const Allocation& allocation) {
  if (allocation.kind != MemoryKind::kMapped) return allocation.access;
  Incarnation incarnation;
  const bool has_current = CurrentAlive(&incarnation) == CUDA_SUCCESS;
  return has_current ? allocation.AccessFrom(incarnation.context->device()) : 0;
}

Value AttributeOf(const Allocation& allocation, CUpointer_attribute attribute,
                  std::uintptr_t address) {
  const bool mapped = allocation.kind == MemoryKind::kMapped;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Value(allocation.kind != MemoryKind::kManagedVariable ? allocation.incarnation.context
                                                                   : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Value(static_cast<unsigned>(TypeOf(allocation)));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return DevicePointer(allocation, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return HostPointer(allocation, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Value(allocation.synchronizes);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Value(static_cast<unsigned long long>(allocation.buffer_id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:  // four bytes, as measured on an H200
      return Value(unsigned{allocation.IsManaged()});
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Value(int{allocation.device});
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Value(allocation.kind == MemoryKind::kDevice);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      if (allocation.lies_on_host && !mapped) return Value(CUdeviceptr{allocation.range_base});
      return Value(CUdeviceptr{mapped ? allocation.range_base : allocation.base});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Value(mapped ? allocation.range_size : allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Value(true);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:  // of what is exported by a handle: nothing is
      return Value(0ULL);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Value(unsigned{allocation.kind == MemoryKind::kDevice});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Value(AccessOf(allocation));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Value(allocation.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Value(allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Value(CUdeviceptr{allocation.base});
    default:
      return Value();
  }
}

// Not measured of the plural form: memory of a graph that no launch has.
bool FindKnown(CUdeviceptr address, Allocation* allocation) {
  return Memory::Find(address, allocation) && !IsIdleMemory(*allocation);
}

bool IsRange(CUpointer_attribute attribute) {
  return attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

// What the plural form says of a pointer that the driver does not know. An address
// that is reserved, but not mapped, has a range.
Value AttributeOfUnknown(CUpointer_attribute attribute, std::uintptr_t address) {
  AddressRange reserved;
  FindReserved(address, &reserved);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Value(CUdeviceptr{reserved.base});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Value(reserved.size);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return Value(address);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Value(int{CU_DEVICE_INVALID});
    default:
      return AttributeOf(Allocation{}, attribute, address).Refused(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

CUresult PointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  Allocation allocation;
  if (data == nullptr || !FindKnown(address, &allocation)) return CUDA_ERROR_INVALID_VALUE;
  const Value value = AttributeOf(allocation, attribute, address);
  if (value.code() == CUDA_SUCCESS) {
    value.CopyTo(data);
  } else if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
             attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
    std::memset(data, 0, sizeof(void*));
  }
  return value.code();
}

CUresult PointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr address) {
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  AddressRange reserved;
  const bool known = FindKnown(address, &allocation);
  const bool ranged = known || FindReserved(address, &reserved);
  for (unsigned i = 0; i < count; ++i) {
    const Value value = known ? AttributeOf(allocation, attributes[i], address)
                              : AttributeOfUnknown(attributes[i], address);
    if (!value.is_known()) return CUDA_ERROR_INVALID_VALUE;
    // The range of an address that has none is not even written.
    if (ranged || !IsRange(attributes[i])) value.CopyTo(data[i]);
  }
  return CUDA_SUCCESS;
}

// Of all of the memory that `address` is in. Source: test/memory_facts_test.cc.
CUresult PointerSetAttribute(const void* value, CUpointer_attribute attribute,
                             CUdeviceptr address) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  unsigned synchronizes = 0;
  std::memcpy(&synchronizes, value, sizeof(synchronizes));
  return Memory::SetSynchronizes(address, synchronizes != 0) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cudasim::driver
