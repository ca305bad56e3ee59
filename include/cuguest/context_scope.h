// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// context_scope.h                                                       tier: 2
// -----------------------------------------------------------------------------
/// \file
/// `ContextScope` is a ContextGuard in two halves, for hosts that enter a context in one function
/// and leave it in another, and keep a stack of scopes of their own.
///
///   cuguest::ContextScope& scope = scopes.emplace_back();  // of a std::vector<ContextScope>
///   const CUresult code = scope.Enter(context);
///   if (code != CUDA_SUCCESS) return cuguest::ToStatus(scope);
///   ...
///   scopes.back().Leave();                                 // in another function
///   scopes.pop_back();
///
/// Where the scope is a block, use ContextGuard, which cannot be left in a wrong order.

#ifndef CUGUEST_CONTEXT_SCOPE_H_
#define CUGUEST_CONTEXT_SCOPE_H_

#include <cuda.h>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// ContextScope
///
/// It verifies, repairs and reports as a ContextGuard in the modes kElide and kAlwaysPush does. It
/// has no room for kExact, and so is a tenth of the size; and it may be moved, as a vector moves
/// its elements: its place among the guards of the thread goes with it.
///
/// Stack:   +1 or +0 by Enter(), undone by Leave(); net 0 over the scope.
/// Count:   none; it keeps nothing alive.
/// Threads: bound to the thread that entered, until it leaves. Move and destroy it there. Moved or
///          destroyed on another it reports kElsewhere, leaves both threads' stacks alone, and is
///          inside nothing any more; its own thread keeps the entry.
/// Cost:    that of a ContextGuard. No lock, no allocation. Moving it makes no driver call, and
///          looks at each guard inside of it.
/// Source:  test/context/context_scope_test.cc; test/context/repair_table_test.cc for the repair.
class [[nodiscard]] CUGUEST_API ContextScope : private GuardBase {
 public:
  /// Inside nothing. No driver call.
  [[nodiscard]] CUGUEST_HIDE ContextScope() noexcept : GuardBase(GuardMode::kElide) {}
  /// Takes over the place of `other`, which is inside nothing then, and may enter again.
  ContextScope(ContextScope&& other) noexcept;
  ContextScope& operator=(ContextScope&&) = delete;
  /// As Leave(). Guards and scopes that are inside it are ended first, the innermost first: a
  /// vector destroys its elements in the order of entering.
  CUGUEST_HIDE ~ContextScope() {
    if (IsBound()) End();
  }

  /// Enters `context`, which must be alive. `file` and `line` are for incidents.
  ///
  /// Errors: those of a ContextGuard (context_guard.h): nothing has changed then, there is nothing
  ///         to leave, and it may enter again.
  ///         CUDA_ERROR_ILLEGAL_STATE  it is inside: nothing done
  ///         CUDA_ERROR_INVALID_VALUE  kExact: nothing done
  [[nodiscard]] CUGUEST_HIDE CUresult Enter(CUcontext context, GuardMode mode = GuardMode::kElide,
                                            const char* file = __builtin_FILE(),
                                            int line = __builtin_LINE()) noexcept {
    if (Rarely(IsBound() || mode == GuardMode::kExact)) return RefuseToEnter();
    GuardBase::Enter(context, mode, {file, line});
    return result();
  }
  /// The same, refused if the ref's context was destroyed or reset.
  [[nodiscard]] CUGUEST_HIDE CUresult Enter(const ContextRef& context,
                                            GuardMode mode = GuardMode::kElide,
                                            const char* file = __builtin_FILE(),
                                            int line = __builtin_LINE()) noexcept {
    if (Rarely(IsBound() || mode == GuardMode::kExact)) return RefuseToEnter();
    GuardBase::Enter(context, mode, {file, line});
    return result();
  }

  /// Leaves the context.
  ///
  /// Errors: CUDA_SUCCESS when the caller's stack is as it was, or was repaired; otherwise the
  ///         driver's code that prevented it (also in the incident): it has left all the same.
  ///         CUDA_ERROR_ILLEGAL_STATE, and nothing done: it is inside nothing, for it has left
  ///         already, say; another guard of this copy of cuguest is inside it and must end first;
  ///         or it is bound to another thread (an incident, kElsewhere, says so), where it can
  ///         still leave.
  CUGUEST_HIDE CUresult Leave() noexcept {
    return Mostly(IsInside() && IsInnermost()) ? Restore() : LeaveOutOfTurn();
  }

  /// As those of ContextGuard. result() is what the last Enter(), MoveTo() or Reassert() gave on
  /// the thread that it is bound to; it is ok() before the first.
  using GuardBase::advice;
  using GuardBase::caller;
  using GuardBase::doing;
  using GuardBase::elided;
  using GuardBase::get;
  using GuardBase::MoveTo;
  using GuardBase::ok;
  using GuardBase::Reassert;
  using GuardBase::result;

 private:
  friend class ThreadResidency;

  // Whether a thread's list, or a HostScope, names it.
  CUGUEST_HIDE bool IsBound() const noexcept { return state_ >= State::kSuspended; }
  CUresult RefuseToEnter() noexcept;
  CUresult LeaveOutOfTurn() noexcept;
  void End() noexcept;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_SCOPE_H_
