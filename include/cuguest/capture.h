// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 2
/// \file A library may be called while other code captures a CUDA graph, on this thread or another,
/// and not know it. `CaptureModeGuard` lets a library allocate and free without invalidating a
/// capture; `HousekeepingIsSafe()` says when even that is not enough.
///
///   if (!cuguest::HousekeepingIsSafe(stream)) return UseWhatIsThere();
///   cuguest::CaptureModeGuard relaxed;     // captures that are not seen from here
///   if (!relaxed.ok()) return cuguest::ToStatus(relaxed);
///   return GrowTheWorkspace();

#ifndef CUGUEST_CAPTURE_H_
#define CUGUEST_CAPTURE_H_

#include <cuda.h>

#include <optional>

#include "cuguest/export.h"
#include "cuguest/internal/scope.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct OfRelaxed;
}  // namespace internal

/// Sets the calling thread's stream-capture mode for a scope.
/// Stack:   never touched. Count: none.
/// Threads: bound; as ContextGuard, Note [Scopes end in any order] included, among guards of this
///          kind. A HostScope gives the host its own mode back, and then sets this one again; where
///          the driver refuses that, result() says so.
/// Errors:  never throws or aborts: test ok(). A guard that failed has changed nothing. result() is
///          CUDA_ERROR_INVALID_VALUE    `mode` is none of the three
///          CUDA_ERROR_NOT_SUPPORTED    a driver below CUDA 10.1
///          CUDA_ERROR_NOT_INITIALIZED  before cuInit: nothing can be capturing
///          or a code that stands for a missing driver, see driver.h. A callee that leaves another
///          mode behind is an incident (kCaptureMode); the caller's mode is restored all the same.
/// Cost:    two driver calls, contention-free (14 ns for both on an H100).
/// Source:  CUDA Driver API, cuThreadExchangeStreamCaptureMode, which needs no context; the
///          runtime's function of that name creates a primary context and makes it current.
class [[nodiscard]] CUGUEST_API CaptureModeGuard {
 public:
  [[nodiscard]] explicit CaptureModeGuard(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED,
                                          Location where = Location::Here()) noexcept;
  CaptureModeGuard(const CaptureModeGuard&) = delete;
  CaptureModeGuard& operator=(const CaptureModeGuard&) = delete;
  CUGUEST_HIDE ~CaptureModeGuard() {
    static_cast<void>(scope_.LeaveCaptureMode(internal::Reported::kByIncident));
  }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return scope_.ok(); }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return scope_.result(); }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept {
    return "set the stream-capture mode";
  }
  [[nodiscard]] const char* advice() const noexcept;

  /// The thread's mode when the guard was made.
  [[nodiscard]] CUGUEST_HIDE CUstreamCaptureMode caller() const noexcept {
    return scope_.callers_mode();
  }

  /// After a call into foreign code: sets the guard's mode again if it is another, and reports the
  /// incident.
  /// Errors: the driver's code if it refuses the mode: it is not ok() until another Reassert()
  ///         succeeds. CUDA_ERROR_ILLEGAL_STATE, and nothing done, as ContextGuard::Reassert(),
  ///         among guards of this kind.
  /// Cost:   one driver call.
  CUGUEST_HIDE CUresult Reassert() noexcept { return scope_.Reassert(); }

  /// Ends the scope now. Does nothing the second time.
  /// Errors: the driver's code if it refuses the mode; CUDA_ERROR_NOT_READY if another
  ///         CaptureModeGuard is inside it or this is not its thread, as ContextGuard::Leave().
  CUGUEST_HIDE CUresult Leave() noexcept {
    return scope_.LeaveCaptureMode(internal::Reported::kByResult);
  }

 private:
  friend struct internal::OfRelaxed;

  internal::Scope scope_;
};

/// Whether `stream` captures; nothing if the driver does not say, because there is none or this is
/// a forked child. Of stream 0 and CU_STREAM_LEGACY, which cannot: whether a blocking stream of the
/// current context does (ACTIVE, also when its capture was invalidated). Of these two and
/// CU_STREAM_PER_THREAD NONE if no context is current, and nothing in a stream callback or host
/// function: there the driver answers for created streams alone. Invalidates no capture. A status
/// that this release does not know is returned as it is; all of cuguest takes it for a capture.
/// Requires: the handle is alive, as for any stream call: a created stream is destroyed with its
///           context, also by a reset.
/// Threads: any.
/// Cost:    one driver call, contention-free (15 ns on an H100), and for those three a query more.
/// Needs:   CUDA 10.0; below that there are no captures: NONE.
/// Source:  CUDA Driver API, cuStreamIsCapturing; docs/guarantees.md.
[[nodiscard]] CUGUEST_API std::optional<CUstreamCaptureStatus> CaptureStatusOf(
    CUstream stream) noexcept;

/// Whether a library that was given `stream` may do now what a capture forbids even inside a
/// CaptureModeGuard: synchronise its context, destroy a cuBLAS handle, use stream 0. True if
/// neither `stream` nor a blocking stream of the current context captures; false if one does, or
/// the driver does not say. False in a stream callback or host function, which must not call CUDA.
///
/// The driver shows no more than that: a capture in another context, or in a non-blocking stream
/// that the library was not given, cannot be seen from here. So a library should make what it needs
/// before its caller captures, and document that.
/// Threads: any.
/// Requires, needs, source: as CaptureStatusOf.
/// Cost:    three driver calls, contention-free; two for stream 0 and CU_STREAM_LEGACY, four for
///          CU_STREAM_PER_THREAD.
[[nodiscard]] CUGUEST_API bool HousekeepingIsSafe(CUstream stream) noexcept;

namespace internal {

// Whether captures are relaxed where setting the mode gave `result`. A driver that has no modes has
// no captures that could be seen from here.
[[nodiscard]] CUGUEST_HIDE inline bool IsRelaxed(CUresult result) noexcept {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED;
}
[[nodiscard]] CUGUEST_HIDE inline bool IsRelaxed(const CaptureModeGuard& guard) noexcept {
  return IsRelaxed(guard.result());
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CAPTURE_H_
