// SPDX-License-Identifier: Apache-2.0

#include "cuguest/no_context_guard.h"

#include "lib/context/advice.h"
#include "lib/context/stack_repair.h"
#include "lib/context/thread_guards.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// Empties a stack that Snapshot() has just seen whole.
CUresult TakeOff(const internal::ThreadStack& stack, const internal::Incarnation* entries,
                 int depth) {
  for (int i = depth - 1; i >= 0; --i) {
    CUcontext popped = nullptr;
    const CUresult code = stack.Pop(&popped);
    if (code == CUDA_SUCCESS) continue;
    for (int j = i + 1; j < depth; ++j) static_cast<void>(stack.Push(entries[j]));
    return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace

const internal::StackGuard::Type NoContextGuard::kType = {
    [](StackGuard* guard) { return static_cast<NoContextGuard*>(guard)->Restore(); },
    [](StackGuard* guard) { return static_cast<NoContextGuard*>(guard)->Suspend(); },
    [](StackGuard* guard) { static_cast<NoContextGuard*>(guard)->Resume(); },
    [](StackGuard* guard) { return static_cast<NoContextGuard*>(guard)->SuspendIfOnTop(); },
    &internal::SuspendAll,
    &internal::ForgetListOf,
};

void NoContextGuard::Enter() noexcept {
  const Driver* driver = internal::TryDriver(&result_);
  if (driver == nullptr) return;
  CUcontext current = nullptr;
  result_ = driver->CtxGetCurrent(&current);
  if (result_ != CUDA_SUCCESS) return;
  const internal::ThreadStack stack(*driver);
  depth_ = 0;
  if (current != nullptr) {
    result_ = internal::Snapshot(stack, taken_, kMaxDepth, &depth_);
    if (result_ == CUDA_SUCCESS) result_ = TakeOff(stack, taken_, depth_);
  }
  if (result_ != CUDA_SUCCESS) return;
  state_ = State::kInside;
  internal::Link(this, &kType);
}

CUresult NoContextGuard::Restore() noexcept {
  if (state_ == State::kOut) {
    internal::ReportUnasked(result_, &asked_, file_, line_);
    return CUDA_SUCCESS;
  }
  if (type != &kType) return type->restore(this);
  if (!internal::IsThisThread(thread)) {
    return internal::ReportElsewhere(nullptr, file_, line_);
  }
  if (state_ == State::kInside) return Leave();
  internal::Resign(this);
  state_ = State::kOut;
  return CUDA_SUCCESS;
}

CUresult NoContextGuard::Leave() noexcept {
  internal::Unlink(this);
  state_ = State::kOut;
  const Driver& driver = internal::ResolvedDriver();
  CUcontext current = nullptr;
  const CUresult code = driver.CtxGetCurrent(&current);
  if (code == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (code == CUDA_SUCCESS && current == nullptr && depth_ == 0) return CUDA_SUCCESS;
  const internal::ThreadStack stack(driver);
  const internal::Finding finding = internal::RestoreAfterNone(stack, taken_, depth_);
  if (!finding.happened || finding.result == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (finding.kind == IncidentKind::kFailed && depth_ > 0) {
    stack.MakeCurrent(taken_[depth_ - 1]);
  }
  internal::Report(finding, stack, nullptr, file_, line_);
  if (finding.repair != Repair::kUnrepaired) return CUDA_SUCCESS;
  return finding.result != CUDA_SUCCESS ? finding.result : CUDA_ERROR_INVALID_CONTEXT;
}

void NoContextGuard::GiveUp() noexcept {
  if (state_ != State::kOut) type->forget_list_of(thread);
}

CUresult NoContextGuard::Suspend() noexcept {
  const CUresult code = Restore();
  state_ = State::kSuspended;
  return code;
}

bool NoContextGuard::SuspendIfOnTop() noexcept {
  CUcontext current = nullptr;
  const CUresult code = internal::ResolvedDriver().CtxGetCurrent(&current);
  return code == CUDA_SUCCESS && current == nullptr && Suspend() == CUDA_SUCCESS;
}

void NoContextGuard::Resume() noexcept {
  state_ = State::kOut;
  asked_ = !internal::kReportsUnasked;
  Enter();
}

const char* NoContextGuard::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
