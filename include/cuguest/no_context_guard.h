// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// no_context_guard.h                                                    tier: 2
// -----------------------------------------------------------------------------
//
// `NoContextGuard` makes *no* context current for a scope: around code that must
// not find one (a plugin that decides by itself, a library that would quietly work
// in whatever is current), or to prove that a path needs none.
//
//   cuguest::NoContextGuard none;
//   if (!none.ok()) return cuguest::ToStatus(none);
//
// Pushing nullptr is refused by the driver, and cuCtxSetCurrent(nullptr) only pops
// one entry, so that another may surface: the whole stack is taken off and put back.

#ifndef CUGUEST_NO_CONTEXT_GUARD_H_
#define CUGUEST_NO_CONTEXT_GUARD_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

// NoContextGuard
//
// Stack:   empty inside the scope, as it was afterwards. What a callee leaves on it
//          is popped and reported as kLeakedPush.
// Threads: bound to the constructing thread.
// Errors:  as ContextGuard. CUDA_ERROR_NOT_SUPPORTED if the stack is deeper than
//          kMaxDepth or holds an entry whose context is destroyed: such an entry
//          could not be put back, so nothing is changed.
//          A context that is destroyed inside the scope is not put back (kDestroyed).
// Cost:    one driver call on an empty stack, and one more at the end; otherwise about
//          eight for every entry. No lock, no allocation.
class [[nodiscard]] CUGUEST_API NoContextGuard {
 public:
  static constexpr int kMaxDepth = 32;

  explicit NoContextGuard(const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) noexcept;
  NoContextGuard(const NoContextGuard&) = delete;
  NoContextGuard& operator=(const NoContextGuard&) = delete;
  ~NoContextGuard() { static_cast<void>(Restore()); }

  [[nodiscard]] bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }
  [[nodiscard]] const char* doing() const noexcept { return "leave every context"; }
  [[nodiscard]] const char* advice() const noexcept;

  // Ends the scope now. Does nothing the second time.
  CUresult Restore() noexcept;

 private:
  const char* file_;
  int line_;
  CUresult result_ = CUDA_SUCCESS;
  bool inside_ = false;
  int depth_ = 0;
  CUcontext taken_[kMaxDepth];  // bottom first
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_NO_CONTEXT_GUARD_H_
