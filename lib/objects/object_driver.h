// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the rooms of objects read the table of ObjectDriver: by CUresult, without a status. tier: 3

#ifndef CUGUEST_LIB_OBJECTS_OBJECT_DRIVER_H_
#define CUGUEST_LIB_OBJECTS_OBJECT_DRIVER_H_

#include <cuda.h>

#include <atomic>

#include "cuguest/objects/driver.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The process's, once it was looked for and is usable.
extern std::atomic<const ObjectDriver*> g_object_driver;

// Resolves it on the first call. On failure returns nullptr and writes the code that stands for the
// problem to `code`.
const ObjectDriver* ResolveObjectDriver(CUresult* code) noexcept;

inline const ObjectDriver* TryObjectDriver(CUresult* code) noexcept {
  const ObjectDriver* const driver = g_object_driver.load(std::memory_order_acquire);
  if (__builtin_expect(driver != nullptr, 1)) return driver;
  return ResolveObjectDriver(code);
}

// After TryObjectDriver() has given it; in an object that another copy of cuguest has made it is
// resolved here, as ResolvedDriver() of lib/core/driver_access.h.
inline const ObjectDriver& ResolvedObjectDriver() noexcept {
  CUresult code = CUDA_SUCCESS;
  return *TryObjectDriver(&code);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_OBJECT_DRIVER_H_
