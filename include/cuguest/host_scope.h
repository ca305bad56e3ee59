// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `HostScope` is the inverse of the guards: inside a guarded scope it gives the host its own stack
/// and its own stream-capture mode back, so that a user callback, allocator or logger runs where
/// its author expects, and then comes back to where the library was.
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
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// It leaves the guards and scopes of this copy of cuguest that are open on the calling thread
/// (those of ContextScope, DeviceGuard, CalleeScope and cuguest_push() too), the innermost first,
/// and enters them again in the opposite order: the host finds the stack with which it called the
/// library, however many guards are in between. A cuguest_push() that lies below every guard is the
/// host's own, and stays: the host had asked for it before it called. It stops where somebody
/// else's entry lies above what a guard left on the stack: that is the entry of a caller that
/// called the library from inside that guard (a callback that was called without a HostScope, say).
///
/// A CaptureModeGuard is left as well, unless it was entered before the guard at which it stops:
/// the thread has the mode that the outermost of them found. What the host makes of its mode is its
/// right, as what it makes of its stack: the outermost CaptureModeGuard restores that.
/// Stack:   leaves each guard's scope on construction (verifying and repairing, as at its end) and
///          enters it again on destruction. The host may change its own stack meanwhile: on the way
///          back the guards treat what they find as the caller's stack, and report nothing.
/// Threads: bound; as ContextGuard, Note [Scopes end in any order] included: ended while a guard is
///          open that the host has entered inside it, it brings its guards back when that one has
///          ended; the mode, which the host's CaptureModeGuard keeps, when that one has ended.
///          Ended on another thread it reports kElsewhere, and its guards stay outside: they are
///          not ok().
/// Errors:  result() is the first failure that leaving gave, or CUDA_ERROR_ILLEGAL_STATE: `guard`
///          belongs to another thread or another copy of cuguest, or somebody else's entry lies
///          above it; or CUDA_ERROR_OUT_OF_MEMORY, over 16 scopes deep. The guards are inside again
///          then. A guard that cannot come back (the host destroyed its context, also where the
///          handle names another incarnation) is no longer ok(), says why, and pushes nothing; what
///          was current before it stays so. One that is ended meanwhile does not come back. A
///          CaptureModeGuard comes back unless the driver refuses its mode. A callee that left
///          another mode than it found is an incident (kCaptureMode), at once.
/// Cost:    for each guard that of leaving and entering it, and one cuCtxGetId (two the first time,
///          for a guard of a raw handle), and one query for each that pushed but the innermost.
///          Inside two pushes of cuguest_push(), or one of what was current, the stack is taken
///          apart once to look: five calls for each entry, and one more. Where a CaptureModeGuard
///          is open, one call more at each end. No lock; no allocation up to 16 scopes deep.
class [[nodiscard]] CUGUEST_API HostScope {
 public:
  [[nodiscard]] CUGUEST_HIDE explicit HostScope(Location where = Location::Here()) noexcept
      : scope_(internal::Scope::kNotSet) {
    scope_.EnterHost(nullptr, where);
  }
  /// The same. Check `guard` afterwards; where it is not inside it makes no difference.
  [[nodiscard]] CUGUEST_HIDE explicit HostScope(const ContextGuard& guard,
                                                Location where = Location::Here()) noexcept
      : scope_(internal::Scope::kNotSet) {
    scope_.EnterHost(&guard.scope_, where);
  }
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
  CUGUEST_HIDE ~HostScope() { static_cast<void>(scope_.Leave(internal::Reported::kByIncident)); }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return scope_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept {
    return "restore the host's context";
  }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return scope_.advice(); }

  /// Ends the scope now: the guards come back. Does nothing the second time.
  /// Errors: CUDA_ERROR_NOT_READY, as ContextGuard::Leave. Of a guard that did not come back, its
  ///         result() says why.
  CUGUEST_HIDE CUresult Leave() noexcept { return scope_.Leave(internal::Reported::kByResult); }

 private:
  internal::Scope scope_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_HOST_SCOPE_H_
