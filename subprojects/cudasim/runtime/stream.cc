// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams.

#include "runtime/stream.h"

#include <memory>

#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/entry.h"

namespace cudasim::runtime {
namespace {

// The callback of the driver has another type of code.
struct Callback {
  cudaStreamCallback_t function;
  void* data;

  static void CUDA_CB Run(CUstream stream, CUresult code, void* data) {
    const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
    callback->function(stream, ToError(code), callback->data);
  }
};

bool IsOfNoContext(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

}  // namespace

CUstream ToDriver(cudaStream_t stream) {
  return stream == nullptr && IsPerThread() ? CU_STREAM_PER_THREAD : stream;
}

cudaError_t BindForStream(cudaStream_t stream) {
  return IsOfNoContext(stream) ? BindContext() : cudaSuccess;
}

cudaError_t StreamCreate(cudaStream_t* stream) {
  return StreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t StreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuStreamCreate(stream, flags));
}

cudaError_t StreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t StreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  return ToError(Driver().cuStreamDestroy(stream));
}

cudaError_t StreamSynchronize(cudaStream_t stream) {
  return ToError(Driver().cuStreamSynchronize(ToDriver(stream)));
}

cudaError_t StreamQuery(cudaStream_t stream) {
  return ToError(Driver().cuStreamQuery(ToDriver(stream)));
}

cudaError_t StreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return ToError(Driver().cuStreamWaitEvent(ToDriver(stream), event, flags));
}

cudaError_t StreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return ToError(Driver().cuStreamGetFlags(ToDriver(stream), flags));
}

cudaError_t StreamGetPriority(cudaStream_t stream, int* priority) {
  return ToError(Driver().cuStreamGetPriority(ToDriver(stream), priority));
}

cudaError_t StreamGetId(cudaStream_t stream, unsigned long long* id) {
  return ToError(Driver().cuStreamGetId(ToDriver(stream), id));
}

cudaError_t StreamGetDevice(cudaStream_t stream, int* device) {
  const cudaError_t code = BindForStream(stream);
  return code != cudaSuccess ? code : ToError(Driver().cuStreamGetDevice(ToDriver(stream), device));
}

cudaError_t StreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                              unsigned flags) {
  if (function == nullptr) return cudaErrorInvalidValue;
  auto callback = std::make_unique<Callback>(Callback{function, data});
  const CUresult code =
      Driver().cuStreamAddCallback(ToDriver(stream), &Callback::Run, callback.get(), flags);
  if (code == CUDA_SUCCESS) callback.release();  // Run() deletes it
  return ToError(code);
}

cudaError_t LaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return ToError(Driver().cuLaunchHostFunc(ToDriver(stream), function, data));
}

cudaError_t EventCreate(cudaEvent_t* event) {
  return EventCreateWithFlags(event, cudaEventDefault);
}

// The flags have the driver's numbers.
cudaError_t EventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuEventCreate(event, flags));
}

cudaError_t EventDestroy(cudaEvent_t event) { return ToError(Driver().cuEventDestroy(event)); }

cudaError_t EventRecord(cudaEvent_t event, cudaStream_t stream) {
  return ToError(Driver().cuEventRecord(event, ToDriver(stream)));
}

// The flags have the driver's numbers.
cudaError_t EventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return ToError(Driver().cuEventRecordWithFlags(event, ToDriver(stream), flags));
}

cudaError_t EventQuery(cudaEvent_t event) { return ToError(Driver().cuEventQuery(event)); }

cudaError_t EventSynchronize(cudaEvent_t event) {
  return ToError(Driver().cuEventSynchronize(event));
}

cudaError_t EventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuEventElapsedTime(milliseconds, start, end));
}

}  // namespace cudasim::runtime
