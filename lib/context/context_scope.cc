// SPDX-License-Identifier: Apache-2.0

#include "cuguest/context_scope.h"

#include "lib/context/thread_guards.h"

CUGUEST_BEGIN_NAMESPACE

ContextScope::ContextScope(ContextScope&& other) noexcept : GuardBase(other.mode_) {
  Set(other.ours_, other.mode_, {other.file_, other.line_}, other.result_, other.state_,
      other.caller_);
  asked_ = other.asked_;
  if (other.IsBound()) {
    outer = other.outer;
    thread = other.thread;
    type = other.type;
    if (!type->replace(&other, this)) SetEmpty(mode_);
  }
  other.SetEmpty(mode_);
}

CUresult ContextScope::RefuseToEnter() noexcept {
  if (!IsBound()) {
    result_ = CUDA_ERROR_INVALID_VALUE;
  } else if (internal::IsThisThread(thread)) {
    result_ = CUDA_ERROR_ILLEGAL_STATE;
  } else {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  return result();
}

// What Restore() does for a guard that does not end in turn would take entries of those inside
// this one off. A thread whose list is given up cannot tell any more whose turn it is.
CUresult ContextScope::LeaveOutOfTurn() noexcept {
  const bool is_in_turn =
      !IsInside() || type != &kType || !internal::IsThisThread(thread) || !internal::ListIsSound();
  return IsBound() && is_in_turn ? Restore() : CUDA_ERROR_ILLEGAL_STATE;
}

void ContextScope::End() noexcept {
  if (IsInside()) type->end_inside(this);
  if (Restore() != CUDA_SUCCESS) GiveUp();
}

CUGUEST_END_NAMESPACE
