// SPDX-License-Identifier: Apache-2.0

#include "lib/context/thread_guards.h"

#include "lib/context/stack_repair.h"
#include "lib/core/concurrency.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

#ifdef CUGUEST_SCHEDULED_THREADS
CUGUEST_THREAD_LOCAL(ThisThread) t_this_thread;
#else
__thread ThisThread t_this_thread = {0, nullptr, nullptr, false, {0, nullptr, 0}};
#endif

namespace {

Atomic<unsigned long long> g_threads{0};

// The threads whose list is given up, in no order. Nobody gets here but by a guard that was
// ended on the wrong thread; when there is no more room every list is given up.
constexpr unsigned kMaxForgotten = Spread(64U, 2U);
Atomic<unsigned> g_forgotten{0};
Atomic<unsigned long long> g_forgotten_threads[kMaxForgotten];

ThisThread& Here() noexcept { return t_this_thread; }

// Where a chain by `outer` names `place`, or its end.
template <typename Place>
Place** Find(Place** chain, const Place* place) {
  while (*chain != nullptr && *chain != place) chain = &(*chain)->outer;
  return chain;
}

// False if `place` is not there.
template <typename Place>
bool TakeOff(Place** chain, const Place* place) {
  Place** const found = Find(chain, place);
  if (*found == nullptr) return false;
  *found = place->outer;
  return true;
}

// False if `from` is not there.
bool ReplaceIn(StackGuard** chain, const StackGuard* from, StackGuard* to) {
  StackGuard** const found = Find(chain, from);
  if (*found == nullptr) return false;
  *found = to;
  return true;
}

}  // namespace

unsigned long long NumberOfThisThread() noexcept {
  unsigned long long& number = Here().number;
  if (number == 0) number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

bool IsThisThread(unsigned long long number) noexcept { return number == NumberOfThisThread(); }

void Unlink(StackGuard* guard) noexcept {
  if (Here().innermost == guard || ListIsSound()) TakeOff(&Here().innermost, guard);
}

void Replace(StackGuard* from, StackGuard* to) noexcept {
  if (Here().innermost != from && !ListIsSound()) return;
  if (ReplaceIn(&Here().innermost, from, to)) return;
  for (HostView* view = Here().host_view; view != nullptr; view = view->outer) {
    if (ReplaceIn(&view->suspended, from, to)) return;
  }
}

void EndInside(StackGuard* guard) noexcept {
  if (!IsThisThread(guard->thread) || !ListIsSound()) return;
  if (*Find(&Here().innermost, guard) == nullptr) return;
  while (Here().innermost != guard) {
    static_cast<void>(Here().innermost->type->restore(Here().innermost));
  }
}

void Resign(StackGuard* guard) noexcept {
  if (!ListIsSound()) return;
  for (HostView* view = Here().host_view; view != nullptr; view = view->outer) {
    if (TakeOff(&view->suspended, guard)) return;
  }
}

void LeaveHostView(HostView* view) noexcept { TakeOff(&Here().host_view, view); }

void ForgetListOf(unsigned long long thread) noexcept {
  const unsigned place = g_forgotten.fetch_add(1, std::memory_order_acq_rel);
  if (place < kMaxForgotten) {
    g_forgotten_threads[place].store(thread, std::memory_order_release);
  } else {
    g_forgotten.store(kMaxForgotten + 1, std::memory_order_release);
  }
}

bool ListIsSound() noexcept {
  const unsigned count = g_forgotten.load(std::memory_order_acquire);
  if (count > kMaxForgotten) return false;
  for (unsigned i = 0; i < count; ++i) {
    if (g_forgotten_threads[i].load(std::memory_order_acquire) == Here().number) {
      return false;
    }
  }
  return true;
}

CUresult ReportElsewhere(CUcontext context, Location where) noexcept {
  CUcontext current = nullptr;
  static_cast<void>(stack::Current(&current));
  return Report(
      {true, IncidentKind::kElsewhere, Repair::kUnrepaired, CUDA_ERROR_ILLEGAL_STATE, current},
      context, where);
}

const char* Advice(CUresult code) noexcept {
  switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
      return "no context was given";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "the context that the ContextRef names was destroyed or reset";
    case CUDA_ERROR_NOT_INITIALIZED:
      return IsForkedChild() ? "this process was forked from one that used CUDA"
                             : "CUDA is not initialised in this process, so no context can be "
                               "alive here: was it forked from one that used CUDA?";
    case CUDA_ERROR_NOT_PERMITTED:
      return "called from inside a stream callback or host function";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "the stack is too deep to take apart, or holds an entry whose context is destroyed";
    case CUDA_ERROR_ILLEGAL_STATE:
      return "the guard's scope has ended, another guard is inside it, or it belongs to another "
             "thread";
    default:
      return "";
  }
}

CUGUEST_END_INTERNAL_NAMESPACE
