// SPDX-License-Identifier: Apache-2.0
//
// The entries of stream capture. What it is: captures.h; what it forbids:
// capture_rules.cc.

#include "driver/api.h"
#include "driver/panic.h"
#include "driver/stream/captures.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

bool IsMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

template <typename Value>
void Put(Value* out, const Value& value) {
  if (out != nullptr) *out = value;
}

}  // namespace

// State of the thread alone: it needs no context and makes none. A value that is no
// mode is taken and given back all the same.
CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr) PanicNull();
  const CUstreamCaptureMode before = ThisThreadsCaptureMode();
  ThisThreadsCaptureMode() = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

// The thread's own mode plays no part.
CUresult StreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  if (!IsMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  return stream.is_legacy ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : Captures::Begin(stream, mode);
}

// From before there were modes.
CUresult StreamBeginCaptureFirst(CUstream handle) {
  return StreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_RELAXED);
}

// The graph is null unless this succeeds. Without a place for it, it is destroyed.
CUresult StreamEndCapture(CUstream handle, CUgraph* graph) {
  if (graph != nullptr) *graph = nullptr;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  return code != CUDA_SUCCESS ? code : Captures::End(stream, graph);
}

CUresult StreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return StreamGetCaptureInfo(handle, status, nullptr);
}

CUresult StreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return StreamGetCaptureInfoGraph(handle, status, id, nullptr, nullptr, nullptr);
}

CUresult StreamGetCaptureInfoGraph(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return StreamGetCaptureInfoEdges(handle, status, id, graph, dependencies, nullptr, count);
}

// All but the status is written only for an active capture.
CUresult StreamGetCaptureInfoEdges(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  *status = Captures::StatusOf(stream);
  CaptureInfo info;
  if (!Captures::FindInfo(stream, &info)) return CUDA_SUCCESS;
  Put(id, cuuint64_t{info.id});
  Put(graph, info.graph);
  Put(dependencies, info.dependencies);
  Put(edges, info.edges);
  Put(count, info.count);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
