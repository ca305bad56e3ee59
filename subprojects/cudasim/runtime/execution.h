// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What <cuda_runtime_api.h> declares of execution contexts from CUDA 13.1 on, for builds with older
// headers. Resources have the driver's layout.

#ifndef CUDASIM_RUNTIME_EXECUTION_H_
#define CUDASIM_RUNTIME_EXECUTION_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#if CUDART_VERSION < 13010

using cudaExecutionContext_t = struct cudaExecutionContext_st*;
using cudaDevResourceDesc_t = CUdevResourceDesc;
using cudaDevResource = CUdevResource;
using cudaDevResourceType = CUdevResourceType;
struct cudaDevSmResourceGroupParams;

extern "C" {
cudaError_t cudaDeviceGetExecutionCtx(cudaExecutionContext_t* context, int device);
cudaError_t cudaGreenCtxCreate(cudaExecutionContext_t* context, cudaDevResourceDesc_t description,
                               int device, unsigned flags);
cudaError_t cudaExecutionCtxDestroy(cudaExecutionContext_t context);
cudaError_t cudaExecutionCtxGetDevResource(cudaExecutionContext_t context,
                                           cudaDevResource* resource, cudaDevResourceType type);
cudaError_t cudaExecutionCtxGetDevice(int* device, cudaExecutionContext_t context);
cudaError_t cudaExecutionCtxGetId(cudaExecutionContext_t context, unsigned long long* id);
cudaError_t cudaExecutionCtxRecordEvent(cudaExecutionContext_t context, cudaEvent_t event);
cudaError_t cudaExecutionCtxStreamCreate(cudaStream_t* stream, cudaExecutionContext_t context,
                                         unsigned flags, int priority);
cudaError_t cudaExecutionCtxSynchronize(cudaExecutionContext_t context);
cudaError_t cudaExecutionCtxWaitEvent(cudaExecutionContext_t context, cudaEvent_t event);
cudaError_t cudaDeviceGetDevResource(int device, cudaDevResource* resource,
                                     cudaDevResourceType type);
cudaError_t cudaDevSmResourceSplitByCount(cudaDevResource* result, unsigned* count,
                                          const cudaDevResource* input, cudaDevResource* remaining,
                                          unsigned flags, unsigned least);
cudaError_t cudaDevSmResourceSplit(cudaDevResource* result, unsigned count,
                                   const cudaDevResource* input, cudaDevResource* remainder,
                                   unsigned flags, cudaDevSmResourceGroupParams* groups);
cudaError_t cudaDevResourceGenerateDesc(cudaDevResourceDesc_t* description,
                                        cudaDevResource* resources, unsigned count);
cudaError_t cudaStreamGetDevResource(cudaStream_t stream, cudaDevResource* resource,
                                     cudaDevResourceType type);
}

#endif

namespace cudasim::runtime {

// As SimRuntime::TagExecutionContexts().
void TagExecutionContexts(bool tagged);

}  // namespace cudasim::runtime

static_assert(sizeof(cudaDevResource) == sizeof(CUdevResource));

#endif  // CUDASIM_RUNTIME_EXECUTION_H_
