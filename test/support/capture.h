// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of stream capture share.

#ifndef CUGUEST_TEST_SUPPORT_CAPTURE_H_
#define CUGUEST_TEST_SUPPORT_CAPTURE_H_

#include "test/support/capture_mode.h"
#include "test/support/driver_calls.h"

namespace cuguest_test {

inline constexpr auto kNone = CU_STREAM_CAPTURE_STATUS_NONE;
inline constexpr auto kActive = CU_STREAM_CAPTURE_STATUS_ACTIVE;
inline constexpr auto kLost = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
inline constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
inline constexpr auto kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
inline constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
inline constexpr CUstreamCaptureMode kModes[] = {kGlobal, kThreadLocal, kRelaxed};

inline CUstreamCaptureStatus StatusOf(CUstream stream) {
  auto status = kNone;
  OK(RAW(cuStreamIsCapturing)(stream, &status));
  return status;
}

inline CUresult Begin(CUstream stream, CUstreamCaptureMode mode = kRelaxed) {
  return RAW(cuStreamBeginCapture)(stream, mode);
}

// Ends the capture and destroys the graph.
inline CUresult End(CUstream stream) {
  auto graph = reinterpret_cast<CUgraph>(0x77);
  const CUresult code = RAW(cuStreamEndCapture)(stream, &graph);
  BOOST_CHECK((graph != nullptr) == (code == CUDA_SUCCESS));
  if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  return code;
}

// Two contexts; the first is current and has a stream to capture, a second stream that
// does not block, one that does, and events recorded in a capture, outside, and never.
struct Guest {
  explicit Guest(unsigned flags = CU_STREAM_NON_BLOCKING, CUdevice others_device = 0)
      : other(others_device) {
    SetStack({other.get()});
    OK(RAW(cuMemAlloc)(&other_memory, 4096));
    OK(RAW(cuStreamCreate)(&other_stream, CU_STREAM_NON_BLOCKING));
    SetStack({context.get()});
    OK(RAW(cuStreamCreate)(&stream, flags));
    OK(RAW(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
    for (CUevent* event : {&captured, &recorded, &never}) OK(RAW(cuEventCreate)(event, 0));
    OK(RAW(cuMemAlloc)(&memory, 4096));
    OK(RAW(cuMemAllocHost)(&host, 4096));
    OK(RAW(cuEventRecord)(recorded, second));
    OK(RAW(cuCtxSynchronize)());
  }
  ~Guest() { SetStack({}); }

  CUresult Fill(CUstream in) const { return RAW(cuMemsetD8Async)(memory, 1, 16, in); }
  CUresult FillNow() const { return RAW(cuMemsetD8)(memory, 1, 16); }
  CUresult Record(CUevent event, CUstream in) const { return RAW(cuEventRecord)(event, in); }
  CUresult Wait(CUstream in, CUevent event) const { return RAW(cuStreamWaitEvent)(in, event, 0); }
  void Fork(CUstream to) const {
    OK(Record(captured, stream));
    OK(Wait(to, captured));
  }

  OwnContext context;
  OwnContext other;
  CUstream stream = nullptr;
  CUstream second = nullptr;
  CUstream blocking = nullptr;
  CUstream other_stream = nullptr;
  CUevent captured = nullptr;
  CUevent recorded = nullptr;
  CUevent never = nullptr;
  CUdeviceptr memory = 0;
  CUdeviceptr other_memory = 0;
  void* host = nullptr;
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_CAPTURE_H_
