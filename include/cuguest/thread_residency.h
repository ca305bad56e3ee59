// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// thread_residency.h                                                    tier: 2
// -----------------------------------------------------------------------------
/// \file
/// `ThreadResidency` is for threads that belong to a library: a worker binds the
/// library's context once and keeps it, so that the guards it passes on its way find it
/// current and elide.
///
///   void Worker(const SharedContext& context, Queue* jobs) {
///     ThreadResidency home(context.context());
///     if (!home.ok()) return jobs->Fail(ToStatus(home));
///     while (Job* job = jobs->Take()) {
///       job->Run();                                  // guards inside: two queries each
///       if (home.Reassert() != CUDA_SUCCESS) home.MoveTo(Reopen());   // e.g. after a reset
///     }
///   }
///
/// On a caller's thread use ContextGuard: there the context has to go when the call ends.
///
/// Notes are in docs/notes.md.

#ifndef CUGUEST_THREAD_RESIDENCY_H_
#define CUGUEST_THREAD_RESIDENCY_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/export.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// ThreadResidency
///
/// Stack:   +1 from construction until Leave() or destruction, whatever was on it; then as
///          it was found. What others do to it meanwhile is repaired by Reassert() and on
///          leaving, and reported as an incident, as ContextGuard in mode kAlwaysPush does.
/// Count:   none. The owner of the thread keeps the context alive, with a SharedContext or a
///          PrimaryContext.
/// Threads: bound to the constructing thread, which is known by a number that is never used
///          again: not even a thread that began after it had ended is mistaken for it. It ends in
///          any order, as ContextGuard's Note [Scopes end in any order] says.
/// Errors:  construction never throws, never aborts: test ok(). result() is what
///          ContextGuard's would be, and then what the last Reassert() or MoveTo() gave.
class [[nodiscard]] CUGUEST_API ThreadResidency {
 public:
  /// Cost: three driver calls.
  [[nodiscard]] explicit ThreadResidency(const ContextRef& context,
                                         Location where = Location::Here()) noexcept;
  ThreadResidency(const ThreadResidency&) = delete;
  ThreadResidency& operator=(const ThreadResidency&) = delete;
  /// As Leave(), whose result an incident carries.
  CUGUEST_HIDE ~ThreadResidency() = default;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return result_; }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept {
    return "make a context a thread's own";
  }
  [[nodiscard]] const char* advice() const noexcept;

  /// The context; nullptr if the thread has none.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return context_.get(); }

  /// Between two jobs: makes the context current again if a job left another, and checks that it is
  /// alive. If it is not, the thread has what it had at the beginning.
  ///
  /// Errors: CUDA_ERROR_CONTEXT_IS_DESTROYED  it was reset or destroyed; MoveTo() another
  ///         CUDA_ERROR_ILLEGAL_STATE         nothing done: not inside, not on the thread it is
  ///                                          bound to, or another scope is open inside it
  ///         and the code with which repairing failed.
  /// Cost:   two driver calls, contention-free, when nothing is wrong.
  CUresult Reassert() noexcept;

  /// Leaves the context and makes `context` the thread's own. On failure the thread has
  /// none, and its stack is what was found at the beginning.
  ///
  /// Errors: as construction; CUDA_ERROR_ILLEGAL_STATE, and nothing done, on another thread, or if
  ///         another scope is open inside it.
  CUresult MoveTo(const ContextRef& context) noexcept;

  /// Takes the context off. Does nothing the second time.
  ///
  /// Errors: as ContextGuard::Leave: CUDA_ERROR_NOT_READY if another scope is open inside it, or
  /// on
  ///         another thread than the one it is bound to, whose stack keeps the entry until that
  ///         thread next begins or ends a scope (kElsewhere). It has left all the same.
  CUresult Leave() noexcept;

 private:
  const internal::BoundThread thread_;
  const Location where_;
  ContextRef context_;
  CUresult result_ = CUDA_ERROR_INVALID_CONTEXT;
  ContextScope scope_;  // inside, unless its context is gone, while context_ is not empty
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_THREAD_RESIDENCY_H_
