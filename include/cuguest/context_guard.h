// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `ContextGuard` makes one CUDA context current for a scope and then leaves the calling thread's
/// stack of contexts as it found it, also when something that was called inside did not. It calls
/// the driver only: it starts no CUDA runtime, creates no context, never calls cuInit.
///
///   absl::Status Blur(CUcontext context, Image* image) {
///     cuguest::ContextGuard guard(context);
///     CUGUEST_RETURN_IF_ERROR(guard);    // of status.h
///     return LaunchBlur(image);          // runs with `context` current
///   }                                    // the caller's context is current again

#ifndef CUGUEST_CONTEXT_GUARD_H_
#define CUGUEST_CONTEXT_GUARD_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/incident.h"
#include "cuguest/internal/current_context.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct OfRelaxed;
}  // namespace internal

/// Whether a guard pushes a context that is current already.
enum class GuardMode : unsigned char {
  /// No push then: two queries, over fifty times cheaper than a push and a pop with 16 threads in
  /// one context, because the driver counts those atomically.
  kElide,
  /// Always push: the caller's entry survives even a callee that replaces the top.
  kAlwaysPush,
};

/// Stack:   +1 or +0 on construction, undone on destruction; net 0 over the scope. Where a callee
///          left another stack than it found, the caller's context is current afterwards, and the
///          rest is what it was on the likeliest reading: see Note [What is inferred].
/// Count:   none: the caller keeps the context alive.
/// Threads: bound; Note [Scopes end in any order] says what ending it on another thread does.
/// Cost:    driver calls when nothing went wrong: 2 elided (query, query), 4 switched (query, push,
///          pop, query), and one more (cuCtxGetId) when built from a ContextRef. None of them
///          fails. No lock; no allocation up to 16 deep; one thread_local.
/// Errors:  construction never throws, never aborts: test ok(). A guard that failed to enter has
///          changed nothing and will restore nothing; result() says why. If neither ok() nor
///          result() was called, it reports kUnasked when it ends.
/// Source:  CUDA Driver API, "Context Management"; Note [How a guard restores]; docs/guarantees.md.
class [[nodiscard]] CUGUEST_API ContextGuard {
 public:
  /// Empty until MoveTo() enters, in `mode`: it is ok(), has no context, and its end does nothing.
  /// No driver call.
  [[nodiscard]] CUGUEST_HIDE explicit ContextGuard(GuardMode mode = GuardMode::kElide) noexcept
      : scope_(mode == GuardMode::kAlwaysPush) {}

  /// Enters `context`. Give a ContextRef where it may have been destroyed or reset meanwhile: exact
  /// for a reset, best effort for a destroyed context, as ContextRef::IsAlive says. nullptr is
  /// refused, not read as "none": for that, see NoContextGuard. `where` is for incidents. The
  /// default names the code that constructs the guard: give it where that is the standard
  /// library's, as in emplace().
  /// Requires: `context` is alive: pushing a destroyed handle corrupts the driver's heap, and no
  ///           driver call can detect one for certain.
  [[nodiscard]] [[gnu::always_inline]] CUGUEST_HIDE inline explicit ContextGuard(
      CUcontext context, GuardMode mode = GuardMode::kElide,
      Location where = Location::Here()) noexcept
      : scope_(internal::Scope::kNotSet) {
    scope_.Enter(context, mode == GuardMode::kAlwaysPush, where);
  }

  /// The same, refused if the ref's context was destroyed or reset, even if another incarnation is
  /// current at its handle: everything in the old one is gone. Also of a SharedContext, a Stream or
  /// a DeviceBuffer, which convert.
  [[nodiscard]] [[gnu::always_inline]] CUGUEST_HIDE inline explicit ContextGuard(
      const ContextRef& context, GuardMode mode = GuardMode::kElide,
      Location where = Location::Here()) noexcept
      : scope_(internal::Scope::kNotSet) {
    scope_.Enter(context, mode == GuardMode::kAlwaysPush, where);
  }

  /// Neither copied nor moved: to hand a scope on, use ContextScope (context_scope.h). A
  /// conditional guard starts empty and enters with MoveTo(), or is a std::optional<ContextGuard>
  /// and emplace(context, GuardMode::kElide, Location::Here()).
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

  /// As Leave(), whose result an incident carries.
  [[gnu::always_inline]] CUGUEST_HIDE inline ~ContextGuard() {
    static_cast<void>(scope_.Leave(internal::Reported::kByIncident));
  }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return scope_.ok(); }

  /// Errors: why it is not inside, which ToStatus(guard) turns into a status with advice in words:
  ///         CUDA_ERROR_INVALID_CONTEXT       nullptr, or an empty ContextRef
  ///         CUDA_ERROR_CONTEXT_IS_DESTROYED  the ContextRef's context was destroyed or reset
  ///         CUDA_ERROR_NOT_INITIALIZED       a forked child, see advice()
  ///         CUDA_ERROR_NOT_PERMITTED         inside a stream callback
  ///         CUDA_ERROR_OUT_OF_MEMORY         the driver has none, or the host, over 16 scopes deep
  ///         CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, _STUB_LIBRARY,
  ///         _CALL_REQUIRES_NEWER_DRIVER      no usable driver, see driver.h
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return scope_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "enter a context"; }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return scope_.advice(); }

  /// The guard's context; nullptr if it is empty.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return scope_.context(); }
  /// The guard's context as a reference, for a PerContext or another guard; empty, with the reason
  /// as its result(), where the guard is not inside: it failed, has ended, or could not come back.
  /// Cost: none where it is known; of a guard of a raw handle one driver call (cuCtxGetId), the
  ///       first time, and it is one by reference from then on. On another thread than the guard's
  ///       one call each time.
  [[nodiscard]] CUGUEST_HIDE ContextRef context() const noexcept { return scope_.Ref(); }
  /// What was current when it entered; nullptr if nothing was.
  [[nodiscard]] CUGUEST_HIDE CUcontext caller() const noexcept { return scope_.caller(); }
  /// Whether it is inside without having pushed.
  [[nodiscard]] CUGUEST_HIDE bool elided() const noexcept { return scope_.elided(); }

  /// After a call into foreign code: makes the guard's context current again if it is not, reports
  /// the incident, and repairs the caller's entries below by the same rules as at its end.
  /// Stack:  as right after construction.
  /// Errors: the code with which re-entering failed; the guard is then no longer ok(), and the
  ///         caller's context is current. Its end returns what leaving gave. result(), and nothing
  ///         done: it is not ok().
  ///         CUDA_ERROR_ILLEGAL_STATE, and nothing done: it is empty or has ended, another guard of
  ///         this copy of cuguest is inside it, a HostScope has taken it out, or this is another
  ///         thread. Also where a listener has left it meanwhile: then it is outside.
  /// Cost:   one driver call when nothing is wrong, two when built from a ContextRef.
  CUGUEST_HIDE CUresult Reassert() noexcept { return scope_.Reassert(); }

  /// Moves the guard to `context`: see Note [Moving to another context]. A guard that is empty or
  /// has ended enters it in the mode that it was constructed with, and is bound to the calling
  /// thread from then on. caller() stays what it was when it entered.
  /// Requires: `context` is alive.
  /// Stack:  as right after constructing a guard of `context` in place of this one.
  /// Errors: those of construction. The guard is where it was, and may be moved on; the end of the
  ///         scope restores the caller's stack as ever. result() is the code until a MoveTo() or
  ///         Reassert() succeeds. If a driver call fails between leaving one context and entering
  ///         the other, the guard may be outside, with the caller's context current; Reassert()
  ///         tells. Its end returns what leaving gave. CUDA_ERROR_ILLEGAL_STATE, and nothing done:
  ///         another guard of this copy of cuguest is inside it, a HostScope has taken it out, or
  ///         it is bound to another thread (result() stays as it was), or a listener has left it.
  /// Cost:   at most three driver calls for a change, one if there is none; one more by reference.
  [[nodiscard]] CUGUEST_HIDE CUresult MoveTo(CUcontext context,
                                             Location where = Location::Here()) noexcept {
    return scope_.MoveTo(internal::Incarnation::Unknown(context), where);
  }
  /// The same, refused if the ref's context was destroyed or reset.
  [[nodiscard]] CUGUEST_HIDE CUresult MoveTo(const ContextRef& context,
                                             Location where = Location::Here()) noexcept {
    return scope_.MoveTo(internal::Incarnation::Of(context), where);
  }

  /// Ends the scope now. Does nothing the second time, nor for an empty guard.
  /// Errors: CUDA_SUCCESS when the caller's stack is as it was, or was repaired. Otherwise it has
  ///         ended all the same; the code is of this end, or of a MoveTo() or Reassert() before
  ///         it. The incident has the driver's, if a call of the repair failed:
  ///         CUDA_ERROR_CONTEXT_IS_DESTROYED  the caller's context is over, and no other's
  ///         CUDA_ERROR_INVALID_CONTEXT       the caller's context is current; an entry beneath it
  ///                                          was over and could not be put back
  ///         another                          the driver refused a call that the repair needed
  ///         CUDA_ERROR_DEINITIALIZED is success: the process is ending.
  ///         CUDA_ERROR_NOT_READY  another guard is inside it, or this is not its own thread: it
  ///                               has ended, and its thread restores the stack when it can
  CUGUEST_HIDE CUresult Leave() noexcept { return scope_.Leave(internal::Reported::kByResult); }

 private:
  friend class AcquiredGuard;
  friend class HostScope;
  friend struct internal::OfRelaxed;

  CUGUEST_HIDE explicit ContextGuard(internal::Scope::NotSet unset) noexcept : scope_(unset) {}

  internal::Scope scope_;
};
static_assert(sizeof(ContextGuard) <= 72);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_GUARD_H_
