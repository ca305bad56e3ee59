// SPDX-License-Identifier: Apache-2.0

#include "cuguest/thread_residency.h"

#include "lib/context/advice.h"
#include "lib/context/stack_repair.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE

ThreadResidency::ThreadResidency(const ContextRef& context, const char* file, int line) noexcept
    : thread_(pthread_self()), file_(file), line_(line) {
  static_cast<void>(MoveTo(context));
}

ThreadResidency::~ThreadResidency() {
  // Elsewhere it would restore this thread's stack to what that one's was.
  if (Leave() == CUDA_ERROR_ILLEGAL_STATE) guard_->Abandon();
}

CUresult ThreadResidency::Settle() noexcept {
  if (!IsHere() || !guard_.has_value()) return CUDA_ERROR_ILLEGAL_STATE;
  result_ = guard_->Reassert();
  if (result_ == CUDA_SUCCESS) result_ = context_.Check();
  return result_;
}

CUresult ThreadResidency::MoveTo(const ContextRef& context) noexcept {
  if (!IsHere()) return CUDA_ERROR_ILLEGAL_STATE;
  static_cast<void>(Leave());
  guard_.emplace(context, GuardMode::kAlwaysPush, file_, line_);
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
  if (!IsHere()) return ReportElsewhere();
  const CUresult code = guard_->Restore();
  guard_.reset();
  context_ = ContextRef();
  return code;
}

CUresult ThreadResidency::ReportElsewhere() const noexcept {
  const internal::ThreadStack stack(internal::ResolvedDriver());
  internal::Report(
      {true, IncidentKind::kFailed, Repair::kUnrepaired, CUDA_ERROR_ILLEGAL_STATE, nullptr}, stack,
      get(), file_, line_);
  return CUDA_ERROR_ILLEGAL_STATE;
}

const char* ThreadResidency::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
