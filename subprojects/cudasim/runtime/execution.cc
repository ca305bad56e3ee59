// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Execution contexts, which the runtime has from 13.1 on: the primary context of a device, or a
// green one. "measured": with the runtime of 13.5 on an H200 and an H100, driver 580.159.04.
// "documented": in the <cuda_runtime_api.h> of 13.5.

#include "runtime/execution.h"

#include <atomic>
#include <cstdint>

#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/driver.h"

namespace cudasim::runtime {
namespace {

// Measured: a handle is the driver's. Documented: it is opaque, so it may be told to be another
// value, of which the driver knows nothing.
std::atomic<std::uintptr_t> g_tag{0};

// Measured: none may be null.
cudaError_t FromHandle(cudaExecutionContext_t handle, CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(reinterpret_cast<std::uintptr_t>(handle) ^ g_tag);
  return handle != nullptr ? cudaSuccess : cudaErrorInvalidValue;
}

cudaExecutionContext_t ToHandle(CUcontext context) {
  return reinterpret_cast<cudaExecutionContext_t>(reinterpret_cast<std::uintptr_t>(context) ^
                                                  g_tag);
}

CUdevResource* ToDriver(cudaDevResource* resource) {
  return reinterpret_cast<CUdevResource*>(resource);
}
const CUdevResource* ToDriver(const cudaDevResource* resource) {
  return reinterpret_cast<const CUdevResource*>(resource);
}
CUdevResourceType ToDriver(cudaDevResourceType type) {
  return static_cast<CUdevResourceType>(type);
}

// The driver has no call that creates a stream in a context that is not current, unless it is
// green.
CUresult CreateStreamIn(CUcontext context, CUstream* stream, unsigned flags, int priority) {
  CUresult code = Driver().cuCtxPushCurrent(context);
  if (code != CUDA_SUCCESS) return code;
  code = Driver().cuStreamCreateWithPriority(stream, flags, priority);
  CUcontext popped = nullptr;
  Driver().cuCtxPopCurrent(&popped);
  return code;
}

// A function of the driver's that came with 13.1: null in an older one.
template <typename Function>
Function FindLater(const char* name) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = {};
  Driver().cuGetProcAddress(name, &found, 13010, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  return reinterpret_cast<Function>(found);
}

// `call(context)` of the driver.
template <typename Call>
cudaError_t With(cudaExecutionContext_t handle, const Call& call) {
  CUcontext context = nullptr;
  const cudaError_t code = FromHandle(handle, &context);
  return code != cudaSuccess ? code : ToError(call(context));
}

}  // namespace

void TagExecutionContexts(bool tagged) { g_tag = tagged ? std::uintptr_t{1} << 62 : 0; }

// Measured: an inactive primary context is created, and nothing is made current.
cudaError_t DeviceGetExecutionCtx(cudaExecutionContext_t* handle, int device) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  CUcontext primary = nullptr;
  const cudaError_t code = HoldPrimary(device, &primary);
  if (code == cudaSuccess) *handle = ToHandle(primary);
  return code;
}

// Measured: nothing is made current. Documented: `flags` is 0.
cudaError_t GreenCtxCreate(cudaExecutionContext_t* handle, cudaDevResourceDesc_t description,
                           int device, unsigned flags) {
  if (handle == nullptr || flags != 0) return cudaErrorInvalidValue;
  CUgreenCtx green = nullptr;
  CUresult code =
      Driver().cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
  CUcontext context = nullptr;
  if (code == CUDA_SUCCESS) code = Driver().cuCtxFromGreenCtx(&context, green);
  if (code == CUDA_SUCCESS) *handle = ToHandle(context);
  return ToError(code);
}

// Documented: undefined for a primary context; the simulated driver refuses it.
cudaError_t ExecutionCtxDestroy(cudaExecutionContext_t handle) {
  return With(handle, [](CUcontext context) {
    return Driver().cuGreenCtxDestroy(reinterpret_cast<CUgreenCtx>(context));
  });
}

cudaError_t ExecutionCtxGetDevResource(cudaExecutionContext_t handle, cudaDevResource* resource,
                                       cudaDevResourceType type) {
  return With(handle, [=](CUcontext context) {
    return Driver().cuCtxGetDevResource(context, ToDriver(resource), ToDriver(type));
  });
}

cudaError_t ExecutionCtxGetDevice(int* device, cudaExecutionContext_t handle) {
  return With(handle,
              [=](CUcontext context) { return Driver().cuCtxGetDevice_v2(device, context); });
}

// Measured: it is the driver's id, and 709 once the context is destroyed or reset.
cudaError_t ExecutionCtxGetId(cudaExecutionContext_t handle, unsigned long long* id) {
  return With(handle, [=](CUcontext context) { return Driver().cuCtxGetId(context, id); });
}

cudaError_t ExecutionCtxRecordEvent(cudaExecutionContext_t handle, cudaEvent_t event) {
  return With(handle, [=](CUcontext context) { return Driver().cuCtxRecordEvent(context, event); });
}

// Measured: it needs nothing current and makes nothing current. Documented: a stream of a green
// context is non-blocking.
cudaError_t ExecutionCtxStreamCreate(cudaStream_t* stream, cudaExecutionContext_t handle,
                                     unsigned flags, int priority) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  return With(handle, [=](CUcontext context) {
    if (!IsGreen(context)) return CreateStreamIn(context, stream, flags, priority);
    return Driver().cuGreenCtxStreamCreate(stream, reinterpret_cast<CUgreenCtx>(context),
                                           flags | CU_STREAM_NON_BLOCKING, priority);
  });
}

cudaError_t ExecutionCtxSynchronize(cudaExecutionContext_t handle) {
  return With(handle, [](CUcontext context) { return Driver().cuCtxSynchronize_v2(context); });
}

cudaError_t ExecutionCtxWaitEvent(cudaExecutionContext_t handle, cudaEvent_t event) {
  return With(handle, [=](CUcontext context) { return Driver().cuCtxWaitEvent(context, event); });
}

cudaError_t DeviceGetDevResource(int device, cudaDevResource* resource, cudaDevResourceType type) {
  return ToError(Driver().cuDeviceGetDevResource(device, ToDriver(resource), ToDriver(type)));
}

cudaError_t DevSmResourceSplitByCount(cudaDevResource* result, unsigned* count,
                                      const cudaDevResource* input, cudaDevResource* remaining,
                                      unsigned flags, unsigned least) {
  return ToError(Driver().cuDevSmResourceSplitByCount(ToDriver(result), count, ToDriver(input),
                                                      ToDriver(remaining), flags, least));
}

// Documented: this and cudaStreamGetDevResource need a driver of 13.1.
cudaError_t DevSmResourceSplit(cudaDevResource* result, unsigned count,
                               const cudaDevResource* input, cudaDevResource* remainder,
                               unsigned flags, cudaDevSmResourceGroupParams* groups) {
  using Split = CUresult (*)(CUdevResource*, unsigned, const CUdevResource*, CUdevResource*,
                             unsigned, cudaDevSmResourceGroupParams*);
  const auto split = FindLater<Split>("cuDevSmResourceSplit");
  if (split == nullptr) return cudaErrorCallRequiresNewerDriver;
  return ToError(
      split(ToDriver(result), count, ToDriver(input), ToDriver(remainder), flags, groups));
}

cudaError_t DevResourceGenerateDesc(cudaDevResourceDesc_t* description, cudaDevResource* resources,
                                    unsigned count) {
  return ToError(Driver().cuDevResourceGenerateDesc(description, ToDriver(resources), count));
}

cudaError_t StreamGetDevResource(cudaStream_t stream, cudaDevResource* resource,
                                 cudaDevResourceType type) {
  using Get = CUresult (*)(CUstream, CUdevResource*, CUdevResourceType);
  const auto get = FindLater<Get>("cuStreamGetDevResource");
  if (get == nullptr) return cudaErrorCallRequiresNewerDriver;
  return ToError(get(stream, ToDriver(resource), ToDriver(type)));
}

}  // namespace cudasim::runtime
