// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `ContextScope` is a ContextGuard in two halves, for hosts that enter a context in one function
/// and leave it in another, and keep a stack of scopes of their own. Where the scope is a block,
/// use ContextGuard; for a library's own threads, ThreadHome (thread_home.h).
///
///   cuguest::ContextScope& scope = scopes.emplace_back();  // of a std::vector<ContextScope>
///   const CUresult code = scope.Enter(context);
///   if (code != CUDA_SUCCESS) return cuguest::ToStatus(scope);
///   ...
///   scopes.back().Leave();                                 // in another function
///   scopes.pop_back();

#ifndef CUGUEST_CONTEXT_SCOPE_H_
#define CUGUEST_CONTEXT_SCOPE_H_

#include <cuda.h>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/scope.h"

CUGUEST_BEGIN_NAMESPACE

/// It verifies, repairs and reports as a ContextGuard does. It may be moved, as a vector moves its
/// elements; scopes may be left in any order.
/// Stack:   +1 or +0 by Enter(), undone by Leave(); net 0 over the scope.
/// Count:   none: the caller keeps the context alive.
/// Threads: bound; as ContextGuard, Note [Scopes end in any order] included. Move it on any thread.
/// Cost:    that of a ContextGuard. Moving it costs nothing.
class [[nodiscard]] CUGUEST_API ContextScope {
 public:
  /// Inside nothing. No driver call.
  [[nodiscard]] CUGUEST_HIDE ContextScope() noexcept = default;
  /// `other` is inside nothing then, and may enter again.
  CUGUEST_HIDE ContextScope(ContextScope&& other) noexcept = default;
  ContextScope& operator=(ContextScope&&) = delete;
  /// As Leave(), whose result an incident carries.
  CUGUEST_HIDE ~ContextScope() {
    if (scope_.IsInside()) static_cast<void>(scope_.Leave(internal::Reported::kByIncident));
  }

  /// Enters `context`. `where` is for incidents.
  /// Requires: `context` is alive.
  /// Errors: those of a ContextGuard (context_guard.h): nothing has changed then, and it may enter
  ///         again. CUDA_ERROR_ILLEGAL_STATE, and nothing done: it is inside, or outside with a
  ///         code for Leave() to return, which Reassert() or MoveTo() has found.
  [[nodiscard]] CUGUEST_HIDE CUresult Enter(CUcontext context, GuardMode mode = GuardMode::kElide,
                                            Location where = Location::Here()) noexcept {
    if (scope_.IsInside()) return CUDA_ERROR_ILLEGAL_STATE;
    scope_.Enter(context, mode == GuardMode::kAlwaysPush, where);
    return result();
  }
  /// The same, refused if the ref's context was destroyed or reset.
  [[nodiscard]] CUGUEST_HIDE CUresult Enter(const ContextRef& context,
                                            GuardMode mode = GuardMode::kElide,
                                            Location where = Location::Here()) noexcept {
    if (scope_.IsInside()) return CUDA_ERROR_ILLEGAL_STATE;
    scope_.Enter(context, mode == GuardMode::kAlwaysPush, where);
    return result();
  }

  /// Errors: as ContextGuard::Leave: it has left, and is inside nothing then.
  ///         CUDA_ERROR_ILLEGAL_STATE, and nothing done: it is inside nothing.
  CUGUEST_HIDE CUresult Leave() noexcept {
    return scope_.IsInside() ? scope_.Leave(internal::Reported::kByResult)
                             : CUDA_ERROR_ILLEGAL_STATE;
  }

  /// As those of ContextGuard. result() is what the last Enter(), MoveTo() or Reassert() gave;
  /// before the first, it is ok(). When Reassert() has found its context gone, it is inside
  /// nothing; one that MoveTo() could not move stays where it was.
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return scope_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "enter a context"; }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return scope_.advice(); }
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return scope_.context(); }
  [[nodiscard]] CUGUEST_HIDE ContextRef context() const noexcept { return scope_.Ref(); }
  [[nodiscard]] CUGUEST_HIDE CUcontext caller() const noexcept { return scope_.caller(); }
  [[nodiscard]] CUGUEST_HIDE bool elided() const noexcept { return scope_.elided(); }
  CUGUEST_HIDE CUresult Reassert() noexcept { return scope_.Reassert(); }
  [[nodiscard]] CUGUEST_HIDE CUresult MoveTo(CUcontext context,
                                             Location where = Location::Here()) noexcept {
    return scope_.MoveTo(internal::Incarnation::Unknown(context), where);
  }
  [[nodiscard]] CUGUEST_HIDE CUresult MoveTo(const ContextRef& context,
                                             Location where = Location::Here()) noexcept {
    return scope_.MoveTo(internal::Incarnation::Of(context), where);
  }

 private:
  internal::Scope scope_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_SCOPE_H_
