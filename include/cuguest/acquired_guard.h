// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// `AcquiredGuard` finds the context to work in and is inside it for a scope, in one line.
///
///   absl::Status Sort(float* values, size_t count, CUstream stream) {
///     AcquiredGuard guard(AcquireFromStream(stream));
///     if (!guard.ok()) return guard.status();
///     ...

#ifndef CUGUEST_ACQUIRED_GUARD_H_
#define CUGUEST_ACQUIRED_GUARD_H_

#include <cuda.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/location.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_NAMESPACE

/// Owns what an Acquire function returned, and a ContextGuard from it, which ends first.
/// Stack:   as ContextGuard: net 0 over the scope.
/// Count:   that of the AcquiredContext, for the scope.
/// Threads: bound to the constructing thread; destroy it there, in reverse order of construction.
/// Errors:  test ok(). status() is that of acquiring or of entering; nothing has changed then.
/// Cost:    a ContextGuard from a ContextRef, beside the acquiring. Of a device whose context is
///          current: one driver call beside AcquireOn's, with a guard that is elided; no lock, no
///          allocation.
class [[nodiscard]] AcquiredGuard {
 public:
  [[gnu::always_inline]] CUGUEST_HIDE inline ~AcquiredGuard() {}

  [[nodiscard]] CUGUEST_HIDE explicit AcquiredGuard(absl::StatusOr<AcquiredContext> acquired,
                                                    GuardMode mode = GuardMode::kElide,
                                                    Location where = Location::Here())
      : acquired_(ContextRef(), AcquiredContext::Source::kCurrent), guard_(mode) {
    Enter(std::move(acquired), mode, where, nullptr);
  }

  /// As AcquiredGuard(AcquireOn(device, if_inactive), mode), with fewer driver calls.
  [[nodiscard]] [[gnu::always_inline]] CUGUEST_HIDE inline explicit AcquiredGuard(
      Device device, IfInactive if_inactive = IfInactive::kRefuse,
      GuardMode mode = GuardMode::kElide, Location where = Location::Here())
      : AcquiredGuard(internal::CurrentContext(), device, if_inactive, mode, where) {}
  AcquiredGuard(const AcquiredGuard&) = delete;
  AcquiredGuard& operator=(const AcquiredGuard&) = delete;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return WasAcquired() && guard_.ok(); }
  [[nodiscard]] CUGUEST_HIDE absl::Status status() const {
    return WasAcquired() ? ToStatus(guard_) : status_;
  }

  /// These need ok().
  [[nodiscard]] CUGUEST_HIDE const AcquiredContext& acquired() const& noexcept { return acquired_; }
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const& noexcept {
    return acquired().context();
  }
  [[nodiscard]] CUGUEST_HIDE const ContextGuard& guard() const& noexcept { return guard_; }

  /// As ContextGuard::Reassert; CUDA_ERROR_INVALID_CONTEXT if there was nothing to acquire.
  CUGUEST_HIDE CUresult Reassert() noexcept {
    return WasAcquired() ? guard_.Reassert() : CUDA_ERROR_INVALID_CONTEXT;
  }

  /// As ContextGuard::Leave. What was acquired is kept until the end of the scope.
  CUGUEST_HIDE CUresult Leave() noexcept { return guard_.Leave(); }

 private:
  [[gnu::always_inline]] CUGUEST_HIDE inline AcquiredGuard(const internal::CurrentContext& asked,
                                                           Device device, IfInactive if_inactive,
                                                           GuardMode mode, Location where)
      : acquired_(asked.IsSeenOn(device.get()) ? asked.Seen().Ref() : ContextRef(),
                  AcquiredContext::Source::kCurrent, device),
        guard_(mode) {
    if (__builtin_expect(mode == GuardMode::kElide && WasAcquired(), true)) {
      guard_.scope_.Enter(asked, where);
    } else {
      Enter(internal::AcquireOn(asked, device, if_inactive), mode, where, &asked);
    }
  }

  [[nodiscard]] CUGUEST_HIDE bool WasAcquired() const noexcept { return acquired_.context().ok(); }

  // `asked`: what is current, if it is known.
  [[gnu::noinline]] CUGUEST_HIDE void Enter(absl::StatusOr<AcquiredContext> acquired,
                                            GuardMode mode, Location where,
                                            const internal::CurrentContext* asked) {
    status_ = acquired.status();
    if (!acquired.ok()) return;
    acquired_ = *std::move(acquired);
    const bool is_current = asked != nullptr && mode == GuardMode::kElide && asked->IsSeen() &&
                            acquired_.source() == AcquiredContext::Source::kCurrent;
    if (is_current) {
      guard_.scope_.Enter(*asked, where);
    } else {
      guard_.scope_.Enter(context(), mode == GuardMode::kAlwaysPush, where);
    }
  }

  absl::Status status_;       // of the acquiring
  AcquiredContext acquired_;  // of no context if that failed
  ContextGuard guard_;        // empty if that failed; ends before the reference is given back
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ACQUIRED_GUARD_H_
