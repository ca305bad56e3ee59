// SPDX-License-Identifier: Apache-2.0
//
// Stream capture, as far as it can be seen without one: no stream here captures.

#include "lib/sim/api.h"
#include "lib/sim/panic.h"
#include "lib/sim/stream.h"

namespace cuguest_sim {
namespace {

// State of the thread alone: it needs no context and makes none. A value that is no
// mode is taken and given back all the same.
CUstreamCaptureMode& ThisThreadsMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

}  // namespace

CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr) PanicNull();
  const CUstreamCaptureMode before = ThisThreadsMode();
  ThisThreadsMode() = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

CUresult StreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStreamToDescribe(handle, &stream);
  if (code == CUDA_SUCCESS) *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return code;
}

}  // namespace cuguest_sim
