// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
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

#include "cuguest/export.h"
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   empty inside the scope, as it was afterwards. What a callee leaves on it
///          is popped and reported as kLeakedPush.
/// Threads: bound; as ContextGuard, Note [Scopes end in any order] included.
/// Errors:  as ContextGuard, kUnasked included. CUDA_ERROR_NOT_SUPPORTED if the stack is
///          deeper than kMaxDepth or holds an entry whose context is destroyed: such an
///          entry could not be put back, so nothing is changed.
///          A context that is destroyed inside the scope is not put back (kDestroyed), nor
///          is another one that was given its handle; a primary context that was reset and
///          retained again is.
/// Cost:    one driver call on an empty stack, and one more at the end; five more for every
///          entry. No lock; one allocation of 16 bytes an entry, which lasts as long as the scope,
///          and is lost if its thread ends first.
class [[nodiscard]] CUGUEST_API NoContextGuard {
 public:
  CUGUEST_HIDE static constexpr int kMaxDepth = internal::Scope::kMaxExactDepth;

  [[nodiscard]] CUGUEST_HIDE explicit NoContextGuard(Location where = Location::Here()) noexcept
      : scope_(internal::Scope::kNotSet) {
    scope_.EnterExactly(nullptr, where);
  }
  NoContextGuard(const NoContextGuard&) = delete;
  NoContextGuard& operator=(const NoContextGuard&) = delete;
  CUGUEST_HIDE ~NoContextGuard() {
    static_cast<void>(scope_.Leave(internal::Reported::kByIncident));
  }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return scope_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "leave every context"; }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return scope_.advice(); }

  /// Ends the scope now. Does nothing the second time.
  /// Errors: as ContextGuard::Leave.
  CUGUEST_HIDE CUresult Leave() noexcept { return scope_.Leave(internal::Reported::kByResult); }

 private:
  internal::Scope scope_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_NO_CONTEXT_GUARD_H_
