// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contexts made, counted and destroyed by the user: cuCtxCreate, cuCtxDestroy,
// cuCtxAttach, cuCtxDetach; and what identifies one: id, device, API version.

#include <algorithm>

#include "driver/api.h"
#include "driver/context/context.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

constexpr unsigned kLeastAffinity = 8;

// What a context is created with beside its flags.
struct Extras {
  unsigned api_version = kApiVersion;
  unsigned affinity = kMultiprocessors;
  bool is_cig = false;
};

CUresult CreateAndPush(CUcontext* handle, unsigned flags, CUdevice device,
                       const Extras& extras = {}) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (handle == nullptr || !AreContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (StickyError() != CUDA_SUCCESS) return StickyError();
  Context* context = Context::Create(device, flags, extras.api_version);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  context->affinity.store(extras.affinity);
  context->limits[CU_LIMIT_CIG_ENABLED].store(extras.is_cig ? 1 : 0);
  context->Hold();
  Stack::Push(context);
  *handle = context->handle();
  return CUDA_SUCCESS;
}

// The context an argument names, which may be null for the current one.
CUresult Named(CUcontext handle, Context** context) {
  if (handle == nullptr) return Current(context);
  return Context::FindNamed(handle, context);
}

CUresult DestroyAndPop(Context* context) {
  const bool current = Stack::Top() == context;
  if (!context->Destroy()) {
    return context->HasMemory() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
  }
  if (current) Stack::Pop();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CtxCreateFirst(CUcontext* handle, unsigned flags, CUdevice device) {
  Extras extras;
  extras.api_version = kFirstApiVersion;
  return CreateAndPush(handle, flags, device, extras);
}

CUresult CtxCreate(CUcontext* handle, unsigned flags, CUdevice device) {
  return CreateAndPush(handle, flags, device);
}

CUresult CtxCreateAffinity(CUcontext* handle, CUexecAffinityParam* affinity, int count,
                           unsigned flags, CUdevice device) {
  Extras extras;
  for (int i = 0; affinity != nullptr && i < count; ++i) {  // the last one of a type counts
    const unsigned wanted = affinity[i].param.smCount.val;
    if (!DeviceFeatures::HasExecAffinity() || affinity[i].type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) {
      return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    }
    if (wanted == 0 || wanted > kMultiprocessors) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    extras.affinity = std::max(kLeastAffinity, (wanted + 1) / 2 * 2);
  }
  return CreateAndPush(handle, flags, device, extras);
}

CUresult CtxCreateParameters(CUcontext* handle, CUctxCreateParams* parameters, unsigned flags,
                             CUdevice device) {
  if (parameters == nullptr) return CreateAndPush(handle, flags, device);
  const CUctxCigParam* cig = parameters->cigParams;
  if (cig == nullptr) {
    return CtxCreateAffinity(handle, parameters->execAffinityParams,
                             parameters->numExecAffinityParams, flags, device);
  }
  if (!DeviceFeatures::HasCig()) return CUDA_ERROR_NOT_SUPPORTED;
  if (parameters->execAffinityParams != nullptr) {
    Panic("cuCtxCreate: with an execution affinity and for CUDA in Graphics, which is undefined");
  }
  if (cig->sharedData == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Extras extras;
  extras.is_cig = true;
  return CreateAndPush(handle, flags, device, extras);
}

CUresult CtxDestroy(CUcontext handle) {
  // In this order, unlike every other entry: destroying null before cuInit is
  // INVALID_VALUE (test/errors_and_init_facts_test.cc).
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = Process::Serves(Floor::kInitialized);
  if (code != CUDA_SUCCESS) return code;
  Context* context = Context::FindOrPanic(handle);
  const bool users = !context->is_primary() && !context->is_green();
  return users ? DestroyAndPop(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CtxAttach(CUcontext* handle, unsigned flags) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!incarnation.context->is_primary()) incarnation.context->Attach();
  *handle = incarnation.context->handle();
  return CUDA_SUCCESS;
}

CUresult CtxDetach(CUcontext handle) {
  Context* context = handle != nullptr ? Context::FindOrPanic(handle) : nullptr;
  Context* top = Stack::Top();
  if (top != nullptr && !top->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const bool is_within = top != nullptr && top->is_green() && top->owner() == context;
  if (context == nullptr || (top != context && !is_within)) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->is_primary()) return CUDA_SUCCESS;
  if (context->is_green()) return CUDA_ERROR_INVALID_CONTEXT;
  return context->DetachIsLast() ? DestroyAndPop(context) : CUDA_SUCCESS;
}

CUresult CtxGetDevice(CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = Current(&context);
  if (code == CUDA_SUCCESS) *device = context->device();
  return code;
}

CUresult CtxGetDeviceOf(CUdevice* device, CUcontext handle) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = Named(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  if (!context->HasMemory()) {
    PanicHandle(handle,
                "the context was destroyed and is on no stack; a real driver crashes here "
                "(measured on an H100, "
                "driver 580.159.04)");
  }
  *device = context->device();
  return CUDA_SUCCESS;
}

CUresult CtxGetId(CUcontext handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = Named(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  const Incarnation incarnation = IncarnationOf(context);
  if (!incarnation.IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (handle == nullptr && StickyError() != CUDA_SUCCESS) return StickyError();
  *id = incarnation.id;
  return CUDA_SUCCESS;
}

CUresult CtxGetApiVersion(CUcontext handle, unsigned* version) {
  if (handle != nullptr && version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult code = Named(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  if (!context->IsAlive()) {
    return handle == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
  }
  if (handle == nullptr && StickyError() != CUDA_SUCCESS) return StickyError();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = context->api_version();
  return CUDA_SUCCESS;
}

CUresult CtxSynchronize() {
  Incarnation incarnation;
  CUresult code = CurrentPlace(&incarnation);
  if (code == CUDA_SUCCESS) code = StickyError();
  if (code != CUDA_SUCCESS) return code;
  Schedule::WaitForContext(incarnation.id);
  return StickyError();
}

CUresult CtxSynchronizeOf(CUcontext handle) {
  Context* context = nullptr;
  CUresult code = Named(handle, &context);
  if (code != CUDA_SUCCESS) return code;
  if (!context->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  code = AskCaptures(IncarnationOf(context));
  if (code == CUDA_SUCCESS) code = StickyError();
  if (code != CUDA_SUCCESS) return code;
  Schedule::WaitForContext(context->id());
  return StickyError();
}

}  // namespace cudasim::driver
