// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
//
// Not for embedders. The declarations of <cuda.h> that the library uses and that the headers of
// an older CUDA Toolkit lack. They are the driver's ABI, which does not depend on the headers:
// code compiled with CUDA 12.0 also runs on a newer driver.
//
// Oldest headers: CUDA 12.0. Source: <cuda.h> of the releases named below.

#ifndef CUGUEST_INTERNAL_TOOLKIT_H_
#define CUGUEST_INTERNAL_TOOLKIT_H_

#include <cuda.h>

#include "cuguest/export.h"

#if CUDA_VERSION < 12000
#error "cuguest needs the headers of CUDA 12.0 or newer. (The driver may be older.)"
#endif

CUGUEST_BEGIN_NAMESPACE

#if CUDA_VERSION < 12040
// Types of CUDA 12.4, by their own names, with the same layout.
enum CUfunctionLoadingState {
  CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
  CU_FUNCTION_LOADING_STATE_LOADED = 1,
};
enum CUdevResourceType { CU_DEV_RESOURCE_TYPE_SM = 1 };
struct CUdevSmResource {
  unsigned smCount;
};
struct CUdevResource {
  CUdevResourceType type;
  unsigned char internal_padding[92];
  union {
    CUdevSmResource sm;
    unsigned char oversize[48];
  };
};
using CUgreenCtx = struct GreenCtx*;
using CUdevResourceDesc = struct DevResourceDesc*;
#endif

#if CUDA_VERSION < 12050
// Types of CUDA 12.5, in the same way.
enum CUcigDataType {
  CIG_DATA_TYPE_D3D12_COMMAND_QUEUE = 0x1,
  CIG_DATA_TYPE_NV_BLOB = 0x2,
};
struct CUctxCigParam {
  CUcigDataType sharedDataType;
  void* sharedData;
};
struct CUctxCreateParams {
  CUexecAffinityParam* execAffinityParams;
  int numExecAffinityParams;
  CUctxCigParam* cigParams;
};
#endif

#if CUDA_VERSION < 13010
// A type of CUDA 13.1, in the same way.
struct CU_DEV_SM_RESOURCE_GROUP_PARAMS {
  unsigned smCount;
  unsigned coscheduledSmCount;
  unsigned preferredCoscheduledSmCount;
  unsigned flags;
  unsigned reserved[12];
};
#endif

namespace internal {

// cuCtxGetDevice of CUDA 13.0.
using GetDeviceOf = CUresult(CUDAAPI*)(CUdevice* device, CUcontext context);

// CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER of CUDA 13.0.
CUGUEST_HIDE inline constexpr CUresult kCallRequiresNewerDriver = static_cast<CUresult>(36);

// CU_GREEN_CTX_DEFAULT_STREAM and CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION of CUDA 12.4.
CUGUEST_HIDE inline constexpr unsigned kGreenDefaultStream = 1;
CUGUEST_HIDE inline constexpr CUresult kInvalidResourceConfiguration = static_cast<CUresult>(915);

// CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG of CUDA 13.1, and CUdevWorkqueueConfigResource, which lies
// where a CUdevResource has its `sm`.
CUGUEST_HIDE inline constexpr unsigned kQueueConfig = 1000;
struct QueueConfig {
  CUdevice device;
  unsigned limit;
  unsigned scope;
};
CUGUEST_HIDE inline constexpr unsigned kBalancedQueues = 1;  // of CUdevWorkqueueConfigScope

// Values of CUjit_option: CU_JIT_MIN_CTA_PER_SM, CU_JIT_MAX_THREADS_PER_BLOCK and
// CU_JIT_OVERRIDE_DIRECTIVE_VALUES are in the headers since CUDA 12.4, CU_JIT_SPLIT_COMPILE since
// 13.0, CU_JIT_BINARY_LOADER_THREAD_COUNT since 13.1. Numbers, because the enumeration of older
// headers is too narrow for a constant with such a value.
CUGUEST_HIDE inline constexpr unsigned kJitMinBlocksPerMultiprocessor = 31;
CUGUEST_HIDE inline constexpr unsigned kJitMaxThreadsPerBlock = 32;
CUGUEST_HIDE inline constexpr unsigned kJitOverrideDirectives = 33;
CUGUEST_HIDE inline constexpr unsigned kJitSplitCompile = 34;
CUGUEST_HIDE inline constexpr unsigned kJitLoaderThreads = 35;

#if CUDA_VERSION >= 12040
static_assert(kGreenDefaultStream == CU_GREEN_CTX_DEFAULT_STREAM);
static_assert(kInvalidResourceConfiguration == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
static_assert(kJitMinBlocksPerMultiprocessor == CU_JIT_MIN_CTA_PER_SM);
static_assert(kJitMaxThreadsPerBlock == CU_JIT_MAX_THREADS_PER_BLOCK);
static_assert(kJitOverrideDirectives == CU_JIT_OVERRIDE_DIRECTIVE_VALUES);
#endif
#if CUDA_VERSION >= 13000
static_assert(kCallRequiresNewerDriver == CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
static_assert(kJitSplitCompile == CU_JIT_SPLIT_COMPILE);
#endif
#if CUDA_VERSION >= 13010
static_assert(kQueueConfig == CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG);
static_assert(kBalancedQueues == CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED);
static_assert(sizeof(QueueConfig) == sizeof(CUdevWorkqueueConfigResource));
#endif

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_TOOLKIT_H_
