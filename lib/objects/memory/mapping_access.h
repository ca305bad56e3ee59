// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a device may do with a mapping of virtual memory.                               tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_MAPPING_ACCESS_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_MAPPING_ACCESS_H_

#include <cuda.h>

#include "cuguest/device.h"
#include "cuguest/export.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Of the mapping around `pointer`, whatever device its memory is of. Everything, where the driver
// has no such question.
inline CUresult AskAccess(const ObjectDriver& driver, CUdeviceptr pointer, Device device,
                          MemoryDescription::Access* access) noexcept {
  *access = MemoryDescription::Access::kReadWrite;
  if (driver.MemGetAccess == nullptr) return CUDA_SUCCESS;
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device.get();
  unsigned long long flags = 0;
  const CUresult code = driver.MemGetAccess(&flags, &location, pointer);
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) *access = MemoryDescription::Access::kNone;
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ) *access = MemoryDescription::Access::kRead;
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_MAPPING_ACCESS_H_
