// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the driver tells of an address, all at once.                                    tier: 2

#ifndef CUGUEST_LIB_ACQUIRE_POINTER_ATTRIBUTES_H_
#define CUGUEST_LIB_ACQUIRE_POINTER_ATTRIBUTES_H_

#include <cuda.h>

#include <cstddef>
#include <iterator>

#include "cuguest/driver_table.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// No bytes: it is not known.
struct MemoryExtent {
  CUdeviceptr base = 0;
  std::size_t size = 0;
};

struct PointerAttributes {
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  unsigned type = 0;  // CUmemorytype; 0 for what the driver does not know
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
  int ordinal = -1;
  unsigned is_managed = 0;  // a driver writes four bytes (cudasim/test/device_facts_test.cc)
  CUdeviceptr range_base = 0;
  std::size_t range_size = 0;
  CUmemoryPool pool = nullptr;
  CUdeviceptr mapping_base = 0;
  std::size_t mapping_size = 0;

  bool IsKnown() const noexcept { return type != 0; }
  bool IsPool() const noexcept { return IsKnown() && context == nullptr && pool != nullptr; }
  bool IsVirtual() const noexcept {
    return IsKnown() && context == nullptr && pool == nullptr && is_managed == 0;
  }

  // The allocation; of virtual memory the mapping, whose range is the reservation around it. Of
  // memory that a pool has on the host the driver tells the size, and as its start no address
  // (cudasim/test/host_location_facts_test.cc).
  MemoryExtent Extent() const noexcept {
    if (IsPool() && pointer - range_base >= range_size) return {};
    if (IsVirtual()) return {mapping_base, mapping_size};
    return {range_base, range_size};
  }
};

// One call fails as a whole for an attribute that the driver does not know, and for nothing
// else that is wrong with the pointer. So the newest are asked for last, and left out where
// that helps: `kAges` counts those of CUDA 11.3 and newer, of 10.2 and of 7.0.
[[gnu::noinline]] inline CUresult ReadAttributes(const DriverTable& driver, CUdeviceptr pointer,
                                                 PointerAttributes* read) noexcept {
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,   CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
      CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR};
  void* values[] = {&read->context,      &read->type,        &read->device_pointer,
                    &read->host_pointer, &read->is_managed,  &read->ordinal,
                    &read->range_base,   &read->range_size,  &read->pool,
                    &read->mapping_size, &read->mapping_base};
  static_assert(std::size(attributes) == std::size(values));
  constexpr unsigned kAges[] = {std::size(attributes), 8, 5};
  CUresult code = CUDA_SUCCESS;
  for (const unsigned count : kAges) {
    *read = PointerAttributes();
    read->pointer = pointer;
    code = driver.PointerGetAttributes(count, attributes, values, pointer);
    if (code != CUDA_ERROR_INVALID_VALUE) break;
  }
  return code;
}

// The number that the driver has given to the allocation around `pointer`, and to no other of the
// process (CUDA Driver API, CU_POINTER_ATTRIBUTE_BUFFER_ID). 0 where it has none.
inline CUresult ReadBufferId(const DriverTable& driver, CUdeviceptr pointer,
                             unsigned long long* id) noexcept {
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
  void* value = id;
  *id = 0;
  return driver.PointerGetAttributes(1, &attribute, &value, pointer);
}

// Whether two addresses are in one allocation, by its number, for memory whose start the driver
// does not tell.
inline CUresult IsOneAllocation(const DriverTable& driver, CUdeviceptr first, CUdeviceptr last,
                                bool* is_one) noexcept {
  unsigned long long ids[2] = {};
  CUresult code = ReadBufferId(driver, first, &ids[0]);
  if (code == CUDA_SUCCESS) code = ReadBufferId(driver, last, &ids[1]);
  *is_one = ids[0] == ids[1];
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_ACQUIRE_POINTER_ATTRIBUTES_H_
