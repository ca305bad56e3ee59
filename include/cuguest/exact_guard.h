// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `ExactGuard` is a ContextGuard that knows the whole stack: it takes the stack apart when it
/// enters, and compares and restores it entry by entry at its end. Nothing is inferred, and nothing
/// goes unseen. For tests and debugging.

#ifndef CUGUEST_EXACT_GUARD_H_
#define CUGUEST_EXACT_GUARD_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   +1 on construction, undone on destruction; net 0 over the scope.
/// Count:   as ContextGuard (context_guard.h).
/// Threads: bound; as ContextGuard, Note [Scopes end in any order] included.
/// Errors:  as ContextGuard. CUDA_ERROR_NOT_SUPPORTED if the stack is deeper than kMaxDepth or
///          holds an entry whose context is destroyed: it could not be put back, so nothing is
///          changed. CUDA_ERROR_OUT_OF_MEMORY: no host memory to remember the stack.
/// Cost:    about ten driver calls for every entry of the stack, and one allocation of 16 bytes an
///          entry, which lasts as long as the scope, and is lost if its thread ends first. No lock.
class [[nodiscard]] CUGUEST_API ExactGuard {
 public:
  CUGUEST_HIDE static constexpr int kMaxDepth = internal::Scope::kMaxExactDepth;

  /// Enters `context`; by reference only if its incarnation is alive. `where` is for incidents.
  /// Requires: `context` is alive.
  [[nodiscard]] CUGUEST_HIDE explicit ExactGuard(CUcontext context,
                                                 Location where = Location::Here()) noexcept
      : ExactGuard(internal::Incarnation::Unknown(context), where) {}
  [[nodiscard]] CUGUEST_HIDE explicit ExactGuard(const ContextRef& context,
                                                 Location where = Location::Here()) noexcept
      : ExactGuard(internal::Incarnation::Of(context), where) {}
  ExactGuard(const ExactGuard&) = delete;
  ExactGuard& operator=(const ExactGuard&) = delete;
  CUGUEST_HIDE ~ExactGuard() { static_cast<void>(scope_.Leave(internal::Reported::kByIncident)); }

  /// As those of ContextGuard.
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return scope_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "enter a context"; }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return scope_.advice(); }
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return scope_.context(); }
  [[nodiscard]] CUGUEST_HIDE ContextRef context() const noexcept { return scope_.Ref(); }
  [[nodiscard]] CUGUEST_HIDE CUcontext caller() const noexcept { return scope_.caller(); }

  /// As ContextGuard::Reassert, for the cost of leaving and entering.
  CUGUEST_HIDE CUresult Reassert() noexcept { return scope_.Reassert(); }
  /// As ContextGuard::Leave.
  CUGUEST_HIDE CUresult Leave() noexcept { return scope_.Leave(internal::Reported::kByResult); }

 private:
  CUGUEST_HIDE ExactGuard(const internal::Incarnation& context, Location where) noexcept
      : scope_(internal::Scope::kNotSet) {
    scope_.EnterExactly(&context, where);
  }

  internal::Scope scope_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_EXACT_GUARD_H_
