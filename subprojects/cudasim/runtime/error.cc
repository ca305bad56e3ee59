// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last error, and the names and texts of the codes.

#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/thread.h"

namespace cudasim::runtime {
namespace {

struct ErrorRow {
  cudaError_t code;
  const char* name;
  const char* text;
};

// The texts are those of the runtime of CUDA 13.0.
#define CUDASIM_RUNTIME_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorRow kErrors[] = {
    CUDASIM_RUNTIME_ERROR(cudaSuccess, "no error"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidValue, "invalid argument"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInitializationError, "initialization error"),
    CUDASIM_RUNTIME_ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    CUDASIM_RUNTIME_ERROR(cudaErrorProfilerDisabled,
                          "profiler disabled while using external profiling tool"),
    CUDASIM_RUNTIME_ERROR(cudaErrorProfilerNotInitialized,
                          "profiler not initialized: call cudaProfilerInitialize()"),
    CUDASIM_RUNTIME_ERROR(cudaErrorProfilerAlreadyStarted, "profiler already started"),
    CUDASIM_RUNTIME_ERROR(cudaErrorProfilerAlreadyStopped, "profiler already stopped"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidTextureBinding, "texture is not bound to a pointer"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CUDASIM_RUNTIME_ERROR(cudaErrorAddressOfConstant, "invalid address of constant"),
    CUDASIM_RUNTIME_ERROR(cudaErrorTextureFetchFailed, "fetch from texture failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorTextureNotBound,
                          "cannot fetch from a texture that is not bound"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSynchronizationError, "incorrect use of __syncthreads()"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidFilterSetting,
                          "linear filtering not supported for non-float type"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidNormSetting,
                          "read as normalized float not supported for data type"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMixedDeviceExecution,
                          "device emulation mode and device execution mode cannot be mixed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotYetImplemented, "feature not yet implemented"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMemoryValueTooLarge,
                          "memory size or pointer value too large to fit in 32 bit"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInsufficientDriver,
                          "CUDA driver version is insufficient for CUDA runtime version"),
    CUDASIM_RUNTIME_ERROR(cudaErrorCallRequiresNewerDriver,
                          "API call is not supported in the installed CUDA driver"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidSurface, "invalid surface reference"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDuplicateVariableName,
                          "duplicate global variable looked up by string name"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDuplicateTextureName,
                          "duplicate texture looked up by string name"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDuplicateSurfaceName,
                          "duplicate surface looked up by string name"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDevicesUnavailable,
                          "CUDA-capable device(s) is/are busy or unavailable"),
    CUDASIM_RUNTIME_ERROR(cudaErrorIncompatibleDriverContext, "incompatible driver context"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMissingConfiguration,
                          "__global__ function call is not configured"),
    CUDASIM_RUNTIME_ERROR(cudaErrorPriorLaunchFailure,
                          "unspecified launch failure in prior launch"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchMaxDepthExceeded,
                          "launch would exceed maximum depth of nested launches"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchFileScopedTex,
                          "launch failed because kernel uses unsupported, file-scoped textures "
                          "(texture objects are supported)"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchFileScopedSurf,
                          "launch failed because kernel uses unsupported, file-scoped surfaces "
                          "(surface objects are supported)"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSyncDepthExceeded,
                          "cudaDeviceSynchronize failed because caller's grid depth exceeds "
                          "cudaLimitDevRuntimeSyncDepth"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorLaunchPendingCountExceeded,
        "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDeviceNotLicensed, "device doesn't have valid Grid license"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSoftwareValidityNotEstablished, "integrity checks failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStartupFailure, "startup failure in cuda runtime"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorUnmapBufferObjectFailed, "unmapping of buffer object failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorArrayIsMapped, "array is mapped"),
    CUDASIM_RUNTIME_ERROR(cudaErrorAlreadyMapped, "resource already mapped"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNoKernelImageForDevice,
                          "no kernel image is available for execution on the device"),
    CUDASIM_RUNTIME_ERROR(cudaErrorAlreadyAcquired, "resource already acquired"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotMapped, "resource not mapped"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotMappedAsArray, "resource not mapped as array"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotMappedAsPointer, "resource not mapped as pointer"),
    CUDASIM_RUNTIME_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    CUDASIM_RUNTIME_ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    CUDASIM_RUNTIME_ERROR(cudaErrorDeviceAlreadyInUse,
                          "exclusive-thread device already in use by a different thread"),
    CUDASIM_RUNTIME_ERROR(cudaErrorPeerAccessUnsupported,
                          "peer access is not supported between these two devices"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNvlinkUncorrectable,
                          "uncorrectable NVLink error detected during the execution"),
    CUDASIM_RUNTIME_ERROR(cudaErrorJitCompilerNotFound, "PTX JIT compiler library not found"),
    CUDASIM_RUNTIME_ERROR(cudaErrorUnsupportedPtxVersion,
                          "the provided PTX was compiled with an unsupported toolchain."),
    CUDASIM_RUNTIME_ERROR(cudaErrorJitCompilationDisabled, "PTX JIT compilation was disabled"),
    CUDASIM_RUNTIME_ERROR(cudaErrorUnsupportedExecAffinity,
                          "the provided execution affinity is not supported"),
    CUDASIM_RUNTIME_ERROR(cudaErrorUnsupportedDevSideSync,
                          "the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    CUDASIM_RUNTIME_ERROR(cudaErrorContained,
                          "Invalid access of peer GPU memory over nvlink or a hardware error"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidSource, "device kernel image is invalid"),
    CUDASIM_RUNTIME_ERROR(cudaErrorFileNotFound, "file not found"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSharedObjectInitFailed, "shared object initialization failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorOperatingSystem,
                          "OS call failed or operation not supported on this OS"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    CUDASIM_RUNTIME_ERROR(cudaErrorIllegalState,
                          "the operation cannot be performed in the present state"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLossyQuery,
                          "attempted introspection would be semantically lossy"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotReady, "device not ready"),
    CUDASIM_RUNTIME_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchIncompatibleTexturing,
                          "launch uses incompatible texturing mode"),
    CUDASIM_RUNTIME_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    CUDASIM_RUNTIME_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSetOnActiveProcess,
                          "cannot set while device is active in this process"),
    CUDASIM_RUNTIME_ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorAssert, "device-side assert triggered"),
    CUDASIM_RUNTIME_ERROR(cudaErrorTooManyPeers, "peer mapping resources exhausted"),
    CUDASIM_RUNTIME_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                          "part or all of the requested memory range is already mapped"),
    CUDASIM_RUNTIME_ERROR(cudaErrorHostMemoryNotRegistered,
                          "pointer does not correspond to a registered memory region"),
    CUDASIM_RUNTIME_ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    CUDASIM_RUNTIME_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidAddressSpace,
                          "operation not supported on global/shared address space"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidPc, "invalid program counter"),
    CUDASIM_RUNTIME_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    CUDASIM_RUNTIME_ERROR(cudaErrorCooperativeLaunchTooLarge,
                          "too many blocks in cooperative launch"),
    CUDASIM_RUNTIME_ERROR(cudaErrorTensorMemoryLeak, "tensor memory not completely freed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    CUDASIM_RUNTIME_ERROR(cudaErrorNotSupported, "operation not supported"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    CUDASIM_RUNTIME_ERROR(cudaErrorSystemDriverMismatch,
                          "system has unsupported display driver / cuda driver combination"),
    CUDASIM_RUNTIME_ERROR(cudaErrorCompatNotSupportedOnDevice,
                          "forward compatibility was attempted on non supported HW"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorMpsConnectionFailed,
        "MPS client failed to connect to the MPS control daemon or the MPS server"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorMpsRpcFailure,
        "the remote procedural call between the MPS server and the MPS client failed"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMpsServerNotReady,
                          "MPS server is not ready to accept new MPS client requests"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorMpsMaxClientsReached,
        "the hardware resources required to create MPS client have been exhausted"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorMpsMaxConnectionsReached,
        "the hardware resources required to support device connections have been exhausted"),
    CUDASIM_RUNTIME_ERROR(cudaErrorMpsClientTerminated,
                          "the MPS client has been terminated by the server"),
    CUDASIM_RUNTIME_ERROR(cudaErrorCdpNotSupported,
                          "is using CUDA Dynamic Parallelism, but the current configuration, "
                          "like MPS, does not support it"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorCdpVersionMismatch,
        "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStreamCaptureUnsupported,
                          "operation not permitted when stream is capturing"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStreamCaptureInvalidated,
                          "operation failed due to a previous error during capture"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStreamCaptureMerge,
                          "operation would result in a merge of separate capture sequences"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStreamCaptureUnmatched,
                          "capture was not ended in the same stream as it began"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    CUDASIM_RUNTIME_ERROR(cudaErrorStreamCaptureIsolation,
                          "dependency created on uncaptured work in another stream"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorCapturedEvent,
        "operation not permitted on an event last recorded in a capturing stream"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorStreamCaptureWrongThread,
        "attempt to terminate a thread-local capture sequence from another thread"),
    CUDASIM_RUNTIME_ERROR(cudaErrorTimeout, "wait operation timed out"),
    CUDASIM_RUNTIME_ERROR(cudaErrorGraphExecUpdateFailure,
                          "the graph update was not performed because it included changes "
                          "which violated constraints specific to instantiated graph update"),
    CUDASIM_RUNTIME_ERROR(cudaErrorExternalDevice,
                          "an async error has occured in external entity outside of CUDA"),
    CUDASIM_RUNTIME_ERROR(cudaErrorInvalidClusterSize,
                          "a kernel launch error has occurred due to cluster misconfiguration"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorFunctionNotLoaded,
        "the function handle is not loaded when calling an API that requires a loaded function"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorInvalidResourceType,
        "one or more resources passed in are not valid resource types for the operation"),
    CUDASIM_RUNTIME_ERROR(
        cudaErrorInvalidResourceConfiguration,
        "one or more resources are insufficient or non-applicable for the operation"),
    CUDASIM_RUNTIME_ERROR(cudaErrorUnknown, "unknown error"),
    CUDASIM_RUNTIME_ERROR(cudaErrorApiFailureBase, "api failure base"),
};
#undef CUDASIM_RUNTIME_ERROR

// nullptr for a number that the runtime does not have.
const ErrorRow* FindError(cudaError_t code) {
  for (const ErrorRow& row : kErrors) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

}  // namespace

// Even a name initialises the driver (measured on an H200, driver 580.159.04).
const char* GetErrorName(cudaError_t code) {
  EnsureDriver();
  const ErrorRow* row = FindError(code);
  return row != nullptr ? row->name : "unrecognized error code";
}

const char* GetErrorString(cudaError_t code) {
  EnsureDriver();
  const ErrorRow* row = FindError(code);
  return row != nullptr ? row->text : "unrecognized error code";
}

cudaError_t GetLastError() {
  const cudaError_t last = ThisThreadState().last_error;
  ThisThreadState().last_error = cudaSuccess;
  return last;
}

cudaError_t PeekAtLastError() { return ThisThreadState().last_error; }

}  // namespace cudasim::runtime
