// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kFlags = Number({0, 0, 1, 1, 1, 2, 0x77});

// When work is done is not determined, but it is soon.
template <typename Result>
Run Ready(Result (*query)(CUstream)) {
  return [=](Frame& frame) {
    const auto code = static_cast<int>(query(frame.As<CUstream>(0)));
    return code == CUDA_ERROR_NOT_READY ? 0 : code;
  };
}

int LaunchHostFunction(Frame& frame) {
  const CUhostFn nothing = [](void*) {};
  return RAW(cuLaunchHostFunc)(frame.As<CUstream>(0), frame.IsNull(1) ? nullptr : nothing, nullptr);
}

Value OfStream(const World& world, const Values& values) {
  return ContextOfStream(world, values[0]);
}

}  // namespace

Room StreamRoom() {
  return {
      "streams",
      {
          {DRIVER(cuStreamCreate), 7, {Make("S"), kFlags}, OfCurrent(0)},
          {DRIVER(cuStreamCreateWithPriority),
           3,
           {Make("S"), kFlags, Number({0, -1, -5, -1000, 3})},
           OfCurrent(0)},
          {DRIVER(cuStreamDestroy), 4, {UseStream()}, Ends(0)},
          {"cuStreamQuery", Ready(RAW(cuStreamQuery)), 4, {UseStream()}},
          {DRIVER(cuStreamSynchronize), 4, {UseStream()}},
          {DRIVER(cuStreamGetCtx), 4, {UseStream(), Out("CPG")}},
          {DRIVER(cuStreamGetCtx_v2), 3, {UseStream(), Out("CPG"), Out("G")}},
          {DRIVER(cuStreamGetFlags), 2, {UseStream(), Out()}},
          {DRIVER(cuStreamGetPriority), 2, {UseStream(), Out()}},
          {DRIVER(cuStreamGetId), 2, {UseStream(), Out("s")}},
          {DRIVER(cuStreamGetDevice), 2, {UseStream(), Out()}},
          {"cuLaunchHostFunc", LaunchHostFunction, 2, {UseStream(), Number({1, 1, 1, 0})}},
          {DRIVER(cuStreamWaitEvent),
           6,
           {UseStream(), Use("E"), Number({0, 0, 0, 0, 2})},
           {},
           MayWait(OfStream, 1)},
      },
  };
}

}  // namespace conformance
