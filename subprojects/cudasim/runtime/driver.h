// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver below: public entries of libcuda.so.1, by the names that it exports.

#ifndef CUDASIM_RUNTIME_DRIVER_H_
#define CUDASIM_RUNTIME_DRIVER_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "driver/tool.h"

namespace cudasim::runtime {

// Each is the function that <cuda.h> means by the name.
// clang-format off
#define CUDASIM_RUNTIME_DRIVER(X)                                                       \
  X(cuInit) X(cuDriverGetVersion) X(cuGetProcAddress)                                       \
  X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetUuid) X(cuDeviceTotalMem)             \
  X(cuDeviceGetAttribute) X(cuDeviceGetPCIBusId) X(cuDeviceGetByPCIBusId)                   \
  X(cuDeviceCanAccessPeer) X(cuDeviceGetP2PAttribute)                                       \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxReset)       \
  X(cuDevicePrimaryCtxGetState) X(cuDevicePrimaryCtxSetFlags)                               \
  X(cuCtxGetCurrent) X(cuCtxSetCurrent) X(cuCtxGetDevice) X(cuCtxGetId) X(cuCtxGetFlags)    \
  X(cuCtxSynchronize) X(cuCtxSynchronize_v2) X(cuCtxGetLimit) X(cuCtxSetLimit) X(cuCtxGetCacheConfig)              \
  X(cuCtxSetCacheConfig) X(cuCtxGetStreamPriorityRange) X(cuCtxResetPersistingL2Cache)      \
  X(cuCtxEnablePeerAccess) X(cuCtxDisablePeerAccess) X(cuCtxFromGreenCtx)                   \
  X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxGetDevice_v2) X(cuCtxRecordEvent)           \
  X(cuCtxWaitEvent) X(cuCtxGetDevResource) X(cuDeviceGetDevResource)                        \
  X(cuDevSmResourceSplitByCount) X(cuDevResourceGenerateDesc) X(cuGreenCtxCreate)           \
  X(cuGreenCtxDestroy) X(cuGreenCtxStreamCreate)                                            \
  X(cuMemGetInfo) X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemAllocManaged) X(cuMemFree)        \
  X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister) X(cuMemHostUnregister)            \
  X(cuMemHostGetDevicePointer) X(cuMemHostGetFlags) X(cuPointerGetAttributes)               \
  X(cuMemAllocAsync) X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync)                           \
  X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolGetAttribute) X(cuMemPoolSetAttribute)  \
  X(cuMemPoolTrimTo) X(cuMemPoolGetAccess) X(cuMemPoolSetAccess)                            \
  X(cuMemPoolExportToShareableHandle) X(cuMemPoolImportFromShareableHandle)                 \
  X(cuMemPoolExportPointer) X(cuMemPoolImportPointer)                                       \
  X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) X(cuDeviceSetMemPool)                  \
  X(cuMemcpyAsync) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync)           \
  X(cuMemcpyPeerAsync) X(cuMemsetD8Async)                                                   \
  X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy) X(cuStreamSynchronize) \
  X(cuStreamQuery) X(cuStreamWaitEvent) X(cuStreamGetFlags) X(cuStreamGetPriority)          \
  X(cuStreamGetId) X(cuStreamGetDevice) X(cuStreamAddCallback) X(cuLaunchHostFunc)          \
  X(cuStreamIsCapturing) X(cuThreadExchangeStreamCaptureMode) X(cuStreamBeginCapture)       \
  X(cuStreamEndCapture) X(cuStreamGetCaptureInfo)                                           \
  X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphGetNodes) X(cuGraphNodeGetType)               \
  X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphExecUpdate) X(cuGraphExecDestroy) \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery)                       \
  X(cuEventRecordWithFlags) X(cuEventSynchronize) X(cuEventElapsedTime)                     \
  X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle)                         \
  X(cuIpcGetEventHandle) X(cuIpcOpenEventHandle)                                            \
  X(cuMemcpy3DAsync) X(cuMemsetD2D8Async)                                                   \
  X(cuArray3DCreate) X(cuArrayDestroy) X(cuArray3DGetDescriptor) X(cuMipmappedArrayCreate)  \
  X(cuMipmappedArrayGetLevel) X(cuMipmappedArrayDestroy)                                    \
  X(cuTexObjectCreate) X(cuTexObjectDestroy) X(cuTexObjectGetResourceDesc)                  \
  X(cuTexObjectGetTextureDesc) X(cuTexObjectGetResourceViewDesc)                            \
  X(cuSurfObjectCreate) X(cuSurfObjectDestroy) X(cuSurfObjectGetResourceDesc)               \
  X(cuLibraryLoadData) X(cuLibraryUnload) X(cuLibraryGetKernel) X(cuLibraryGetKernelCount)  \
  X(cuLibraryEnumerateKernels) X(cuKernelGetFunction) X(cuKernelGetName)                    \
  X(cuFuncGetAttribute) X(cuFuncGetName) X(cuLaunchKernel)
// Those that also have a twin whose stream 0 is the per-thread stream.
#define CUDASIM_RUNTIME_DRIVER_TWINS(X) \
  X(cuMemcpy) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD) X(cuMemcpyPeer) X(cuMemsetD8) \
  X(cuMemcpy3D) X(cuMemsetD2D8)
// clang-format on

struct DriverApi {
#define CUDASIM_RUNTIME_MEMBER(name) decltype(&::name) name = nullptr;
#define CUDASIM_RUNTIME_TWINS(name) decltype(&::name) name[2] = {};
  CUDASIM_RUNTIME_DRIVER(CUDASIM_RUNTIME_MEMBER)
  CUDASIM_RUNTIME_DRIVER_TWINS(CUDASIM_RUNTIME_TWINS)
#undef CUDASIM_RUNTIME_MEMBER
#undef CUDASIM_RUNTIME_TWINS
};

// Loads and initialises the driver at the first call; the answer is for good.
//
// cudaErrorInsufficientDriver if there is none, or one older than this runtime's major
// version; otherwise what cuInit says. Threads: any.
cudaError_t EnsureDriver();

// 0 without a driver, which is no error.
cudaError_t DriverVersion(int* version);

// After EnsureDriver() succeeded.
const DriverApi& Driver();
// The devices at that time: a forked child still gets the answer.
int DeviceCount();

// Of the primary context, active or not; nullptr where the driver is not the simulated one.
CUcontext PrimaryHandle(int device);

// Where the driver has its subscriber; null as long as no simulated driver is loaded. Opens the
// driver only for a library that is to be injected.
const cudasim::driver::Tool* TheTool();

// CUDART_VERSION, or the one that CUDASIM_RUNTIME_VERSION asks for.
int RuntimeVersion();

// Tells the simulated driver, which it loads, of a call that is not modelled. Threads: any.
void CountUnmodelled(const char* symbol);

inline bool IsDevice(int device) { return device >= 0 && device < DeviceCount(); }

// The same number, also where the runtime has no name for it (measured with every code on
// an H200, driver 580.159.04).
inline cudaError_t ToError(CUresult code) { return static_cast<cudaError_t>(code); }

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_DRIVER_H_
