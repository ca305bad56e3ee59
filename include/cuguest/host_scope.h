// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// host_scope.h                                                          tier: 2
// -----------------------------------------------------------------------------
/// \file
/// `HostScope` is the inverse of the guards: inside a guarded scope it gives the host
/// its own stack back, so that a user callback, allocator or logger runs where its
/// author expects, and then comes back to where the library was.
///
///   cuguest::ContextGuard guard(context_);
///   ...
///   {
///     cuguest::HostScope host(guard);
///     if (!host.ok()) return cuguest::ToStatus(host);
///     options.allocate(bytes);           // runs with the caller's context current
///   }
///   if (!guard.ok()) return cuguest::ToStatus(guard);   // could not come back

#ifndef CUGUEST_HOST_SCOPE_H_
#define CUGUEST_HOST_SCOPE_H_

#include "cuguest/context_guard.h"
#include "cuguest/export.h"
#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_NAMESPACE

/// HostScope
///
/// It leaves the ContextGuards and NoContextGuards of this copy of cuguest that are inside on the
/// calling thread (those of ThreadResidency, DeviceGuard and CalleeScope too), the innermost
/// first, and enters them again in the opposite order: the host finds the stack with which it
/// called the library, however many guards are in between. It stops where somebody else's entry
/// lies above what a guard left on the stack: that is the caller's, who called the library from
/// inside it (a callback that was called without a HostScope, say).
///
/// Stack:   leaves each guard's scope on construction (verifying and repairing, as at
///          its end) and enters it again on destruction. What the host does to its
///          own stack meanwhile is the host's right: the guards take what they find on
///          the way back for the caller's stack, and report nothing.
/// Threads: bound to the constructing thread; destroy it there. Ended on another it reports
///          kElsewhere, and the guards stay outside.
/// Errors:  result() is the first failure that leaving gave, or CUDA_ERROR_ILLEGAL_STATE, with
///          nothing changed: `guard` belongs to another thread, somebody else's entry lies above
///          it, or one of this thread's guards was ended on another thread before. A guard that
///          cannot come back (the host destroyed its context, also where the handle names another
///          incarnation) is no longer ok() and pushes nothing; what was current before it stays so.
/// Cost:    for each guard that of leaving and entering it, and one cuCtxGetId (two the first
///          time, for a guard of a raw handle), and two queries for those but the innermost;
///          test/context/guard_cost_test.cc. No lock, no allocation.
class [[nodiscard]] CUGUEST_API HostScope : private internal::HostView {
 public:
  [[nodiscard]] explicit HostScope(const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) noexcept;
  /// The same. `guard` is the one to ask afterwards; where it is not inside it makes no
  /// difference.
  [[nodiscard]] explicit HostScope(const ContextGuard& guard, const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) noexcept;
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
  CUGUEST_HIDE ~HostScope() {
    if (resume_all != nullptr) resume_all(this);
  }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return result_; }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept {
    return "restore the host's context";
  }
  [[nodiscard]] const char* advice() const noexcept;

 private:
  CUresult result_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_HOST_SCOPE_H_
