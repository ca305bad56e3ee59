// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of graph.h and capture_scope.h share.

#ifndef CUGUEST_TEST_OBJECTS_GRAPH_GRAPHS_H_
#define CUGUEST_TEST_OBJECTS_GRAPH_GRAPHS_H_

#include <functional>
#include <thread>

#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/graph.h"
#include "test/objects/launch/launches.h"

namespace cuguest_graphs {

using namespace cuguest_launches;
using cuguest::CaptureScope;
using cuguest::DeviceView;
using cuguest::ExecutableGraph;
using cuguest::Graph;

inline CUstreamCaptureStatus CaptureOf(CUstream stream) {
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(RAW(cuStreamIsCapturing)(stream, &status));
  return status;
}

inline bool Captures(CUstream stream) {
  return CaptureOf(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// Ends whatever the stream captures.
inline CUresult EndCapture(CUstream stream) {
  CUgraph graph = nullptr;
  const CUresult code = RAW(cuStreamEndCapture)(stream, &graph);
  if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  return code;
}

// Destroys the context on another thread, where nothing is current.
inline void Destroy(CUcontext context) {
  std::thread([context] { OK(RAW(cuCtxDestroy)(context)); }).join();
}

// What `call` comes to in a callback of the stream.
inline absl::Status InCallback(CUstream stream, std::function<absl::Status()> call) {
  struct Both {
    std::function<absl::Status()> call;
    absl::Status status;
  } both{std::move(call), absl::OkStatus()};
  OK(RAW(cuLaunchHostFunc)(
      stream,
      [](void* data) {
        auto& in = *static_cast<Both*>(data);
        in.status = in.call();
      },
      &both));
  OK(RAW(cuStreamSynchronize)(stream));
  return both.status;
}

}  // namespace cuguest_graphs

#endif  // CUGUEST_TEST_OBJECTS_GRAPH_GRAPHS_H_
