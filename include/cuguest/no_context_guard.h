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

#include "cuguest/export.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/this_thread.h"
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
/// Cost:    one driver call on an empty stack, and one more at the end; otherwise about
///          ten for every entry. No lock, no allocation.
class [[nodiscard]] CUGUEST_API NoContextGuard : private internal::StackGuard {
 public:
  CUGUEST_HIDE static constexpr int kMaxDepth = 32;

  [[nodiscard]] CUGUEST_HIDE explicit NoContextGuard(const char* file = __builtin_FILE(),
                                                     int line = __builtin_LINE()) noexcept
      : file_(file), line_(line) {
    Enter();
  }
  [[nodiscard]] CUGUEST_HIDE explicit NoContextGuard(Location where) noexcept
      : NoContextGuard(where.file, where.line) {}
  NoContextGuard(const NoContextGuard&) = delete;
  NoContextGuard& operator=(const NoContextGuard&) = delete;
  CUGUEST_HIDE ~NoContextGuard() {
    if (Restore() != CUDA_SUCCESS) GiveUp();
  }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result() == CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept {
    asked_ = true;
    return result_;
  }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "leave every context"; }
  [[nodiscard]] const char* advice() const noexcept;

  /// Ends the scope now. Does nothing the second time.
  ///
  /// Errors: as ContextGuard::Restore.
  CUresult Restore() noexcept;

 private:
  friend class HostScope;
  enum class State : unsigned char { kOut, kSuspended, kInside };

  static const Type kType;

  void Enter() noexcept;
  CUresult Leave() noexcept;
  void GiveUp() noexcept;
  CUresult Suspend() noexcept;
  bool SuspendIfOnTop() noexcept;
  void Resume() noexcept;

  const char* file_;
  int line_;
  CUresult result_ = CUDA_SUCCESS;
  State state_ = State::kOut;
  mutable bool asked_ = !internal::kReportsUnasked;
  int depth_ = 0;
  internal::Incarnation taken_[kMaxDepth];  // bottom first
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_NO_CONTEXT_GUARD_H_
