// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuguest says of each CUresult. For the compiler alone: what is linked are the tables that
// error.cc and runtime_error.cc make of it. tier: 0

#ifndef CUGUEST_LIB_CORE_ERROR_ROWS_H_
#define CUGUEST_LIB_CORE_ERROR_ROWS_H_

#include "cuguest/export.h"
#include "lib/core/error_row.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct KnownError {
  int code;
  const char* name;
  const char* runtime_name;  // nullptr: the runtime has no such code
  Canonical canonical;
  const char* text;
};

// Every code of the CUDA 13.5 header, in ascending order. Plain numbers, so that an older toolkit
// can compile it; the test holds them against the header's enumerators. kDataLoss are the sticky
// ones: of which the header says "the process must be terminated and relaunched".
#define ROW(code, name, runtime_name, canonical, text) \
  { code, "CUDA_ERROR_" #name, "cudaError" #runtime_name, Canonical::canonical, text }
// The call that returns it is rarely the one that caused it.
#define LOST(code, name, runtime_name, what) \
  ROW(code, name, runtime_name, kDataLoss,   \
      "an earlier error on this device: " what "; the device is lost, end the process")
constexpr KnownError kKnownErrors[] = {
    {0, "CUDA_SUCCESS", "cudaSuccess", Canonical::kOk, "no error"},
    ROW(1, INVALID_VALUE, InvalidValue, kInvalidArgument,
        "an argument is null, out of range, or belongs to another device"),
    ROW(2, OUT_OF_MEMORY, MemoryAllocation, kResourceExhausted,
        "device or pinned memory ran out; a context alone takes about half a GiB"),
    ROW(3, NOT_INITIALIZED, InitializationError, kFailedPrecondition,
        "cuInit was not called in this process, or it was forked from one that had called it: "
        "start it with exec or spawn"),
    ROW(4, DEINITIALIZED, CudartUnloading, kCancelled,
        "the process is ending and the driver has shut down; nothing is left to release"),
    ROW(5, PROFILER_DISABLED, ProfilerDisabled, kFailedPrecondition,
        "the profiler is not initialised for this run"),
    ROW(6, PROFILER_NOT_INITIALIZED, ProfilerNotInitialized, kFailedPrecondition,
        "deprecated: profiling needs no initialisation since CUDA 5.0"),
    ROW(7, PROFILER_ALREADY_STARTED, ProfilerAlreadyStarted, kAlreadyExists,
        "deprecated: profiling is already on"),
    ROW(8, PROFILER_ALREADY_STOPPED, ProfilerAlreadyStopped, kAlreadyExists,
        "deprecated: profiling is already off"),
    ROW(34, STUB_LIBRARY, StubLibrary, kFailedPrecondition,
        "the libcuda that was loaded is the toolkit's link-time stub: take the toolkit's stubs "
        "directory out of LD_LIBRARY_PATH and the run path"),
    ROW(36, CALL_REQUIRES_NEWER_DRIVER, CallRequiresNewerDriver, kUnimplemented,
        "the driver that was loaded does not have what the call needs: it is older, or a stub or a "
        "layer in front of the driver; update it, or look which libcuda was loaded"),
    ROW(46, DEVICE_UNAVAILABLE, DevicesUnavailable, kUnavailable,
        "the device is busy or in an exclusive or prohibited compute mode"),
    {47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL", nullptr, Canonical::kResourceExhausted,
     "no more memory can be bound to a multicast object at this alignment"},
    ROW(100, NO_DEVICE, NoDevice, kNotFound,
        "the driver sees no CUDA device: look at CUDA_VISIBLE_DEVICES, the container's device "
        "options and nvidia-smi"),
    ROW(101, INVALID_DEVICE, InvalidDevice, kNotFound, "there is no such device in this process"),
    ROW(102, DEVICE_NOT_LICENSED, DeviceNotLicensed, kPermissionDenied,
        "the device's licence does not allow it"),
    ROW(200, INVALID_IMAGE, InvalidKernelImage, kInvalidArgument,
        "the module image is not PTX, a cubin or a fatbin that this driver understands"),
    ROW(201, INVALID_CONTEXT, DeviceUninitialized, kFailedPrecondition,
        "no context is current, or the handle is not a usable context here"),
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", nullptr, Canonical::kAlreadyExists,
     "deprecated: a context may be pushed repeatedly"},
    ROW(205, MAP_FAILED, MapBufferObjectFailed, kInternal, "a map operation failed"),
    ROW(206, UNMAP_FAILED, UnmapBufferObjectFailed, kInternal, "an unmap operation failed"),
    ROW(207, ARRAY_IS_MAPPED, ArrayIsMapped, kFailedPrecondition,
        "the array is mapped and cannot be destroyed"),
    ROW(208, ALREADY_MAPPED, AlreadyMapped, kAlreadyExists, "the resource is already mapped"),
    ROW(209, NO_BINARY_FOR_GPU, NoKernelImageForDevice, kFailedPrecondition,
        "the image has neither code for this device's architecture nor PTX for it or an older "
        "one: "
        "compile for it"),
    ROW(210, ALREADY_ACQUIRED, AlreadyAcquired, kAlreadyExists, "the resource is already acquired"),
    ROW(211, NOT_MAPPED, NotMapped, kFailedPrecondition, "the resource is not mapped"),
    ROW(212, NOT_MAPPED_AS_ARRAY, NotMappedAsArray, kFailedPrecondition,
        "the resource is not mapped for access as an array"),
    ROW(213, NOT_MAPPED_AS_POINTER, NotMappedAsPointer, kFailedPrecondition,
        "the resource is not mapped for access as a pointer"),
    LOST(214, ECC_UNCORRECTABLE, ECCUncorrectable, "an uncorrectable memory error"),
    ROW(215, UNSUPPORTED_LIMIT, UnsupportedLimit, kUnimplemented,
        "the device does not support this limit"),
    ROW(216, CONTEXT_ALREADY_IN_USE, DeviceAlreadyInUse, kFailedPrecondition,
        "the context can be current to one thread at a time and is current to another"),
    ROW(217, PEER_ACCESS_UNSUPPORTED, PeerAccessUnsupported, kUnimplemented,
        "the two devices cannot reach each other's memory"),
    ROW(218, INVALID_PTX, InvalidPtx, kInvalidArgument,
        "the PTX is wrong, or for a newer architecture than the device's"),
    ROW(219, INVALID_GRAPHICS_CONTEXT, InvalidGraphicsContext, kFailedPrecondition,
        "the OpenGL or DirectX context is not usable here"),
    LOST(220, NVLINK_UNCORRECTABLE, NvlinkUncorrectable, "an uncorrectable NVLink error"),
    ROW(221, JIT_COMPILER_NOT_FOUND, JitCompilerNotFound, kUnavailable,
        "libnvidia-ptxjitcompiler is missing from the driver installation: PTX cannot be compiled"),
    ROW(222, UNSUPPORTED_PTX_VERSION, UnsupportedPtxVersion, kUnimplemented,
        "the PTX is of a newer toolkit than this driver knows: update the driver, compile with an "
        "older toolkit, or give machine code"),
    ROW(223, JIT_COMPILATION_DISABLED, JitCompilationDisabled, kFailedPrecondition,
        "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT forbids compiling PTX"),
    ROW(224, UNSUPPORTED_EXEC_AFFINITY, UnsupportedExecAffinity, kUnimplemented,
        "the device does not support this execution affinity"),
    ROW(225, UNSUPPORTED_DEVSIDE_SYNC, UnsupportedDevSideSync, kUnimplemented,
        "cudaDeviceSynchronize on the device is not supported"),
    LOST(226, CONTAINED, Contained, "a contained memory error, of the contexts that it touched"),
    ROW(227, INSUFFICIENT_LOADER_VERSION, InsufficientLoaderVersion, kFailedPrecondition,
        "the driver's loader is too old for the code: update it, or compile with an older toolkit"),
    ROW(300, INVALID_SOURCE, InvalidSource, kInvalidArgument, "the kernel source is invalid"),
    ROW(301, FILE_NOT_FOUND, FileNotFound, kNotFound, "the file was not found"),
    ROW(302, SHARED_OBJECT_SYMBOL_NOT_FOUND, SharedObjectSymbolNotFound, kNotFound,
        "a shared object misses a symbol"),
    ROW(303, SHARED_OBJECT_INIT_FAILED, SharedObjectInitFailed, kUnavailable,
        "a shared object could not be loaded: of libcuda.so.1, no NVIDIA driver is installed here, "
        "the container was started without it, its folder is not on the loader's search path, or "
        "no file descriptor is left"),
    ROW(304, OPERATING_SYSTEM, OperatingSystem, kInternal, "an operating system call failed"),
    ROW(400, INVALID_HANDLE, InvalidResourceHandle, kInvalidArgument,
        "the handle is not valid, or belongs to another context"),
    ROW(401, ILLEGAL_STATE, IllegalState, kFailedPrecondition,
        "a resource is not in the state that the operation needs"),
    ROW(402, LOSSY_QUERY, LossyQuery, kFailedPrecondition,
        "the answer would drop information that this query cannot express"),
    ROW(500, NOT_FOUND, SymbolNotFound, kNotFound, "the named symbol was not found"),
    ROW(600, NOT_READY, NotReady, kUnavailable,
        "the work is still running; this is an answer, not a failure"),
    LOST(700, ILLEGAL_ADDRESS, IllegalAddress,
         "a kernel used an invalid address, which compute-sanitizer finds"),
    ROW(701, LAUNCH_OUT_OF_RESOURCES, LaunchOutOfResources, kResourceExhausted,
        "the launch needs more registers, threads or shared memory than a multiprocessor has"),
    LOST(702, LAUNCH_TIMEOUT, LaunchTimeout,
         "a kernel ran longer than the device's watchdog allows"),
    ROW(703, LAUNCH_INCOMPATIBLE_TEXTURING, LaunchIncompatibleTexturing, kFailedPrecondition,
        "the launch uses an incompatible texturing mode"),
    ROW(704, PEER_ACCESS_ALREADY_ENABLED, PeerAccessAlreadyEnabled, kAlreadyExists,
        "peer access was enabled before: leave it"),
    ROW(705, PEER_ACCESS_NOT_ENABLED, PeerAccessNotEnabled, kFailedPrecondition,
        "peer access is not enabled"),
    ROW(708, PRIMARY_CONTEXT_ACTIVE, SetOnActiveProcess, kFailedPrecondition,
        "the device's primary context is in use: its flags stay as they are"),
    ROW(709, CONTEXT_IS_DESTROYED, ContextIsDestroyed, kFailedPrecondition,
        "the context was destroyed, or is a primary context that was reset: everything in it is "
        "gone; build again in a new one"),
    LOST(710, ASSERT, Assert, "a device-side assert failed"),
    ROW(711, TOO_MANY_PEERS, TooManyPeers, kResourceExhausted, "no more peers can be enabled"),
    ROW(712, HOST_MEMORY_ALREADY_REGISTERED, HostMemoryAlreadyRegistered, kAlreadyExists,
        "the host memory is registered already"),
    ROW(713, HOST_MEMORY_NOT_REGISTERED, HostMemoryNotRegistered, kFailedPrecondition,
        "the host memory is not registered"),
    LOST(714, HARDWARE_STACK_ERROR, HardwareStackError, "a device stack error"),
    LOST(715, ILLEGAL_INSTRUCTION, IllegalInstruction, "an illegal device instruction"),
    LOST(716, MISALIGNED_ADDRESS, MisalignedAddress, "a misaligned device address"),
    LOST(717, INVALID_ADDRESS_SPACE, InvalidAddressSpace, "an address of the wrong space"),
    LOST(718, INVALID_PC, InvalidPc, "an invalid program counter"),
    LOST(719, LAUNCH_FAILED, LaunchFailure, "a kernel failed"),
    ROW(720, COOPERATIVE_LAUNCH_TOO_LARGE, CooperativeLaunchTooLarge, kResourceExhausted,
        "a cooperative launch has more blocks than fit on the device at once"),
    LOST(721, TENSOR_MEMORY_LEAK, TensorMemoryLeak, "a kernel ended without freeing tensor memory"),
    ROW(800, NOT_PERMITTED, NotPermitted, kPermissionDenied,
        "the call is not permitted here: CUDA cannot be called from a stream callback or host "
        "function"),
    ROW(801, NOT_SUPPORTED, NotSupported, kUnimplemented,
        "this driver or device does not support it"),
    ROW(802, SYSTEM_NOT_READY, SystemNotReady, kUnavailable,
        "the system is not ready, often because nvidia-fabricmanager is not running"),
    ROW(803, SYSTEM_DRIVER_MISMATCH, SystemDriverMismatch, kFailedPrecondition,
        "the kernel driver and libcuda are of different versions: usually an update without a "
        "reboot"),
    ROW(804, COMPAT_NOT_SUPPORTED_ON_DEVICE, CompatNotSupportedOnDevice, kFailedPrecondition,
        "the forward-compatibility package does not support this device"),
    ROW(805, MPS_CONNECTION_FAILED, MpsConnectionFailed, kUnavailable,
        "the MPS control daemon or server cannot be reached"),
    ROW(806, MPS_RPC_FAILURE, MpsRpcFailure, kUnavailable, "a call to the MPS server failed"),
    ROW(807, MPS_SERVER_NOT_READY, MpsServerNotReady, kUnavailable,
        "the MPS server is not ready, perhaps recovering: try again"),
    ROW(808, MPS_MAX_CLIENTS_REACHED, MpsMaxClientsReached, kResourceExhausted,
        "the MPS server takes no more clients"),
    ROW(809, MPS_MAX_CONNECTIONS_REACHED, MpsMaxConnectionsReached, kResourceExhausted,
        "the device takes no more connections"),
    LOST(810, MPS_CLIENT_TERMINATED, MpsClientTerminated, "the MPS server ended this client"),
    ROW(811, CDP_NOT_SUPPORTED, CdpNotSupported, kUnimplemented,
        "dynamic parallelism is not supported in this configuration, such as MPS"),
    ROW(812, CDP_VERSION_MISMATCH, CdpVersionMismatch, kFailedPrecondition,
        "the module mixes versions of dynamic parallelism"),
    ROW(900, STREAM_CAPTURE_UNSUPPORTED, StreamCaptureUnsupported, kFailedPrecondition,
        "the call is not permitted while a stream is being captured: make it before the capture or "
        "after it"),
    ROW(901, STREAM_CAPTURE_INVALIDATED, StreamCaptureInvalidated, kFailedPrecondition,
        "an earlier call invalidated the capture: end the capture, and find that call"),
    ROW(902, STREAM_CAPTURE_MERGE, StreamCaptureMerge, kFailedPrecondition,
        "two independent captures would be merged"),
    ROW(903, STREAM_CAPTURE_UNMATCHED, StreamCaptureUnmatched, kFailedPrecondition,
        "the capture was not begun in this stream"),
    ROW(904, STREAM_CAPTURE_UNJOINED, StreamCaptureUnjoined, kFailedPrecondition,
        "a forked stream was not joined before the capture ended"),
    ROW(905, STREAM_CAPTURE_ISOLATION, StreamCaptureIsolation, kFailedPrecondition,
        "a dependency would cross the boundary of the capture"),
    ROW(906, STREAM_CAPTURE_IMPLICIT, StreamCaptureImplicit, kFailedPrecondition,
        "the legacy default stream would depend on a capture: give a stream, non-blocking"),
    ROW(907, CAPTURED_EVENT, CapturedEvent, kFailedPrecondition,
        "the event was last recorded in a capturing stream"),
    ROW(908, STREAM_CAPTURE_WRONG_THREAD, StreamCaptureWrongThread, kFailedPrecondition,
        "a capture that is not relaxed must end on the thread that began it"),
    ROW(909, TIMEOUT, Timeout, kDeadlineExceeded, "the wait timed out"),
    ROW(910, GRAPH_EXEC_UPDATE_FAILURE, GraphExecUpdateFailure, kFailedPrecondition,
        "the graph cannot be updated in place: instantiate it anew"),
    LOST(911, EXTERNAL_DEVICE, ExternalDevice, "a device outside CUDA reported an error"),
    ROW(912, INVALID_CLUSTER_SIZE, InvalidClusterSize, kInvalidArgument,
        "the cluster configuration cannot be launched"),
    ROW(913, FUNCTION_NOT_LOADED, FunctionNotLoaded, kFailedPrecondition,
        "the function is not loaded yet"),
    ROW(914, INVALID_RESOURCE_TYPE, InvalidResourceType, kInvalidArgument,
        "a resource is of the wrong type for the operation"),
    ROW(915, INVALID_RESOURCE_CONFIGURATION, InvalidResourceConfiguration, kInvalidArgument,
        "the resources are insufficient or do not apply"),
    {916, "CUDA_ERROR_KEY_ROTATION", nullptr, Canonical::kInternal, "a key rotation failed"},
    ROW(917, STREAM_DETACHED, StreamDetached, kFailedPrecondition,
        "the stream's green context was destroyed"),
    ROW(918, GRAPH_RECAPTURE_FAILURE, GraphRecaptureFailure, kFailedPrecondition,
        "the graph could not be captured again in place and is undefined now: destroy it"),
    ROW(919, FABRIC_NOT_READY, FabricNotReady, kUnavailable,
        "the fabric between the GPUs is not ready yet: try again later"),
    ROW(999, UNKNOWN, Unknown, kUnknown,
        "an unknown error; for creating a context, also a prohibited compute mode"),
};
#undef LOST
#undef ROW

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_ERROR_ROWS_H_
