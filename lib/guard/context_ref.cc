// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/context_ref.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_NAMESPACE

ContextRef ContextRef::Borrow(CUcontext context) noexcept {
  ContextRef ref;
  if (context == nullptr) return ref;
  const DriverTable* driver = internal::TryDriver(&ref.result_);
  if (driver == nullptr) return ref;
  unsigned long long id = 0;
  ref.result_ = internal::ReadId(*driver, context, &id);
  if (ref.result_ != CUDA_SUCCESS) return ref;
  ref.context_ = context;
  ref.id_ = id;
  return ref;
}

ContextRef ContextRef::Current() noexcept {
  ContextRef ref;
  CUcontext current = nullptr;
  const DriverTable* driver = internal::TryDriver(&ref.result_);
  if (driver == nullptr) return ref;
  ref.result_ = driver->CtxGetCurrent(&current);
  return ref.ok() ? Borrow(current) : ref;
}

CUresult ContextRef::Check() const noexcept {
  if (context_ == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult code = CUDA_SUCCESS;
  const DriverTable* driver = internal::TryDriver(&code);
  if (driver == nullptr) return code;
  return internal::CheckIncarnation(*driver, internal::Incarnation::Of(*this));
}

const char* ContextRef::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
