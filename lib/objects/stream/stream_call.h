// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What comes before a driver call on a stream or an event: is its context alive, is it
// current where it must be, and what captures?

#ifndef CUGUEST_LIB_OBJECTS_STREAM_STREAM_CALL_H_
#define CUGUEST_LIB_OBJECTS_STREAM_STREAM_CALL_H_

#include <cuda.h>

#include <optional>

#include "absl/status/status.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// CUDA_ERROR_INVALID_HANDLE for the empty ref, that of an object that names or owns nothing;
// else as ContextRef::Check().
CUresult CheckAlive(const ContextRef& context) noexcept;

// Also of a status that is newer than this library: it is not "none".
inline bool IsActive(CUstreamCaptureStatus status) {
  return status != CU_STREAM_CAPTURE_STATUS_NONE && status != CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

// What a stream captures.
struct Capture {
  // What cuStreamSynchronize and the like would return, and invalidate it: CUDA_SUCCESS for
  // none, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED for one that is not ended yet, and
  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for stream 0, when a blocking stream captures.
  CUresult refusal = CUDA_SUCCESS;
  cuuint64_t id = 0;  // of an active or invalidated one; not used twice in a process

  bool is_active() const { return refusal == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; }
};

// StreamCall
//
// Finds out whether a stream can be called, and makes it so for its scope. Invalidates no capture.
//
// Cost: two driver calls; for a stream that means the current context those of a
//       ContextGuard instead of one of them.
class StreamCall {
 public:
  StreamCall(const ObjectDriver& driver, const StreamRef& stream) noexcept;

  // Why the stream cannot be called; CUDA_SUCCESS if it can.
  CUresult result() const { return result_; }
  const Capture& capture() const { return capture_; }

  // result(), or the refusal of what the stream captures.
  CUresult refusal() const { return result_ != CUDA_SUCCESS ? result_ : capture_.refusal; }

 private:
  std::optional<ContextGuard> guard_;
  Capture capture_;
  CUresult result_;
};

// The status of a call on `stream` that was refused or failed with `code`.
absl::Status StreamStatus(CUresult code, const char* doing, const StreamRef& stream);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_STREAM_STREAM_CALL_H_
