// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file
/// `Relaxed<Guard>` enters a context by a guard with stream captures relaxed, so that what the
/// scope allocates or frees invalidates nobody's capture: a CaptureModeGuard and the guard in one.
///
///   absl::Status Grow(CUcontext context, std::size_t bytes) {
///     cuguest::Relaxed<cuguest::ContextGuard> guard(context);
///     CUGUEST_RETURN_IF_ERROR(guard);    // of status.h
///     return AllocateWorkspace(bytes);   // runs with `context` current, in mode RELAXED
///   }                                    // the caller's context and mode are back

#ifndef CUGUEST_RELAXED_H_
#define CUGUEST_RELAXED_H_

#include <cuda.h>

#include <new>
#include <type_traits>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/error.h"
#include "cuguest/export.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {

// What a Relaxed knows of its guards. That one has failed is known to nobody until it is asked.
struct OfRelaxed {
  CUGUEST_HIDE static CUresult Unasked(const CaptureModeGuard& guard) noexcept {
    return guard.scope_.Unasked();
  }
  CUGUEST_HIDE static CUresult Unasked(const ContextGuard& guard) noexcept {
    return guard.scope_.Unasked();
  }
  template <typename Guard>
  CUGUEST_HIDE static CUresult Unasked(const Guard& guard) noexcept {
    return Unasked(guard.guard());
  }

  CUGUEST_HIDE static Error ErrorOf(const CaptureModeGuard& guard) noexcept {
    return MakeError(guard.result(), guard.doing(), guard.advice());
  }
  CUGUEST_HIDE static Error ErrorOf(const ContextGuard& guard) noexcept {
    return MakeError(guard.result(), guard.doing(), guard.advice());
  }
  template <typename Guard>
  CUGUEST_HIDE static Error ErrorOf(const Guard& guard) noexcept {
    return guard.error();
  }
};

}  // namespace internal

/// Captures are relaxed first, and then the guard enters: a ContextGuard or an AcquiredGuard. It
/// ends in the opposite order. Below CUDA 10.1 there are no modes: only the guard enters.
/// Stack:   as the guard.
/// Count:   as the guard.
/// Threads: bound; as the guard and a CaptureModeGuard, each among scopes of its kind.
/// Errors:  test ok(). One that failed, by its mode or its context, has changed neither; error()
///          says why. What a callee leaves behind is an incident of the guard or of the
///          CaptureModeGuard, and one that nobody asked reports kUnasked: all name `where`.
/// Cost:    that of the guard, and two driver calls, contention-free.
/// Source:  docs/notes.md, Note [What a capture forbids].
template <typename Guard>
class [[nodiscard]] Relaxed {
 public:
  /// Enters `way`: what the guard takes first, such as a context or a ContextRef, or what an
  /// Acquire function returned.
  /// Requires: what the guard requires of it.
  template <typename Way,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Way>, Relaxed> &&
                                        std::is_constructible_v<Guard, Way, GuardMode, Location>>,
            CUGUEST_HIDE_TEMPLATE>
  [[nodiscard]] CUGUEST_HIDE explicit Relaxed(Way&& way, GuardMode mode = GuardMode::kElide,
                                              Location where = Location::Here()) noexcept
      : mode_(CU_STREAM_CAPTURE_MODE_RELAXED, where) {
    Enter(std::forward<Way>(way), mode, where);
  }
  /// Of an AcquiredGuard: as that of a device, or of a pointer.
  template <typename Way,
            typename = std::enable_if_t<
                !std::is_constructible_v<Guard, Way, GuardMode, Location> &&
                std::is_constructible_v<Guard, Way, IfInactive, GuardMode, Location>>,
            typename = void, CUGUEST_HIDE_TEMPLATE>
  [[nodiscard]] CUGUEST_HIDE explicit Relaxed(Way way, IfInactive if_inactive = IfInactive::kRefuse,
                                              GuardMode mode = GuardMode::kElide,
                                              Location where = Location::Here()) noexcept
      : mode_(CU_STREAM_CAPTURE_MODE_RELAXED, where) {
    Enter(way, if_inactive, mode, where);
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;
  CUGUEST_HIDE ~Relaxed() {
    if (has_guard_) guard_.~Guard();
  }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept {
    return has_guard_ && guard_.ok() && internal::IsRelaxed(mode_);
  }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return error().code; }
  [[nodiscard]] CUGUEST_HIDE Error error() const noexcept {
    const Error error = has_guard_ ? Of::ErrorOf(guard_) : Error();
    return !error.ok() || internal::IsRelaxed(mode_) ? error : Of::ErrorOf(mode_);
  }

  /// Requires: ok().
  [[nodiscard]] CUGUEST_HIDE const Guard& guard() const& noexcept { return guard_; }
  [[nodiscard]] CUGUEST_HIDE ContextRef context() const noexcept { return guard_.context(); }

  /// After a call into foreign code: makes the context current again and sets the mode again, if
  /// they are not, and reports an incident of each that was not.
  /// Errors: as Reassert() of the guard, else as that of CaptureModeGuard; both were done.
  /// Cost:   that of the guard, and one driver call.
  CUGUEST_HIDE CUresult Reassert() noexcept {
    if (!has_guard_) return mode_.result();
    const CUresult code = guard_.Reassert();
    const CUresult mode = mode_.Reassert();
    return code != CUDA_SUCCESS || internal::IsRelaxed(mode) ? code : mode;
  }

  /// Ends the scope now: leaves the context, then the mode. Does nothing the second time.
  /// Errors: the first that Leave() of the guard and of CaptureModeGuard gave; both were done.
  CUGUEST_HIDE CUresult Leave() noexcept {
    const CUresult code = has_guard_ ? guard_.Leave() : CUDA_SUCCESS;
    const CUresult mode = mode_.Leave();
    return code != CUDA_SUCCESS ? code : mode;
  }

 private:
  using Of = internal::OfRelaxed;

  template <typename... Arguments, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE void Enter(Arguments&&... arguments) noexcept {
    if (!internal::IsRelaxed(Of::Unasked(mode_))) return;
    static_cast<void>(mode_.ok());  // without modes it has failed, and that is no error
    new (&guard_) Guard(std::forward<Arguments>(arguments)...);
    has_guard_ = true;
    if (Of::Unasked(guard_) != CUDA_SUCCESS) static_cast<void>(mode_.Leave());
  }

  CaptureModeGuard mode_;
  union {
    Guard guard_;  // if has_guard_; ends before the mode
  };
  bool has_guard_ = false;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_RELAXED_H_
