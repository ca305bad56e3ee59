// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"

#include "cuguest/context_ref.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult WriteRef(const ContextRef& from, cuguest_ref* ref) noexcept {
  if (!IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  if (ref->size == 0) ref->size = sizeof(*ref);
  ref->context = from.get();
  ref->id = from.id();
  return from.result();
}

CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_ref_borrow(cuguest_ref* ref, CUcontext context) {
  return c::IsRef(ref) ? c::WriteRef(cuguest::ContextRef::Borrow(context), ref)
                       : CUDA_ERROR_INVALID_VALUE;
}

int cuguest_ref_current(cuguest_ref* ref) {
  return c::IsRef(ref) ? c::WriteRef(cuguest::ContextRef::Current(), ref)
                       : CUDA_ERROR_INVALID_VALUE;
}

int cuguest_ref_check(const cuguest_ref* ref) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return ref->context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : c::NamedBy(*ref).Ref().Check();
}
