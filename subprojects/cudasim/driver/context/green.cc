// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/api.h"
#include "driver/context/dev_resource.h"
#include "driver/context/device.h"
#include "driver/context/primary.h"
#include "driver/context/stack.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

CUresult FindGreenContext(CUgreenCtx green, Context** context) {
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = Context::FindOrPanic(reinterpret_cast<CUcontext>(green));
  if (!(*context)->is_green()) return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->IsAlive() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult GreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc description, CUdevice device,
                        unsigned flags) {
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = CreateGreenContext(device, PartitionOf(description), &context);
  if (code == CUDA_SUCCESS) *green = context->green_handle();
  return code;
}

// It stays on the stacks that hold it, also on the caller's.
CUresult GreenCtxDestroy(CUgreenCtx green) {
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  return code != CUDA_SUCCESS ? code : DestroyGreenContext(context);
}

CUresult CtxFromGreenCtx(CUcontext* handle, CUgreenCtx green) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  if (code != CUDA_SUCCESS) return code;
  context->ShowAsContext();
  *handle = context->handle();
  return CUDA_SUCCESS;
}

// Null is the current one.
CUresult GreenCtxGetId(CUgreenCtx green, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (green == nullptr && Current(&context) == CUDA_SUCCESS) {
    if (!context->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    green = context->green_handle();
  }
  const CUresult code = FindGreenContext(green, &context);
  if (code == CUDA_SUCCESS) *id = context->id();
  return code;
}

CUresult GreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags, int priority) {
  if (stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  if (code != CUDA_SUCCESS) return code;
  return CreateStream(IncarnationOf(context), flags, priority, stream);
}

}  // namespace cudasim::driver
