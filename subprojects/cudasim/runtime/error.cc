// SPDX-License-Identifier: Apache-2.0
//
// The last error, and the names and texts of the codes.

#include "lib/sim/runtime/api.h"
#include "lib/sim/runtime/driver.h"
#include "lib/sim/runtime/thread.h"

namespace cuguest_sim_runtime {
namespace {

struct ErrorRow {
  cudaError_t code;
  const char* name;
  const char* text;
};

// The texts are those of the runtime of CUDA 13.0.
#define CUGUEST_SIM_RUNTIME_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorRow kErrors[] = {
    CUGUEST_SIM_RUNTIME_ERROR(cudaSuccess, "no error"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidValue, "invalid argument"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInitializationError, "initialization error"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorProfilerDisabled,
                              "profiler disabled while using external profiling tool"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorProfilerNotInitialized,
                              "profiler not initialized: call cudaProfilerInitialize()"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorProfilerAlreadyStarted, "profiler already started"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorProfilerAlreadyStopped, "profiler already stopped"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidTextureBinding, "texture is not bound to a pointer"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorAddressOfConstant, "invalid address of constant"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorTextureFetchFailed, "fetch from texture failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorTextureNotBound,
                              "cannot fetch from a texture that is not bound"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSynchronizationError, "incorrect use of __syncthreads()"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidFilterSetting,
                              "linear filtering not supported for non-float type"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidNormSetting,
                              "read as normalized float not supported for data type"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMixedDeviceExecution,
                              "device emulation mode and device execution mode cannot be mixed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotYetImplemented, "feature not yet implemented"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMemoryValueTooLarge,
                              "memory size or pointer value too large to fit in 32 bit"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInsufficientDriver,
                              "CUDA driver version is insufficient for CUDA runtime version"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorCallRequiresNewerDriver,
                              "API call is not supported in the installed CUDA driver"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidSurface, "invalid surface reference"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDuplicateVariableName,
                              "duplicate global variable looked up by string name"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDuplicateTextureName,
                              "duplicate texture looked up by string name"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDuplicateSurfaceName,
                              "duplicate surface looked up by string name"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDevicesUnavailable,
                              "CUDA-capable device(s) is/are busy or unavailable"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorIncompatibleDriverContext, "incompatible driver context"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMissingConfiguration,
                              "__global__ function call is not configured"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorPriorLaunchFailure,
                              "unspecified launch failure in prior launch"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchMaxDepthExceeded,
                              "launch would exceed maximum depth of nested launches"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchFileScopedTex,
                              "launch failed because kernel uses unsupported, file-scoped textures "
                              "(texture objects are supported)"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchFileScopedSurf,
                              "launch failed because kernel uses unsupported, file-scoped surfaces "
                              "(surface objects are supported)"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSyncDepthExceeded,
                              "cudaDeviceSynchronize failed because caller's grid depth exceeds "
                              "cudaLimitDevRuntimeSyncDepth"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorLaunchPendingCountExceeded,
        "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDeviceNotLicensed, "device doesn't have valid Grid license"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSoftwareValidityNotEstablished, "integrity checks failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStartupFailure, "startup failure in cuda runtime"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorUnmapBufferObjectFailed,
                              "unmapping of buffer object failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorArrayIsMapped, "array is mapped"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorAlreadyMapped, "resource already mapped"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNoKernelImageForDevice,
                              "no kernel image is available for execution on the device"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorAlreadyAcquired, "resource already acquired"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotMapped, "resource not mapped"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotMappedAsArray, "resource not mapped as array"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotMappedAsPointer, "resource not mapped as pointer"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorUnsupportedLimit,
                              "limit is not supported on this architecture"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorDeviceAlreadyInUse,
                              "exclusive-thread device already in use by a different thread"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorPeerAccessUnsupported,
                              "peer access is not supported between these two devices"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNvlinkUncorrectable,
                              "uncorrectable NVLink error detected during the execution"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorJitCompilerNotFound, "PTX JIT compiler library not found"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorUnsupportedPtxVersion,
                              "the provided PTX was compiled with an unsupported toolchain."),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorJitCompilationDisabled, "PTX JIT compilation was disabled"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorUnsupportedExecAffinity,
                              "the provided execution affinity is not supported"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorUnsupportedDevSideSync,
        "the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorContained,
                              "Invalid access of peer GPU memory over nvlink or a hardware error"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidSource, "device kernel image is invalid"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorFileNotFound, "file not found"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSharedObjectSymbolNotFound,
                              "shared object symbol not found"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSharedObjectInitFailed,
                              "shared object initialization failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorOperatingSystem,
                              "OS call failed or operation not supported on this OS"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorIllegalState,
                              "the operation cannot be performed in the present state"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLossyQuery,
                              "attempted introspection would be semantically lossy"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotReady, "device not ready"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchOutOfResources,
                              "too many resources requested for launch"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchIncompatibleTexturing,
                              "launch uses incompatible texturing mode"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSetOnActiveProcess,
                              "cannot set while device is active in this process"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorAssert, "device-side assert triggered"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorTooManyPeers, "peer mapping resources exhausted"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                              "part or all of the requested memory range is already mapped"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorHostMemoryNotRegistered,
                              "pointer does not correspond to a registered memory region"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorIllegalInstruction,
                              "an illegal instruction was encountered"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidAddressSpace,
                              "operation not supported on global/shared address space"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidPc, "invalid program counter"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorCooperativeLaunchTooLarge,
                              "too many blocks in cooperative launch"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorTensorMemoryLeak, "tensor memory not completely freed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorNotSupported, "operation not supported"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorSystemDriverMismatch,
                              "system has unsupported display driver / cuda driver combination"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorCompatNotSupportedOnDevice,
                              "forward compatibility was attempted on non supported HW"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorMpsConnectionFailed,
        "MPS client failed to connect to the MPS control daemon or the MPS server"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorMpsRpcFailure,
        "the remote procedural call between the MPS server and the MPS client failed"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMpsServerNotReady,
                              "MPS server is not ready to accept new MPS client requests"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorMpsMaxClientsReached,
        "the hardware resources required to create MPS client have been exhausted"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorMpsMaxConnectionsReached,
        "the hardware resources required to support device connections have been exhausted"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorMpsClientTerminated,
                              "the MPS client has been terminated by the server"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorCdpNotSupported,
                              "is using CUDA Dynamic Parallelism, but the current configuration, "
                              "like MPS, does not support it"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorCdpVersionMismatch,
        "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStreamCaptureUnsupported,
                              "operation not permitted when stream is capturing"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStreamCaptureInvalidated,
                              "operation failed due to a previous error during capture"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStreamCaptureMerge,
                              "operation would result in a merge of separate capture sequences"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStreamCaptureUnmatched,
                              "capture was not ended in the same stream as it began"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorStreamCaptureIsolation,
                              "dependency created on uncaptured work in another stream"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorCapturedEvent,
        "operation not permitted on an event last recorded in a capturing stream"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorStreamCaptureWrongThread,
        "attempt to terminate a thread-local capture sequence from another thread"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorTimeout, "wait operation timed out"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorGraphExecUpdateFailure,
                              "the graph update was not performed because it included changes "
                              "which violated constraints specific to instantiated graph update"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorExternalDevice,
                              "an async error has occured in external entity outside of CUDA"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorInvalidClusterSize,
                              "a kernel launch error has occurred due to cluster misconfiguration"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorFunctionNotLoaded,
        "the function handle is not loaded when calling an API that requires a loaded function"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorInvalidResourceType,
        "one or more resources passed in are not valid resource types for the operation"),
    CUGUEST_SIM_RUNTIME_ERROR(
        cudaErrorInvalidResourceConfiguration,
        "one or more resources are insufficient or non-applicable for the operation"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorUnknown, "unknown error"),
    CUGUEST_SIM_RUNTIME_ERROR(cudaErrorApiFailureBase, "api failure base"),
};
#undef CUGUEST_SIM_RUNTIME_ERROR

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

}  // namespace cuguest_sim_runtime
