// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's calls, between the driver's.

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kSize = Number({1, 16, 256, 4096, 4096, 65536, 1 << 21, 0, 1LL << 60});
const Param kBytes = Number({0, 1, 4, 16, 64, 256, 4096});

template <typename Handle>
Run Ready(cudaError_t (*query)(Handle)) {
  return [=](Frame& frame) {
    const auto code = static_cast<int>(query(frame.As<Handle>(0)));
    return code == cudaErrorNotReady ? 0 : code;
  };
}

// A special stream is of the context that the call binds where nothing is current.
Value OfStream(const World& world, const Values& values) {
  const Value context = ContextOfStream(world, values[0]);
  return context.number != 0 ? context : Value{'P', 1};
}

int PointerAttributes(Frame& frame) {
  cudaPointerAttributes attributes;
  std::memset(&attributes, Frame::kUntouched, sizeof(attributes));
  const cudaError_t code =
      cudaPointerGetAttributes(frame.IsNull(0) ? nullptr : &attributes, frame.As<const void*>(1));
  if (code != cudaSuccess || frame.IsNull(0)) return code;
  frame.SayNumber(attributes.type);
  frame.SayNumber(attributes.device);
  frame.SayOut(0, &attributes.devicePointer, sizeof(void*), false);
  frame.SayOut(0, &attributes.hostPointer, sizeof(void*), false);
  return code;
}

}  // namespace

Room RuntimeRoom() {
  return {
      "the runtime",
      {
          {RUNTIME(cudaSetDevice), 4, {Number({0, 0, 0, 0, 7, -1})}},
          {RUNTIME(cudaGetDevice), 3, {Out()}},
          {RUNTIME(cudaGetDeviceCount), 1, {Out()}},
          {RUNTIME(cudaGetDeviceFlags), 2, {Out()}},
          {RUNTIME(cudaInitDevice), 1, {Number({0, 0, 7}), Number({0, 1, 4}), Number({0, 1})}},
          {RUNTIME(cudaDeviceSynchronize), 3},
          {RUNTIME(cudaDeviceReset), 1, {}, {}, IsExpensive()},
          {RUNTIME(cudaGetLastError), 4},
          {RUNTIME(cudaPeekAtLastError), 4},
          {RUNTIME(cudaMalloc), 6, {Make("M"), kSize}, Allocated(0, 1)},
          {RUNTIME(cudaFree), 5, {Use("M", 15)}, Ends(0), IsFree(0)},
          {RUNTIME(cudaMallocHost), 2, {Make("H"), Number({16, 4096, 0})}, Allocated(0, 1)},
          {RUNTIME(cudaFreeHost), 2, {Use("H")}, Ends(0), IsFree(0)},
          {RUNTIME(cudaStreamCreate), 3, {Make("S")}, OfCurrent(0)},
          {RUNTIME(cudaStreamCreateWithFlags), 2, {Make("S"), Number({0, 1, 2})}, OfCurrent(0)},
          {RUNTIME(cudaStreamDestroy), 3, {UseStream()}, Ends(0)},
          {"cudaStreamQuery", Ready(cudaStreamQuery), 3, {UseStream()}},
          {RUNTIME(cudaStreamSynchronize), 3, {UseStream()}},
          {RUNTIME(cudaStreamGetFlags), 1, {UseStream(), Out()}},
          {RUNTIME(cudaStreamWaitEvent),
           3,
           {UseStream(), Use("E"), Number({0, 0, 0, 1})},
           {},
           MayWait(OfStream, 1)},
          {RUNTIME(cudaEventCreate), 2, {Make("E")}, OfCurrent(0)},
          {RUNTIME(cudaEventDestroy), 2, {Use("E")}, Ends(0), IsFree(0)},
          {RUNTIME(cudaEventRecord), 3, {Use("E"), UseStream()}},
          {"cudaEventQuery", Ready(cudaEventQuery), 2, {Use("E")}},
          {RUNTIME(cudaEventSynchronize), 2, {Use("E")}},
          {RUNTIME(cudaMemset), 2, {Use("M"), Number({0, 255}), kBytes}, Done(2), Fits({0}, 2)},
          {RUNTIME(cudaMemcpy),
           3,
           {Use("MHB", 0), Use("MHB", 0), kBytes, Number({4, 4, 4, 9})},
           Done(2),
           Fits({0, 1}, 2)},
          {"cudaPointerGetAttributes", PointerAttributes, 3, {Out("MHB"), Use("MHB")}},
          {RUNTIME(cudaMemGetInfo), 1, {Hidden(), Hidden()}},
          {RUNTIME(cudaSetDeviceFlags), 1, {Number({0, 1, 2, 4, 8, 16, 3, 0x1000})}},
          {RUNTIME(cudaDeviceGetLimit), 1, {Out(), Number({0, 3, 4, 5, 6, 7, 77, -1})}},
          {RUNTIME(cudaDeviceSetLimit), 1, {Number({0, 3, 4, 5, 77}), Number({0, 64, 1024, 4096})}},
          {RUNTIME(cudaDeviceGetCacheConfig), 1, {Out()}},
          {RUNTIME(cudaDeviceSetCacheConfig), 1, {Number({0, 1, 2, 3})}},
          {RUNTIME(cudaDeviceGetStreamPriorityRange), 1, {Out(), Out()}},
          {RUNTIME(cudaDeviceGetAttribute),
           1,
           {Out(), Number({1, 10, 16, 31, 75, 0, 1000}), Number({0, 0, 7, -1})}},
          {RUNTIME(cudaDeviceCanAccessPeer), 1, {Out(), Number({0, 7}), Number({0, 7})}},
          {RUNTIME(cudaCtxResetPersistingL2Cache), 1},
          {RUNTIME(cudaMallocManaged),
           1,
           {Make("M"), kSize, Number({1, 1, 2, 0, 3})},
           Allocated(0, 1)},
          {RUNTIME(cudaHostAlloc),
           1,
           {Make("H"), Number({16, 4096, 0}), Number({0, 1, 2, 4, 8})},
           Allocated(0, 1)},
          {RUNTIME(cudaHostRegister),
           1,
           {Use("B"), Number({4096, 65536, 0}), Number({0, 1, 2, 16})},
           {},
           IsFree(0)},
          {RUNTIME(cudaHostUnregister), 1, {Use("BBBH")}, {}, IsFree(0)},
          {RUNTIME(cudaHostGetDevicePointer), 1, {Out("MHB"), Use("HB"), Number({0, 0, 1})}},
          {RUNTIME(cudaMemsetAsync),
           2,
           {Use("M", 0), Number({0, 255}), kBytes, UseStream()},
           Used({0}, 3),
           Fits({0}, 2)},
          {RUNTIME(cudaMemcpyAsync),
           2,
           {Use("MHB", 0), Use("MHB", 0), kBytes, Number({4, 4, 4, 9}), UseStream()},
           Used({0, 1}, 4),
           Fits({0, 1}, 2)},
          {RUNTIME(cudaStreamCreateWithPriority),
           1,
           {Make("S"), Number({0, 1, 2}), Number({0, -1, -100})},
           OfCurrent(0)},
          {RUNTIME(cudaStreamGetPriority), 1, {UseStream(), Out()}},
          {RUNTIME(cudaStreamGetId), 1, {UseStream(), Out("s")}},
          // A null output crashes (measured on an H100, driver 580.159.04).
          {RUNTIME(cudaStreamGetDevice), 1, {UseStream(), Out("", 0)}},
          {RUNTIME(cudaGraphGetNodes), 1, {Use("R"), Number({0}), Out()}},
          {RUNTIME(cudaGraphExecDestroy), 1, {Use("X")}, Ends(0)},
      },
  };
}

}  // namespace conformance
