// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// `AcquiredGuard` finds the context to work in and is inside it for a scope, in one line.
///
///   absl::Status Sort(float* values, size_t count, CUstream stream) {
///     AcquiredGuard guard(stream);
///     CUGUEST_RETURN_IF_ERROR(guard);    // of status.h
///     ...

#ifndef CUGUEST_ACQUIRED_GUARD_H_
#define CUGUEST_ACQUIRED_GUARD_H_

#include <cuda.h>

#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// Owns what an Acquire function returned, and a ContextGuard from it, which ends first.
/// Stack:   as ContextGuard: net 0 over the scope.
/// Count:   that of the Acquired, for the scope.
/// Threads: bound; as ContextGuard, guards end in any order.
/// Errors:  test ok(). error() is that of acquiring or of entering; nothing has changed then. One
///          that failed and that nobody asked reports kUnasked when it ends, as a ContextGuard
///          does.
/// Cost:    beside what acquiring costs, which says what is alive: one driver call of a guard that
///          is elided, three of one that switches, and one less where acquiring has asked what is
///          current (a device, pool memory, a special stream). So four calls for a stream whose
///          context is current, three for a device. From an Acquired, which may be older, those of
///          a ContextGuard from a ContextRef. No lock, no allocation.
class [[nodiscard]] CUGUEST_API AcquiredGuard {
 public:
  [[gnu::always_inline]] CUGUEST_HIDE inline ~AcquiredGuard() {}

  /// Inside nothing until MoveTo(), which enters in `mode`; it is not ok(). No driver call.
  [[nodiscard]] CUGUEST_HIDE explicit AcquiredGuard(GuardMode mode = GuardMode::kElide) noexcept
      : guard_(mode) {}

  /// What was acquired before; a copy of it where the caller keeps it, with a reference of its own.
  [[nodiscard]] explicit AcquiredGuard(Acquired acquired, GuardMode mode = GuardMode::kElide,
                                       Location where = Location::Here()) noexcept;

  /// The context of a stream: as AcquireFromStream; for a special stream with a device, as
  /// AcquireOn.
  [[nodiscard]] explicit AcquiredGuard(CUstream stream, GuardMode mode = GuardMode::kElide,
                                       Location where = Location::Here()) noexcept;
  [[nodiscard]] AcquiredGuard(CUstream stream, Device device,
                              IfInactive if_inactive = IfInactive::kRefuse,
                              GuardMode mode = GuardMode::kElide,
                              Location where = Location::Here()) noexcept;

  /// The context of memory: as AcquireFromPointer.
  [[nodiscard]] explicit AcquiredGuard(CUdeviceptr pointer,
                                       IfInactive if_inactive = IfInactive::kRefuse,
                                       GuardMode mode = GuardMode::kElide,
                                       Location where = Location::Here()) noexcept;
  [[nodiscard]] explicit AcquiredGuard(const void* pointer,
                                       IfInactive if_inactive = IfInactive::kRefuse,
                                       GuardMode mode = GuardMode::kElide,
                                       Location where = Location::Here()) noexcept;
  /// Neither is an address: write ContextGuard(context), or Device::Borrow(device).
  template <typename... Others, CUGUEST_HIDE_TEMPLATE>
  explicit AcquiredGuard(CUcontext, Others...) = delete;
  template <typename... Others, CUGUEST_HIDE_TEMPLATE>
  explicit AcquiredGuard(int, Others...) = delete;

  /// The context of a device: as AcquireOn.
  [[nodiscard]] [[gnu::always_inline]] CUGUEST_HIDE inline explicit AcquiredGuard(
      Device device, IfInactive if_inactive = IfInactive::kRefuse,
      GuardMode mode = GuardMode::kElide, Location where = Location::Here()) noexcept
      : AcquiredGuard(internal::CurrentContext(), device, if_inactive, mode, where) {}
  AcquiredGuard(const AcquiredGuard&) = delete;
  AcquiredGuard& operator=(const AcquiredGuard&) = delete;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return guard_.ok() && acquired_.ok(); }
  [[nodiscard]] Error error() const noexcept;

  /// Requires: ok().
  [[nodiscard]] CUGUEST_HIDE const Acquired& acquired() const& noexcept { return acquired_; }
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const& noexcept {
    return acquired().context();
  }
  [[nodiscard]] CUGUEST_HIDE const ContextGuard& guard() const& noexcept { return guard_; }

  /// As ContextGuard::MoveTo, with what keeps the context alive: what was acquired before is given
  /// back once its context was left. For a loop over tasks, whose guard holds what it works in.
  /// Errors: that of acquired.error(), and nothing done; else those of ContextGuard::MoveTo: it
  ///         keeps what it had.
  [[nodiscard]] Error MoveTo(Acquired acquired, Location where = Location::Here()) noexcept;

  /// As ContextGuard::Reassert.
  CUGUEST_HIDE CUresult Reassert() noexcept { return guard_.Reassert(); }

  /// As ContextGuard::Leave. What was acquired is kept until the end of the scope.
  CUGUEST_HIDE CUresult Leave() noexcept { return guard_.Leave(); }

 private:
  [[gnu::always_inline]] CUGUEST_HIDE inline AcquiredGuard(const internal::CurrentContext& asked,
                                                           Device device, IfInactive if_inactive,
                                                           GuardMode mode, Location where) noexcept
      : acquired_(asked.IsSeenOn(device.get()) ? asked.Seen().Ref() : ContextRef(),
                  Acquired::Source::kCurrent, device),
        guard_(internal::Scope::kNotSet) {
    if (CUGUEST_INTERNAL_LIKELY(mode == GuardMode::kElide && acquired_.ok())) {
      guard_.scope_.Enter(asked, where);
    } else {
      static_cast<void>(acquired_ = internal::AcquireOn(asked, device, if_inactive));
      EnterFound(asked, mode, where);
    }
  }
  // Of what find(&asked) acquires, which writes there what it found current, if it asked that.
  template <typename Find>
  AcquiredGuard(const Find& find, internal::CurrentContext&& asked, GuardMode mode,
                Location where) noexcept;

  // What was acquired just now, and `asked` meanwhile.
  void EnterFound(const internal::CurrentContext& asked, GuardMode mode, Location where) noexcept;

  Acquired acquired_;
  ContextGuard guard_;  // failed if that did; ends before the reference is given back
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ACQUIRED_GUARD_H_
