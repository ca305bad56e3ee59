// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No device has memory. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_FREE_MEMORY_H_
#define CUGUEST_LIB_NO_CUDA_FREE_MEMORY_H_

#include "cuguest/free_memory.h"
#include "lib/no_cuda/error.h"

CUGUEST_BEGIN_NAMESPACE

inline ErrorOr<FreeMemory> GetFreeMemory(Device /*device*/, IfInactive /*if_inactive*/) noexcept {
  return internal::NotSupported("ask how much memory is free");
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_FREE_MEMORY_H_
