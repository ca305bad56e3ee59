// SPDX-License-Identifier: Apache-2.0

#include "cuguest/internal/runtime_error.h"

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/core/code_table.h"
#include "lib/core/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr int kSame = -1;

struct Row {
  int code;
  const char* name;
  int driver = kSame;          // the driver's code, where it is another number
  const char* text = nullptr;  // where the driver's own text does not do
};

// Every code of the CUDA 13.0 runtime header, in ascending order, and the three that 13.1
// to 13.3 add. Plain numbers, so that no header of the runtime is needed; the test holds
// them against the runtime and the driver.
constexpr Row kRows[] = {
    {0, "cudaSuccess"},
    {1, "cudaErrorInvalidValue"},
    {2, "cudaErrorMemoryAllocation"},
    {3, "cudaErrorInitializationError", kSame,
     "the runtime could not initialise the driver: mostly a process that was forked from one that "
     "had used CUDA, where CUDA cannot be used: start it with exec or spawn"},
    {4, "cudaErrorCudartUnloading", kSame,
     "the process is ending and the runtime is unloading; nothing is left to release"},
    {5, "cudaErrorProfilerDisabled"},
    {6, "cudaErrorProfilerNotInitialized"},
    {7, "cudaErrorProfilerAlreadyStarted"},
    {8, "cudaErrorProfilerAlreadyStopped"},
    {9, "cudaErrorInvalidConfiguration", 1,
     "the launch asks for more blocks, threads or shared memory than the device has, or for none"},
    {10, "cudaErrorVersionTranslation", 801,
     "the driver is newer than the runtime and answered with a kind of graph node that the runtime "
     "does not know: use a newer runtime"},
    {12, "cudaErrorInvalidPitchValue", 1, "a pitch is outside what the device allows"},
    {13, "cudaErrorInvalidSymbol", 500,
     "the symbol is not a variable of a module that this copy of the runtime has registered"},
    {16, "cudaErrorInvalidHostPointer", 1, "a host pointer is not valid"},
    {17, "cudaErrorInvalidDevicePointer", 1, "a device pointer is not valid"},
    {18, "cudaErrorInvalidTexture", 400, "the texture is not valid"},
    {19, "cudaErrorInvalidTextureBinding", 1, "the texture is not bound"},
    {20, "cudaErrorInvalidChannelDescriptor", 1,
     "the channel descriptor is not one of the known formats"},
    {21, "cudaErrorInvalidMemcpyDirection", 1,
     "the direction of the copy is not one of cudaMemcpyKind"},
    {22, "cudaErrorAddressOfConstant", 1,
     "deprecated: constant variables may have their address taken since CUDA 3.1"},
    {23, "cudaErrorTextureFetchFailed", 999,
     "deprecated: device emulation ended with CUDA 3.1 (texture fetch)"},
    {24, "cudaErrorTextureNotBound", 999,
     "deprecated: device emulation ended with CUDA 3.1 (texture not bound)"},
    {25, "cudaErrorSynchronizationError", 999,
     "deprecated: device emulation ended with CUDA 3.1 (synchronisation)"},
    {26, "cudaErrorInvalidFilterSetting", 1,
     "a texture that is not of floats is accessed with linear filtering"},
    {27, "cudaErrorInvalidNormSetting", 1,
     "a texture's elements cannot be read as normalised floats"},
    {28, "cudaErrorMixedDeviceExecution", 999,
     "deprecated: device emulation ended with CUDA 3.1 (mixed execution)"},
    {31, "cudaErrorNotYetImplemented", 801, "deprecated: the call is not implemented"},
    {32, "cudaErrorMemoryValueTooLarge", 999,
     "deprecated: device emulation ended with CUDA 3.1 (pointer beyond 32 bits)"},
    {34, "cudaErrorStubLibrary"},
    {35, "cudaErrorInsufficientDriver", 36,
     "the installed driver is older than this CUDA runtime needs, or there is none: update it, or "
     "use a runtime of the driver's major version"},
    {36, "cudaErrorCallRequiresNewerDriver"},
    {37, "cudaErrorInvalidSurface", 400, "the surface is not valid"},
    {43, "cudaErrorDuplicateVariableName", 200,
     "two variables of the registered device code have one name"},
    {44, "cudaErrorDuplicateTextureName", 200,
     "two textures of the registered device code have one name"},
    {45, "cudaErrorDuplicateSurfaceName", 200,
     "two surfaces of the registered device code have one name"},
    {46, "cudaErrorDevicesUnavailable"},
    {49, "cudaErrorIncompatibleDriverContext", 201,
     "the current context is not the primary one or of an older API, and this runtime call cannot "
     "use it"},
    {52, "cudaErrorMissingConfiguration", 401,
     "a kernel was started without cudaConfigureCall, which <<<>>> does"},
    {53, "cudaErrorPriorLaunchFailure", 999,
     "deprecated: device emulation ended with CUDA 3.1 (earlier launch)"},
    {65, "cudaErrorLaunchMaxDepthExceeded", 701, "launches from the device are nested too deeply"},
    {66, "cudaErrorLaunchFileScopedTex", 801,
     "a kernel that was launched from the device uses a texture of file scope"},
    {67, "cudaErrorLaunchFileScopedSurf", 801,
     "a kernel that was launched from the device uses a surface of file scope"},
    {68, "cudaErrorSyncDepthExceeded", 701,
     "device code synchronises at a greater depth than cudaLimitDevRuntimeSyncDepth"},
    {69, "cudaErrorLaunchPendingCountExceeded", 701,
     "more launches from the device are pending than cudaLimitDevRuntimePendingLaunchCount"},
    {98, "cudaErrorInvalidDeviceFunction", 500,
     "the kernel is not a function that this copy of the runtime has registered, or has no code "
     "for this device"},
    {100, "cudaErrorNoDevice"},
    {101, "cudaErrorInvalidDevice"},
    {102, "cudaErrorDeviceNotLicensed"},
    {103, "cudaErrorSoftwareValidityNotEstablished", 802, "the integrity checks of CUDA failed"},
    {127, "cudaErrorStartupFailure", 999, "the runtime failed to start"},
    {200, "cudaErrorInvalidKernelImage"},
    {201, "cudaErrorDeviceUninitialized"},
    {205, "cudaErrorMapBufferObjectFailed"},
    {206, "cudaErrorUnmapBufferObjectFailed"},
    {207, "cudaErrorArrayIsMapped"},
    {208, "cudaErrorAlreadyMapped"},
    {209, "cudaErrorNoKernelImageForDevice"},
    {210, "cudaErrorAlreadyAcquired"},
    {211, "cudaErrorNotMapped"},
    {212, "cudaErrorNotMappedAsArray"},
    {213, "cudaErrorNotMappedAsPointer"},
    {214, "cudaErrorECCUncorrectable"},
    {215, "cudaErrorUnsupportedLimit"},
    {216, "cudaErrorDeviceAlreadyInUse"},
    {217, "cudaErrorPeerAccessUnsupported"},
    {218, "cudaErrorInvalidPtx"},
    {219, "cudaErrorInvalidGraphicsContext"},
    {220, "cudaErrorNvlinkUncorrectable"},
    {221, "cudaErrorJitCompilerNotFound"},
    {222, "cudaErrorUnsupportedPtxVersion"},
    {223, "cudaErrorJitCompilationDisabled"},
    {224, "cudaErrorUnsupportedExecAffinity"},
    {225, "cudaErrorUnsupportedDevSideSync"},
    {226, "cudaErrorContained"},
    {300, "cudaErrorInvalidSource"},
    {301, "cudaErrorFileNotFound"},
    {302, "cudaErrorSharedObjectSymbolNotFound"},
    {303, "cudaErrorSharedObjectInitFailed"},
    {304, "cudaErrorOperatingSystem"},
    {400, "cudaErrorInvalidResourceHandle"},
    {401, "cudaErrorIllegalState"},
    {402, "cudaErrorLossyQuery"},
    {500, "cudaErrorSymbolNotFound"},
    {600, "cudaErrorNotReady"},
    {700, "cudaErrorIllegalAddress"},
    {701, "cudaErrorLaunchOutOfResources"},
    {702, "cudaErrorLaunchTimeout"},
    {703, "cudaErrorLaunchIncompatibleTexturing"},
    {704, "cudaErrorPeerAccessAlreadyEnabled"},
    {705, "cudaErrorPeerAccessNotEnabled"},
    {708, "cudaErrorSetOnActiveProcess"},
    {709, "cudaErrorContextIsDestroyed"},
    {710, "cudaErrorAssert"},
    {711, "cudaErrorTooManyPeers"},
    {712, "cudaErrorHostMemoryAlreadyRegistered"},
    {713, "cudaErrorHostMemoryNotRegistered"},
    {714, "cudaErrorHardwareStackError"},
    {715, "cudaErrorIllegalInstruction"},
    {716, "cudaErrorMisalignedAddress"},
    {717, "cudaErrorInvalidAddressSpace"},
    {718, "cudaErrorInvalidPc"},
    {719, "cudaErrorLaunchFailure"},
    {720, "cudaErrorCooperativeLaunchTooLarge"},
    {721, "cudaErrorTensorMemoryLeak"},
    {800, "cudaErrorNotPermitted"},
    {801, "cudaErrorNotSupported"},
    {802, "cudaErrorSystemNotReady"},
    {803, "cudaErrorSystemDriverMismatch"},
    {804, "cudaErrorCompatNotSupportedOnDevice"},
    {805, "cudaErrorMpsConnectionFailed"},
    {806, "cudaErrorMpsRpcFailure"},
    {807, "cudaErrorMpsServerNotReady"},
    {808, "cudaErrorMpsMaxClientsReached"},
    {809, "cudaErrorMpsMaxConnectionsReached"},
    {810, "cudaErrorMpsClientTerminated"},
    {811, "cudaErrorCdpNotSupported"},
    {812, "cudaErrorCdpVersionMismatch"},
    {900, "cudaErrorStreamCaptureUnsupported"},
    {901, "cudaErrorStreamCaptureInvalidated"},
    {902, "cudaErrorStreamCaptureMerge"},
    {903, "cudaErrorStreamCaptureUnmatched"},
    {904, "cudaErrorStreamCaptureUnjoined"},
    {905, "cudaErrorStreamCaptureIsolation"},
    {906, "cudaErrorStreamCaptureImplicit"},
    {907, "cudaErrorCapturedEvent"},
    {908, "cudaErrorStreamCaptureWrongThread"},
    {909, "cudaErrorTimeout"},
    {910, "cudaErrorGraphExecUpdateFailure"},
    {911, "cudaErrorExternalDevice"},
    {912, "cudaErrorInvalidClusterSize"},
    {913, "cudaErrorFunctionNotLoaded"},
    {914, "cudaErrorInvalidResourceType"},
    {915, "cudaErrorInvalidResourceConfiguration"},
    {917, "cudaErrorStreamDetached"},
    {918, "cudaErrorGraphRecaptureFailure"},
    {999, "cudaErrorUnknown"},
    {10000, "cudaErrorApiFailureBase", 999,
     "deprecated: numbers above this one are the driver's plus 10000"},
};
constexpr CodeTable<Row> kTable = kRows;

// A number that cuguest does not know means the same to both: NVIDIA has numbered
// alike since CUDA 10.1.
constexpr char kUnrecognized[] = "cudaErrorUnrecognized";

constexpr int kRuntimeUnknown = 999;
constexpr int kApiFailureBase = 10000;  // cudaErrorApiFailureBase

constexpr char kPayload[] = "cuguest/cudaError_t";

}  // namespace

CUresult RuntimeToDriver(int code) noexcept {
  const Row* row = kTable.Find(code);
  if (row != nullptr && row->driver != kSame) return static_cast<CUresult>(row->driver);
  return static_cast<CUresult>(code > kApiFailureBase ? code - kApiFailureBase : code);
}

int DriverToRuntime(CUresult code) noexcept {
  const auto number = static_cast<int>(code);
  // The runtime has none for CUDA_ERROR_CONTEXT_ALREADY_CURRENT and CUDA_ERROR_KEY_ROTATION.
  return number == 202 || number == 916 ? kRuntimeUnknown : number;
}

const char* RuntimeErrorName(int code) noexcept {
  const Row* row = kTable.Find(code);
  return row != nullptr ? row->name : kUnrecognized;
}

const char* RuntimeErrorText(int code) noexcept {
  const Row* row = kTable.Find(code);
  return row != nullptr && row->text != nullptr ? row->text : ErrorText(RuntimeToDriver(code));
}

absl::Status RuntimeErrorStatus(int code, std::string_view doing, std::string_view object,
                                std::string_view said) {
  absl::Status status = ErrorStatus(RuntimeToDriver(code), doing, object, said);
  SetNumber(kPayload, code, &status);
  return status;
}

absl::Status MakeRuntimeStatus(int code, std::string_view doing, std::string_view object) {
  return RuntimeErrorStatus(
      code, doing, object,
      absl::StrCat(RuntimeErrorName(code), " (", code, "): ", RuntimeErrorText(code)));
}

std::optional<int> RuntimeCodeOf(const absl::Status& status) {
  const std::optional<int> code = NumberOf(kPayload, status);
  if (code.has_value()) return code;
  const std::optional<CUresult> driver = CodeOf(status);
  if (!driver.has_value()) return std::nullopt;
  return DriverToRuntime(*driver);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
