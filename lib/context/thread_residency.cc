// SPDX-License-Identifier: Apache-2.0

#include "cuguest/thread_residency.h"

#include "lib/context/thread_guards.h"

CUGUEST_BEGIN_NAMESPACE

ThreadResidency::ThreadResidency(const ContextRef& context, const char* file, int line) noexcept
    : where_{file, line} {
  static_cast<void>(MoveTo(context));
}

CUresult ThreadResidency::Settle() noexcept {
  if (!thread_.IsThis() || context_.get() == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  result_ = scope_.Reassert();
  return result_;
}

CUresult ThreadResidency::MoveTo(const ContextRef& context) noexcept {
  if (!thread_.IsThis()) return CUDA_ERROR_ILLEGAL_STATE;
  static_cast<void>(Leave());
  result_ = scope_.Enter(context, GuardMode::kAlwaysPush, where_.file, where_.line);
  if (result_ == CUDA_SUCCESS) context_ = context;
  return result_;
}

CUresult ThreadResidency::Leave() noexcept {
  if (context_.get() == nullptr) return CUDA_SUCCESS;
  const CUresult code = scope_.Restore();
  if (!thread_.IsThis()) return code;  // the scope has seen it, too, and done nothing
  context_ = ContextRef();
  return code;
}

const char* ThreadResidency::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
