// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reference names a handle, without an id: as below CUDA 12.0. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_CONTEXT_REF_H_
#define CUGUEST_LIB_NO_CUDA_CONTEXT_REF_H_

#include "cuguest/context_ref.h"
#include "lib/no_cuda/error.h"

CUGUEST_BEGIN_NAMESPACE

inline ContextRef ContextRef::Borrow(CUcontext context) noexcept { return Of(context, 0); }

inline ContextRef ContextRef::Current() noexcept {
  return internal::Incarnation::NoRef(CUDA_ERROR_NOT_SUPPORTED);
}

inline CUresult ContextRef::Check() const noexcept { return result_; }

inline const char* ContextRef::advice() const noexcept { return ""; }

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_CONTEXT_REF_H_
