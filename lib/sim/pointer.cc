// SPDX-License-Identifier: Apache-2.0
//
// What is known about a pointer: cuPointerGetAttribute and cuPointerGetAttributes.

#include <cstring>

#include "lib/sim/api.h"
#include "lib/sim/memory.h"

namespace cuguest_sim {
namespace {

// One attribute's value, as wide as its type.
class Value {
 public:
  Value() = default;  // unknown attribute
  template <typename T>
  explicit Value(T value) : size_(sizeof(value)) {
    static_assert(sizeof(value) <= sizeof(bytes_));
    std::memcpy(bytes_, &value, sizeof(value));
  }

  bool is_known() const { return size_ != 0; }
  void CopyTo(void* data) const { std::memcpy(data, bytes_, size_); }
  void ZeroTo(void* data) const { std::memset(data, 0, size_); }

 private:
  unsigned char bytes_[8] = {};
  size_t size_ = 0;
};

CUmemorytype TypeOf(const Allocation& allocation) {
  // Managed memory says device (measured on an H100, driver 580.159.04).
  return allocation.kind == MemoryKind::kHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// Device memory has no host address.
std::uintptr_t HostAddress(const Allocation& allocation, std::uintptr_t address) {
  return allocation.kind == MemoryKind::kDevice ? 0 : address;
}

Value AttributeOf(const Allocation& allocation, CUpointer_attribute attribute,
                  std::uintptr_t address) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Value(allocation.life.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Value(static_cast<unsigned>(TypeOf(allocation)));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Value(CUdeviceptr{address});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return Value(HostAddress(allocation, address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Value(false);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Value(static_cast<unsigned long long>(allocation.buffer_id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Value(allocation.kind == MemoryKind::kManaged);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Value(int{allocation.life.context->device()});
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Value(CUdeviceptr{allocation.base});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Value(allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Value(true);
    default:
      return Value();
  }
}

}  // namespace

CUresult PointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  Allocation allocation;
  if (data == nullptr || !Memory::Find(address, &allocation)) return CUDA_ERROR_INVALID_VALUE;
  const Value value = AttributeOf(allocation, attribute, address);
  if (!value.is_known()) return CUDA_ERROR_INVALID_VALUE;
  value.CopyTo(data);
  return CUDA_SUCCESS;
}

// For a pointer that the driver does not know: zeros, and success.
CUresult PointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr address) {
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  allocation.life.context = Context::Primary(0);  // for the widths only
  const bool known = Memory::Find(address, &allocation);
  for (unsigned i = 0; i < count; ++i) {
    const Value value = AttributeOf(allocation, attributes[i], address);
    if (!value.is_known()) return CUDA_ERROR_INVALID_VALUE;
    known ? value.CopyTo(data[i]) : value.ZeroTo(data[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace cuguest_sim
