// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/thread_residency.h"

#include "lib/guard/nesting.h"

CUGUEST_BEGIN_NAMESPACE

ThreadResidency::ThreadResidency(const ContextRef& context, Location where) noexcept
    : where_(where) {
  static_cast<void>(MoveTo(context));
}

CUresult ThreadResidency::Reassert() noexcept {
  if (!thread_.IsThis() || context_.get() == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const CUresult code = scope_.Reassert();
  if (code != CUDA_ERROR_ILLEGAL_STATE) result_ = code;  // otherwise a guard is inside it
  return code;
}

CUresult ThreadResidency::MoveTo(const ContextRef& context) noexcept {
  if (!thread_.IsThis()) return CUDA_ERROR_ILLEGAL_STATE;
  CUresult code;
  if (context_.get() == nullptr) {
    code = scope_.Enter(context, GuardMode::kAlwaysPush, where_);
  } else {
    code = scope_.MoveTo(context, where_);
    if (code == CUDA_ERROR_ILLEGAL_STATE) return code;
  }
  result_ = code;
  if (code == CUDA_SUCCESS) {
    context_ = context;
  } else {
    static_cast<void>(Leave());
  }
  return code;
}

CUresult ThreadResidency::Leave() noexcept {
  if (context_.get() == nullptr) return CUDA_SUCCESS;
  context_ = ContextRef();
  const CUresult code = scope_.Leave();
  return code == CUDA_ERROR_ILLEGAL_STATE ? CUDA_SUCCESS : code;  // Reassert() has left it
}

const char* ThreadResidency::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
