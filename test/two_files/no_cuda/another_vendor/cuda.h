/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A cuda.h of another vendor: the driver's names are macros of types and functions of its own. */

#ifndef CUGUEST_TEST_TWO_FILES_NO_CUDA_ANOTHER_VENDOR_CUDA_H_
#define CUGUEST_TEST_TWO_FILES_NO_CUDA_ANOTHER_VENDOR_CUDA_H_

typedef struct ihipCtx_t* hipCtx_t;
typedef struct ihipStream_t* hipStream_t;
typedef int hipDevice_t;
typedef void* hipDeviceptr_t;
typedef enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidContext = 201,
  hipErrorNotSupported = 801,
} hipError_t;
typedef enum hipStreamCaptureMode {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeRelaxed = 2,
} hipStreamCaptureMode;
typedef enum hipStreamCaptureStatus { hipStreamCaptureStatusNone = 0 } hipStreamCaptureStatus;

static inline hipError_t hipCtxPushCurrent(hipCtx_t context) {
  return context != 0 ? hipSuccess : hipErrorInvalidContext;
}

#define CUcontext hipCtx_t
#define CUstream hipStream_t
#define CUdevice hipDevice_t
#define CUdeviceptr hipDeviceptr_t
#define CUresult hipError_t
#define CUDA_SUCCESS hipSuccess
#define CUDA_ERROR_INVALID_CONTEXT hipErrorInvalidContext
#define CUDA_ERROR_NOT_SUPPORTED hipErrorNotSupported
#define CUstreamCaptureMode hipStreamCaptureMode
#define CU_STREAM_CAPTURE_MODE_RELAXED hipStreamCaptureModeRelaxed
#define CUstreamCaptureStatus hipStreamCaptureStatus
#define cuCtxPushCurrent hipCtxPushCurrent

#endif /* CUGUEST_TEST_TWO_FILES_NO_CUDA_ANOTHER_VENDOR_CUDA_H_ */
