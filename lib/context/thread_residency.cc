// SPDX-License-Identifier: Apache-2.0

#include "cuguest/thread_residency.h"

#include "lib/context/thread_guards.h"

CUGUEST_BEGIN_NAMESPACE

ThreadResidency::ThreadResidency(const ContextRef& context, const char* file, int line) noexcept
    : where_{file, line} {
  static_cast<void>(MoveTo(context));
}

CUresult ThreadResidency::Settle() noexcept {
  if (!thread_.IsThis() || !guard_.has_value()) return CUDA_ERROR_ILLEGAL_STATE;
  result_ = guard_->Reassert();
  return result_;
}

CUresult ThreadResidency::MoveTo(const ContextRef& context) noexcept {
  if (!thread_.IsThis()) return CUDA_ERROR_ILLEGAL_STATE;
  static_cast<void>(Leave());
  guard_.emplace(context, where_, GuardMode::kAlwaysPush);
  result_ = guard_->result();
  if (result_ == CUDA_SUCCESS) {
    context_ = context;
  } else {
    guard_.reset();
  }
  return result_;
}

CUresult ThreadResidency::Leave() noexcept {
  if (!guard_.has_value()) return CUDA_SUCCESS;
  const CUresult code = guard_->Restore();
  if (!thread_.IsThis()) return code;  // the guard has seen it, too, and done nothing
  guard_.reset();
  context_ = ContextRef();
  return code;
}

const char* ThreadResidency::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
