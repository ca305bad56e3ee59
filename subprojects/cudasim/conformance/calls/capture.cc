// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kMode = Number({0, 0, 1, 1, 2, 2, 7});

void Began(Frame& frame) {
  ++frame.world.captures;
  // Which only its thread sees, with that context current.
  if (frame.Number(0) < 0) frame.world.captures_per_thread = true;
}

template <typename Mode, typename Result>
Run Exchange(Result (*exchange)(Mode*)) {
  return [=](Frame& frame) {
    auto mode = frame.As<Mode>(0);
    const auto code = static_cast<int>(exchange(&mode));
    frame.SayNumber(mode);
    return code;
  };
}

}  // namespace

Room CaptureRoom() {
  return {
      "captures",
      {
          {DRIVER(cuStreamBeginCapture), 8, {UseStream(), kMode}, Began},
          {DRIVER(cuStreamEndCapture), 6, {UseStream(), Make("R", 6)}},
          {DRIVER(cuStreamIsCapturing), 3, {UseStream(), Out()}},
          {DRIVER(cuStreamGetCaptureInfo),
           3,
           {UseStream(), Out(), Out("c"), Out("R"), Hidden(), Hidden(), Out()}},
          {"cuThreadExchangeStreamCaptureMode",
           Exchange(RAW(cuThreadExchangeStreamCaptureMode)),
           5,
           {Number({0, 1, 2, 7})}},
          {RUNTIME(cudaStreamBeginCapture), 2, {UseStream(), Number({0, 1, 2})}, Began},
          {RUNTIME(cudaStreamEndCapture), 2, {UseStream(), Make("R", 6)}},
          {RUNTIME(cudaStreamIsCapturing), 1, {UseStream(), Out()}},
          {"cudaThreadExchangeStreamCaptureMode",
           Exchange(cudaThreadExchangeStreamCaptureMode),
           1,
           {Number({0, 1, 2})}},
      },
  };
}

}  // namespace conformance
