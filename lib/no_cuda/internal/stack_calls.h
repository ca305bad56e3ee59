// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A driver that has no ids and pushes nothing. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INTERNAL_STACK_CALLS_H_
#define CUGUEST_LIB_NO_CUDA_INTERNAL_STACK_CALLS_H_

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUGUEST_HIDE inline CUresult Push(CUcontext /*context*/) noexcept { return CUDA_SUCCESS; }
CUGUEST_HIDE inline CUresult GetId(CUcontext /*context*/, unsigned long long* id) noexcept {
  *id = 0;
  return CUDA_SUCCESS;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INTERNAL_STACK_CALLS_H_
