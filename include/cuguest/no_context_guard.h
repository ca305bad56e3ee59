// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// no_context_guard.h                                                    tier: 2
// -----------------------------------------------------------------------------
/// \file
/// `NoContextGuard` makes *no* context current for a scope: around code that must
/// not find one (a plugin that decides by itself, a library that would quietly work
/// in whatever is current), or to prove that a path needs none.
///
///   cuguest::NoContextGuard none;
///   if (!none.ok()) return cuguest::ToStatus(none);
///
/// Pushing nullptr is refused by the driver, and cuCtxSetCurrent(nullptr) only pops
/// one entry, so that another may surface: the whole stack is taken off and put back.

#ifndef CUGUEST_NO_CONTEXT_GUARD_H_
#define CUGUEST_NO_CONTEXT_GUARD_H_

#include <cuda.h>

#include "cuguest/context_guard.h"
#include "cuguest/export.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// NoContextGuard
///
/// Stack:   empty inside the scope, as it was afterwards. What a callee leaves on it
///          is popped and reported as kLeakedPush.
/// Threads: bound to the constructing thread; ended on another, it leaves both threads'
///          stacks alone and reports kElsewhere.
/// Errors:  as ContextGuard, kUnasked included. CUDA_ERROR_NOT_SUPPORTED if the stack is
///          deeper than kMaxDepth or holds an entry whose context is destroyed: such an
///          entry could not be put back, so nothing is changed.
///          A context that is destroyed inside the scope is not put back (kDestroyed), nor
///          is another one that was given its handle; a primary context that was reset and
///          retained again is.
/// Cost:    one driver call on an empty stack, and one more at the end; five more for every
///          entry. No lock, no allocation.
class [[nodiscard]] CUGUEST_API NoContextGuard {
 public:
  CUGUEST_HIDE static constexpr int kMaxDepth = ContextGuard::kMaxExactDepth;

  [[nodiscard]] CUGUEST_HIDE explicit NoContextGuard(const char* file = __builtin_FILE(),
                                                     int line = __builtin_LINE()) noexcept
      : guard_(file, line) {}
  [[nodiscard]] CUGUEST_HIDE explicit NoContextGuard(Location where) noexcept
      : NoContextGuard(where.file, where.line) {}
  NoContextGuard(const NoContextGuard&) = delete;
  NoContextGuard& operator=(const NoContextGuard&) = delete;
  CUGUEST_HIDE ~NoContextGuard() = default;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return guard_.ok(); }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return guard_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "leave every context"; }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return guard_.advice(); }

  /// Ends the scope now. Does nothing the second time.
  ///
  /// Errors: as ContextGuard::Restore.
  CUGUEST_HIDE CUresult Restore() noexcept { return guard_.Restore(); }

 private:
  ContextGuard guard_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_NO_CONTEXT_GUARD_H_
