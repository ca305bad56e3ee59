// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// capture.h                                                             tier: 2
// -----------------------------------------------------------------------------
/// \file A library is called while somebody captures a CUDA graph, on this thread or another, and
/// does not know it. `CaptureModeGuard` lets it allocate and free without invalidating the capture;
/// `HousekeepingIsSafe()` says when even that is not enough.
///
///   if (!cuguest::HousekeepingIsSafe(stream)) return UseWhatIsThere();
///   cuguest::CaptureModeGuard relaxed;     // captures that are not seen from here
///   if (!relaxed.ok()) return cuguest::ToStatus(relaxed);
///   return GrowTheWorkspace();
///
/// Note [What a capture forbids]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// "Invalid" is: the call fails with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED or another of the
/// 900s, or in some cases succeeds, and the capture is invalidated.
///
///   while something captures                              | plainly | in the guard
///   ------------------------------------------------------+---------+-------------
///   contexts: get, push, pop, create, destroy, retain,    | fine    | fine
///   release; pointer attributes; create streams, events;  |         |
///   cuStreamGetCtx of a created stream                    |         |
///   allocate, free (device, managed, pinned host), unload | invalid | fine
///   a module, set a limit, query or wait for an event or  | by mode |
///   a stream that does not capture, make a cuBLAS handle  |         |
///   cuCtxSynchronize in the context of the capture;       | invalid | invalid
///   synchronise, query, or ask flags, id or device of     |         |
///   what captures; stream 0 (also cuStreamGetCtx of it)   |         |
///   while a blocking stream of its context captures;      |         |
///   destroy a cuBLAS handle in the context of the capture |         |
///
/// "By mode": a capture in mode GLOBAL is invalidated from any thread, in THREAD_LOCAL from the
/// thread that captures, in RELAXED from none.
/// Source: CUDA Programming Guide, "Prohibited and Unhandled Operations"; measured call by
/// call in cudasim/test/capture_facts_test.cc and, of cuBLAS, cublas_facts_test.cc.

#ifndef CUGUEST_CAPTURE_H_
#define CUGUEST_CAPTURE_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

/// CaptureModeGuard
///
/// Sets the calling thread's stream-capture mode for a scope: CU_STREAM_CAPTURE_MODE_RELAXED
/// unless another is given. By cuThreadExchangeStreamCaptureMode, which needs no context;
/// the runtime's function of that name creates a primary context and makes it current.
///
/// Stack:   never touched. Count: none.
/// Threads: bound to the constructing thread; destroy it there, in reverse order of construction.
/// Errors:  construction never throws, never aborts: test ok(). A guard that failed has
///          changed nothing. result() is
///            CUDA_ERROR_INVALID_VALUE    `mode` is none of the three
///            CUDA_ERROR_NOT_SUPPORTED    a driver below CUDA 10.1
///            CUDA_ERROR_NOT_INITIALIZED  before cuInit: nothing can be capturing
///            or a code that stands for a missing driver, see driver.h
///          A callee that leaves another mode behind is an incident (kCaptureMode); the
///          caller's mode is restored all the same.
/// Cost:    two driver calls, contention-free (14 ns for both on an H100).
/// Source:  CUDA Driver API, cuThreadExchangeStreamCaptureMode; test/context/capture_test.cc.
class [[nodiscard]] CUGUEST_API CaptureModeGuard {
 public:
  [[nodiscard]] explicit CaptureModeGuard(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED,
                                          const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) noexcept;
  CaptureModeGuard(const CaptureModeGuard&) = delete;
  CaptureModeGuard& operator=(const CaptureModeGuard&) = delete;
  CUGUEST_HIDE ~CaptureModeGuard() { static_cast<void>(Restore()); }

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return result_; }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept {
    return "set the stream-capture mode";
  }
  [[nodiscard]] const char* advice() const noexcept;

  /// The thread's mode when the guard was made.
  [[nodiscard]] CUGUEST_HIDE CUstreamCaptureMode caller() const noexcept { return caller_; }

  /// Ends the scope now. Does nothing the second time.
  ///
  /// Errors: the driver's code, if it would not take the mode back.
  ///         CUDA_ERROR_ILLEGAL_STATE, and nothing done, on another thread than its own.
  CUresult Restore() noexcept;

 private:
  const internal::BoundThread thread_;
  Location where_;
  CUresult result_;
  bool inside_ = false;
  CUstreamCaptureMode mode_;
  CUstreamCaptureMode caller_ = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

enum class CaptureState : unsigned char {
  kNone,
  kActive,
  kInvalidated,  ///< invalidated, and not ended yet
  kUnknown,      ///< the driver does not say: there is none, or this is a forked child
};

/// Whether `stream` captures. Of stream 0 and CU_STREAM_LEGACY, which cannot: whether a blocking
/// stream of the current context does (kActive, also when its capture was invalidated); kNone if no
/// context is current.
///
/// Invalidates no capture. The handle must be alive, as for any stream call: a created stream dies
/// with its context, also by a reset.
/// Threads: any; also from a stream callback.
/// Cost:    one driver call, contention-free (15 ns on an H100).
/// Needs:   CUDA 10.0; below that there are no captures: kNone.
/// Source:  CUDA Driver API, cuStreamIsCapturing; cudasim/test/capture_facts_test.cc.
[[nodiscard]] CUGUEST_API CaptureState CaptureStateOf(CUstream stream) noexcept;

/// Whether a library that was given `stream` may do now what a capture forbids even inside
/// a CaptureModeGuard: synchronise its context, destroy a cuBLAS handle, use stream 0. True if
/// neither `stream` nor a blocking stream of the current context captures; false if one
/// does, or the driver does not say.
///
/// The driver shows no more than that: a capture in a non-blocking stream that the library was not
/// given cannot be seen from here, and neither can one in another context. So what a library needs,
/// it should make before its caller captures, and say so in its own documentation.
///
/// Threads, errors, source: as CaptureStateOf.
/// Cost:    two driver calls, contention-free; one for stream 0.
[[nodiscard]] CUGUEST_API bool HousekeepingIsSafe(CUstream stream) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CAPTURE_H_
