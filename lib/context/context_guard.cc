// SPDX-License-Identifier: Apache-2.0

#include "cuguest/context_guard.h"

#include "lib/context/advice.h"
#include "lib/context/identity.h"
#include "lib/context/stack_repair.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE

ContextGuard::ContextGuard(const ContextRef& context, GuardMode mode, const char* file,
                           int line) noexcept
    : context_(context.get()),
      caller_(nullptr),
      file_(file),
      id_(context.id()),
      line_(line),
      mode_(mode) {
  result_ = context_ == nullptr ? CUDA_ERROR_INVALID_CONTEXT : internal::GetCurrent(&caller_);
  Enter();
}

// result_ and caller_ are what asking for the current context gave.
void ContextGuard::Enter() noexcept {
  state_ = State::kOut;
  if (result_ == internal::kNotResolved) {
    if (internal::ResolveDriver(&result_) == nullptr) return;
    result_ = internal::GetCurrent(&caller_);
  }
  if (result_ == CUDA_SUCCESS) result_ = Prepare();
  if (result_ != CUDA_SUCCESS) return;
  if (caller_ == context_ && mode_ == GuardMode::kElide) {
    state_ = State::kElided;
    return;
  }
  result_ = internal::Push(context_);
  if (result_ != CUDA_SUCCESS) return;
  constexpr State kStates[] = {State::kPushed, State::kPushedAlways, State::kExact};
  state_ = kStates[static_cast<int>(mode_)];
}

// What has to be found out before the push, beyond what is current.
CUresult ContextGuard::Prepare() noexcept {
  const Driver& driver = internal::ResolvedDriver();
  if (id_ != 0) {
    unsigned long long id = 0;
    const CUresult code = internal::ReadId(driver, context_, &id);
    if (code != CUDA_SUCCESS) return code;
    if (id != id_) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (mode_ != GuardMode::kExact) return CUDA_SUCCESS;
  return internal::Snapshot(internal::ThreadStack(driver), exact_, kMaxExactDepth, &exact_depth_);
}

// The modes that look further than the top.
CUresult ContextGuard::Leave() noexcept {
  if (!IsInside()) return CUDA_SUCCESS;
  if (state_ == State::kExact) return LeaveDisturbed(CUDA_SUCCESS, nullptr);
  CUcontext top = nullptr;
  CUcontext beneath = nullptr;
  const CUresult code = internal::Pop(&top);
  if (code == CUDA_SUCCESS && top == context_ && internal::GetCurrent(&beneath) == CUDA_SUCCESS &&
      beneath == caller_) {
    state_ = State::kOut;
    return CUDA_SUCCESS;
  }
  return LeaveDisturbed(code, top);
}

internal::Finding ContextGuard::Mend(const internal::ThreadStack& stack, CUresult code,
                                     CUcontext popped) const noexcept {
  if (state_ == State::kElided) return internal::RepairElided(stack, context_);
  if (state_ == State::kExact) {
    return internal::RestoreExactly(stack, exact_, exact_depth_, context_);
  }
  if (code != CUDA_SUCCESS) {
    code = stack.Pop(&popped);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_CONTEXT) {
      return {true, IncidentKind::kFailed, Repair::kUnrepaired, code, context_};
    }
  }
  return internal::RepairPushed(stack, context_, caller_, popped);
}

// `code` and `top` are what asking for the top, or popping it, gave.
CUresult ContextGuard::LeaveDisturbed(CUresult code, CUcontext top) noexcept {
  // Not null: the guard is inside, so the table was there when it entered.
  const internal::ThreadStack stack(internal::ResolvedDriver());
  const internal::Finding finding = Mend(stack, code, top);
  state_ = State::kOut;
  // At the end of the process there is no stack left to restore, and nothing to report.
  if (!finding.happened || finding.result == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (finding.kind == IncidentKind::kDestroyed) state_ = State::kGone;
  if (finding.repair == Repair::kUnrepaired) stack.MakeCurrent(caller_);
  internal::Report(finding, stack, context_, file_, line_);
  if (finding.repair != Repair::kUnrepaired) return CUDA_SUCCESS;
  return finding.result != CUDA_SUCCESS ? finding.result : CUDA_ERROR_INVALID_CONTEXT;
}

// Enters again after Restore(), unless leaving has shown that there is nothing to enter:
// pushing a destroyed handle is accepted and corrupts the driver's heap.
void ContextGuard::Reenter() noexcept {
  if (state_ == State::kGone) {
    result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else {
    result_ = internal::GetCurrent(&caller_);
    Enter();
  }
}

CUresult ContextGuard::Reassert() noexcept {
  if (!IsInside()) return ok() ? CUDA_ERROR_ILLEGAL_STATE : result_;
  if (state_ != State::kExact) {
    CUcontext top = nullptr;
    if (internal::GetCurrent(&top) == CUDA_SUCCESS && top == context_) return CUDA_SUCCESS;
  }
  static_cast<void>(Restore());
  Reenter();
  return result_;
}

const char* ContextGuard::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
