// SPDX-License-Identifier: Apache-2.0

#include "cuguest/host_scope.h"

#include "lib/context/thread_guards.h"

CUGUEST_BEGIN_NAMESPACE

HostScope::HostScope(const char* file, int line) noexcept
    : HostView{{file, line}, nullptr, nullptr, 0, nullptr},
      result_(internal::SuspendAll(this, nullptr)) {}

HostScope::HostScope(const ContextGuard& guard, const char* file, int line) noexcept
    : HostView{{file, line}, nullptr, nullptr, 0, nullptr},
      result_(guard.IsInside() ? guard.type->suspend_all(this, &guard)
                               : internal::SuspendAll(this, nullptr)) {}

const char* HostScope::advice() const noexcept { return internal::Advice(result_); }

namespace internal {
namespace {

void ResumeAll(HostView* view) {
  if (!IsThisThread(view->thread)) {
    if (view->suspended == nullptr) return;
    static_cast<void>(ReportElsewhere(nullptr, view->where));
    ForgetListOf(view->thread);
    return;
  }
  if (!ListIsSound()) return;
  LeaveHostView(view);
  while (StackGuard* guard = view->suspended) {
    view->suspended = guard->outer;
    guard->type->resume(guard);
  }
}

}  // namespace

CUresult SuspendAll(HostView* view, const StackGuard* wanted) noexcept {
  if ((wanted != nullptr && !IsThisThread(wanted->thread)) || !ListIsSound()) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  ThisThread& here = t_this_thread;
  view->thread = NumberOfThisThread();
  view->resume_all = &ResumeAll;
  view->outer = here.host_view;
  here.host_view = view;
  CUresult result = CUDA_SUCCESS;
  bool found = wanted == nullptr;
  while (StackGuard* guard = here.innermost) {
    if (view->suspended == nullptr) {
      result = guard->type->suspend(guard);
    } else if (!guard->type->suspend_if_on_top(guard)) {
      break;
    }
    found = found || guard == wanted;
    guard->outer = view->suspended;
    view->suspended = guard;
  }
  if (found) return result;
  ResumeAll(view);
  view->resume_all = nullptr;
  return CUDA_ERROR_ILLEGAL_STATE;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
