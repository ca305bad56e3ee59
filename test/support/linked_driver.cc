// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's functions as a program has them that is linked with libcuda: for the recipes, which
// call them so. Tests link no driver; each of these finds its symbol in libcuda.so.1.

#include <cuda.h>

#include "test/support/raw_driver.h"

#define FORWARD(name, parameters, arguments) \
  CUresult CUDAAPI name parameters { return RAW(name) arguments; }

// <cuda.h> of CUDA 13 has another one in mind.
extern "C" CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return RAW_AS(decltype(&cuCtxCreate_v2), "cuCtxCreate_v2")(context, flags, device);
}

FORWARD(cuCtxDestroy, (CUcontext context), (context))
FORWARD(cuCtxGetCurrent, (CUcontext * context), (context))
FORWARD(cuCtxGetDevice, (CUdevice * device), (device))
FORWARD(cuCtxGetId, (CUcontext context, unsigned long long* id), (context, id))
FORWARD(cuCtxPopCurrent, (CUcontext * context), (context))
FORWARD(cuCtxPushCurrent, (CUcontext context), (context))
FORWARD(cuDeviceGetCount, (int* count), (count))
FORWARD(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))
FORWARD(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned* flags, int* active),
        (device, flags, active))
FORWARD(cuDevicePrimaryCtxRelease, (CUdevice device), (device))
FORWARD(cuDevicePrimaryCtxReset, (CUdevice device), (device))
FORWARD(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
FORWARD(cuEventCreate, (CUevent * event, unsigned flags), (event, flags))
FORWARD(cuEventDestroy, (CUevent event), (event))
FORWARD(cuEventQuery, (CUevent event), (event))
FORWARD(cuEventRecord, (CUevent event, CUstream stream), (event, stream))
FORWARD(cuEventSynchronize, (CUevent event), (event))
FORWARD(cuInit, (unsigned flags), (flags))
FORWARD(cuMemAlloc, (CUdeviceptr * memory, size_t bytes), (memory, bytes))
FORWARD(cuMemAllocFromPoolAsync,
        (CUdeviceptr * memory, size_t bytes, CUmemoryPool pool, CUstream stream),
        (memory, bytes, pool, stream))
FORWARD(cuMemAllocManaged, (CUdeviceptr * memory, size_t bytes, unsigned flags),
        (memory, bytes, flags))
FORWARD(cuMemFree, (CUdeviceptr memory), (memory))
FORWARD(cuMemFreeHost, (void* memory), (memory))
FORWARD(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags), (memory, bytes, flags))
FORWARD(cuMemHostRegister, (void* memory, size_t bytes, unsigned flags), (memory, bytes, flags))
FORWARD(cuMemHostUnregister, (void* memory), (memory))
FORWARD(cuMemcpyDtoD, (CUdeviceptr target, CUdeviceptr source, size_t bytes),
        (target, source, bytes))
FORWARD(cuMemcpyDtoH, (void* target, CUdeviceptr source, size_t bytes), (target, source, bytes))
FORWARD(cuMemcpyHtoDAsync, (CUdeviceptr target, const void* source, size_t bytes, CUstream stream),
        (target, source, bytes, stream))
FORWARD(cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr pointer),
        (data, attribute, pointer))
FORWARD(cuStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
FORWARD(cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags))
FORWARD(cuStreamDestroy, (CUstream stream), (stream))
FORWARD(cuStreamEndCapture, (CUstream stream, CUgraph* graph), (stream, graph))
FORWARD(cuStreamSynchronize, (CUstream stream), (stream))
FORWARD(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
