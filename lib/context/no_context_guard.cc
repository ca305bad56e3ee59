// SPDX-License-Identifier: Apache-2.0

#include "cuguest/no_context_guard.h"

#include "lib/context/advice.h"
#include "lib/context/stack_repair.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// Empties a stack that Snapshot() has just seen whole.
CUresult TakeOff(const internal::ThreadStack& stack, const CUcontext* entries, int depth) {
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

NoContextGuard::NoContextGuard(const char* file, int line) noexcept : file_(file), line_(line) {
  const Driver* driver = internal::TryDriver(&result_);
  if (driver == nullptr) return;
  CUcontext current = nullptr;
  result_ = driver->CtxGetCurrent(&current);
  if (result_ != CUDA_SUCCESS) return;
  const internal::ThreadStack stack(*driver);
  if (current != nullptr) {
    result_ = internal::Snapshot(stack, taken_, kMaxDepth, &depth_);
    if (result_ == CUDA_SUCCESS) result_ = TakeOff(stack, taken_, depth_);
  }
  inside_ = result_ == CUDA_SUCCESS;
}

CUresult NoContextGuard::Restore() noexcept {
  if (!inside_) return CUDA_SUCCESS;
  inside_ = false;
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

const char* NoContextGuard::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
