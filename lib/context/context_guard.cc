// SPDX-License-Identifier: Apache-2.0

#include "cuguest/context_guard.h"

#include <utility>

#include "lib/context/advice.h"
#include "lib/context/identity.h"
#include "lib/context/stack_repair.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE

ContextGuard::ContextGuard(CUcontext context, GuardMode mode, const char* file, int line) noexcept
    : context_(context), file_(file), line_(line), mode_(mode) {
  Enter();
}

ContextGuard::ContextGuard(const ContextRef& context, GuardMode mode, const char* file,
                           int line) noexcept
    : context_(context.get()), id_(context.id()), file_(file), line_(line), mode_(mode) {
  Enter();
}

void ContextGuard::Enter() noexcept {
  result_ = CUDA_ERROR_INVALID_CONTEXT;
  if (context_ == nullptr) return;
  const Driver* driver = internal::TryDriver(&result_);
  if (driver == nullptr) return;
  if (id_ != 0) {
    unsigned long long id = 0;
    result_ = internal::ReadId(*driver, context_, &id);
    if (result_ == CUDA_SUCCESS && id != id_) result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result_ != CUDA_SUCCESS) return;
  }
  if (mode_ == GuardMode::kExact) {
    result_ = internal::Snapshot(internal::ThreadStack(*driver), exact_, kMaxExactDepth,
                                 &exact_depth_);
    if (result_ != CUDA_SUCCESS) return;
  }
  result_ = driver->CtxGetCurrent(&caller_);
  if (result_ != CUDA_SUCCESS) return;
  if (caller_ == context_ && mode_ == GuardMode::kElide) {
    state_ = State::kElided;
    return;
  }
  result_ = driver->CtxPushCurrent(context_);
  if (result_ != CUDA_SUCCESS) return;
  state_ = mode_ == GuardMode::kExact ? State::kExact : State::kPushed;
}

CUresult ContextGuard::Leave() noexcept {
  const State state = std::exchange(state_, State::kOut);
  if (state == State::kOut) return CUDA_SUCCESS;
  // Not null: the guard is inside, so the table was there when it entered.
  const Driver& driver = *internal::g_driver.load(std::memory_order_acquire);
  CUcontext top = nullptr;
  if (state == State::kElided) {
    const CUresult code = driver.CtxGetCurrent(&top);
    if (code == CUDA_SUCCESS && top == context_) return CUDA_SUCCESS;
    return LeaveDisturbed(state, code, nullptr);
  }
  if (state == State::kExact) return LeaveDisturbed(state, CUDA_SUCCESS, nullptr);
  CUresult code = driver.CtxPopCurrent(&top);
  if (code != CUDA_SUCCESS || top != context_) return LeaveDisturbed(state, code, top);
  if (mode_ == GuardMode::kElide) return CUDA_SUCCESS;
  code = driver.CtxGetCurrent(&top);
  if (code == CUDA_SUCCESS && top == caller_) return CUDA_SUCCESS;
  return LeaveDisturbed(state, CUDA_SUCCESS, context_);
}

internal::Finding ContextGuard::Mend(const internal::ThreadStack& stack, State state,
                                       CUresult code, CUcontext popped) const noexcept {
  if (state == State::kElided) return internal::RepairElided(stack, context_);
  if (state == State::kExact) {
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

CUresult ContextGuard::LeaveDisturbed(State state, CUresult code, CUcontext popped) noexcept {
  // The process is ending: there is no stack left to restore, and nothing to report.
  if (code == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  const internal::ThreadStack stack(*internal::g_driver.load(std::memory_order_acquire));
  const internal::Finding finding = Mend(stack, state, code, popped);
  if (!finding.happened || finding.result == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  gone_ = finding.kind == IncidentKind::kDestroyed;
  if (finding.repair == Repair::kUnrepaired) stack.MakeCurrent(caller_);
  internal::Report(finding, stack, context_, file_, line_);
  if (finding.repair != Repair::kUnrepaired) return CUDA_SUCCESS;
  return finding.result != CUDA_SUCCESS ? finding.result : CUDA_ERROR_INVALID_CONTEXT;
}

// Enters again after Leave(), unless leaving has shown that there is nothing to enter:
// pushing a destroyed handle is accepted and corrupts the driver's heap.
void ContextGuard::Reenter() noexcept {
  if (gone_) {
    result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else {
    Enter();
  }
}

CUresult ContextGuard::Reassert() noexcept {
  if (state_ == State::kOut) return ok() ? CUDA_ERROR_ILLEGAL_STATE : result_;
  if (state_ != State::kExact) {
    const Driver& driver = *internal::g_driver.load(std::memory_order_acquire);
    CUcontext top = nullptr;
    if (driver.CtxGetCurrent(&top) == CUDA_SUCCESS && top == context_) return CUDA_SUCCESS;
  }
  static_cast<void>(Leave());
  Reenter();
  return result_;
}

CUresult ContextGuard::Restore() noexcept { return Leave(); }

const char* ContextGuard::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
