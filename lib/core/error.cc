// SPDX-License-Identifier: Apache-2.0

#include "cuguest/error.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "lib/core/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using absl::StatusCode;

struct Row {
  int code;
  const char* name;
  StatusCode canonical;
  bool sticky;
  const char* text;
};

constexpr bool kSticky = true;
constexpr bool kNot = false;

// Every code of the CUDA 13.0 header, in ascending order, and the two that 13.1 and
// 13.3 add. Plain numbers, so that an older toolkit can compile it; the test holds
// them against the header's enumerators. "Sticky" follows the header's "the process
// must be terminated and relaunched".
constexpr Row kRows[] = {
    {0, "CUDA_SUCCESS", StatusCode::kOk, kNot, "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", StatusCode::kInvalidArgument, kNot,
     "an argument is null, out of range, or belongs to another device"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", StatusCode::kResourceExhausted, kNot,
     "device or pinned memory ran out; a context alone takes about half a GiB"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", StatusCode::kFailedPrecondition, kNot,
     "cuInit was not called in this process, or the process was forked from one that had called "
     "it: CUDA cannot be used in such a child, start it with exec or spawn"},
    {4, "CUDA_ERROR_DEINITIALIZED", StatusCode::kCancelled, kNot,
     "the process is ending and the driver has shut down; nothing is left to release"},
    {5, "CUDA_ERROR_PROFILER_DISABLED", StatusCode::kFailedPrecondition, kNot,
     "the profiler is not initialised for this run"},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", StatusCode::kFailedPrecondition, kNot,
     "deprecated: profiling needs no initialisation since CUDA 5.0"},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", StatusCode::kAlreadyExists, kNot,
     "deprecated: profiling is already on"},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", StatusCode::kAlreadyExists, kNot,
     "deprecated: profiling is already off"},
    {34, "CUDA_ERROR_STUB_LIBRARY", StatusCode::kFailedPrecondition, kNot,
     "the libcuda that was loaded is the toolkit's link-time stub: take the toolkit's stubs "
     "directory out of LD_LIBRARY_PATH and the run path, so that the driver's own is found"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", StatusCode::kUnimplemented, kNot,
     "the installed driver is older than this call needs: update it"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", StatusCode::kUnavailable, kNot,
     "the device is busy or in an exclusive or prohibited compute mode"},
    {100, "CUDA_ERROR_NO_DEVICE", StatusCode::kNotFound, kNot,
     "the driver sees no CUDA device: look at CUDA_VISIBLE_DEVICES, the container's device "
     "options and nvidia-smi"},
    {101, "CUDA_ERROR_INVALID_DEVICE", StatusCode::kNotFound, kNot,
     "there is no such device in this process"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", StatusCode::kPermissionDenied, kNot,
     "the device's licence does not allow it"},
    {200, "CUDA_ERROR_INVALID_IMAGE", StatusCode::kInvalidArgument, kNot,
     "the module image is not PTX, a cubin or a fatbin that this driver understands"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", StatusCode::kFailedPrecondition, kNot,
     "no context is current, or the handle is not a usable context here"},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", StatusCode::kAlreadyExists, kNot,
     "deprecated: a context may be pushed repeatedly"},
    {205, "CUDA_ERROR_MAP_FAILED", StatusCode::kInternal, kNot, "a map operation failed"},
    {206, "CUDA_ERROR_UNMAP_FAILED", StatusCode::kInternal, kNot, "an unmap operation failed"},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", StatusCode::kFailedPrecondition, kNot,
     "the array is mapped and cannot be destroyed"},
    {208, "CUDA_ERROR_ALREADY_MAPPED", StatusCode::kAlreadyExists, kNot,
     "the resource is already mapped"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", StatusCode::kFailedPrecondition, kNot,
     "the image holds neither code for this device's architecture nor PTX for an older one"},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", StatusCode::kAlreadyExists, kNot,
     "the resource is already acquired"},
    {211, "CUDA_ERROR_NOT_MAPPED", StatusCode::kFailedPrecondition, kNot,
     "the resource is not mapped"},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", StatusCode::kFailedPrecondition, kNot,
     "the resource is not mapped for access as an array"},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", StatusCode::kFailedPrecondition, kNot,
     "the resource is not mapped for access as a pointer"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", StatusCode::kDataLoss, kSticky,
     "an uncorrectable memory error: every context on the device is lost, end the process"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", StatusCode::kUnimplemented, kNot,
     "the device does not support this limit"},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", StatusCode::kFailedPrecondition, kNot,
     "the context can be current to one thread at a time and is current to another"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", StatusCode::kUnimplemented, kNot,
     "the two devices cannot reach each other's memory"},
    {218, "CUDA_ERROR_INVALID_PTX", StatusCode::kInvalidArgument, kNot, "the PTX does not compile"},
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", StatusCode::kFailedPrecondition, kNot,
     "the OpenGL or DirectX context is not usable here"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", StatusCode::kDataLoss, kSticky,
     "an uncorrectable NVLink error: every context on the device is lost, end the process"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", StatusCode::kUnavailable, kNot,
     "libnvidia-ptxjitcompiler is missing from the driver installation: PTX cannot be compiled"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", StatusCode::kUnimplemented, kNot,
     "the PTX was made by a newer toolkit than this driver knows"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", StatusCode::kFailedPrecondition, kNot,
     "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT forbids compiling PTX"},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", StatusCode::kUnimplemented, kNot,
     "the device does not support this execution affinity"},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", StatusCode::kUnimplemented, kNot,
     "the code calls cudaDeviceSynchronize on the device, which is not supported"},
    {226, "CUDA_ERROR_CONTAINED", StatusCode::kDataLoss, kSticky,
     "a contained memory error: the contexts it touched are lost, end the process"},
    {300, "CUDA_ERROR_INVALID_SOURCE", StatusCode::kInvalidArgument, kNot,
     "the kernel source is invalid"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", StatusCode::kNotFound, kNot, "the file was not found"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", StatusCode::kNotFound, kNot,
     "a shared object misses a symbol"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", StatusCode::kUnavailable, kNot,
     "a shared object could not be loaded: with libcuda.so.1, no NVIDIA driver is installed here "
     "or the container was started without it"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", StatusCode::kInternal, kNot,
     "an operating system call failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", StatusCode::kInvalidArgument, kNot,
     "the handle is not valid, or belongs to another context"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", StatusCode::kFailedPrecondition, kNot,
     "a resource is not in the state that the operation needs"},
    {402, "CUDA_ERROR_LOSSY_QUERY", StatusCode::kFailedPrecondition, kNot,
     "the answer would drop information that this query cannot express"},
    {500, "CUDA_ERROR_NOT_FOUND", StatusCode::kNotFound, kNot, "the named symbol was not found"},
    {600, "CUDA_ERROR_NOT_READY", StatusCode::kUnavailable, kNot,
     "the work is still running; this is an answer, not a failure"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", StatusCode::kDataLoss, kSticky,
     "a kernel used an invalid address: every context on the device is lost, end the process; "
     "compute-sanitizer finds the access"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", StatusCode::kResourceExhausted, kNot,
     "the launch needs more registers, threads or shared memory than a multiprocessor has"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", StatusCode::kDataLoss, kSticky,
     "a kernel ran longer than the device's watchdog allows: every context on it is lost, end the "
     "process"},
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", StatusCode::kFailedPrecondition, kNot,
     "the launch uses an incompatible texturing mode"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", StatusCode::kAlreadyExists, kNot,
     "peer access was enabled before, perhaps by somebody else: leave it"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", StatusCode::kFailedPrecondition, kNot,
     "peer access is not enabled"},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", StatusCode::kFailedPrecondition, kNot,
     "the device's primary context is in use already and its flags stay as they are"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", StatusCode::kFailedPrecondition, kNot,
     "the context was destroyed, or is a primary context that was reset: everything in it is gone; "
     "take a new one and build again"},
    {710, "CUDA_ERROR_ASSERT", StatusCode::kDataLoss, kSticky,
     "a device-side assert failed: every context on the device is lost, end the process"},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", StatusCode::kResourceExhausted, kNot,
     "no more peers can be enabled"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", StatusCode::kAlreadyExists, kNot,
     "the host memory is registered already"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", StatusCode::kFailedPrecondition, kNot,
     "the host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", StatusCode::kDataLoss, kSticky,
     "a device stack error: every context on the device is lost, end the process"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", StatusCode::kDataLoss, kSticky,
     "an illegal device instruction: every context on the device is lost, end the process"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", StatusCode::kDataLoss, kSticky,
     "a misaligned device address: every context on the device is lost, end the process"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", StatusCode::kDataLoss, kSticky,
     "an address of the wrong space: every context on the device is lost, end the process"},
    {718, "CUDA_ERROR_INVALID_PC", StatusCode::kDataLoss, kSticky,
     "an invalid program counter: every context on the device is lost, end the process"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", StatusCode::kDataLoss, kSticky,
     "a kernel failed: every context on the device is lost, end the process"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", StatusCode::kResourceExhausted, kNot,
     "a cooperative launch has more blocks than fit on the device at once"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", StatusCode::kDataLoss, kSticky,
     "a kernel ended without freeing tensor memory: the contexts are lost, end the process"},
    {800, "CUDA_ERROR_NOT_PERMITTED", StatusCode::kPermissionDenied, kNot,
     "the call is not permitted here: CUDA cannot be called from a stream callback or host "
     "function"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", StatusCode::kUnimplemented, kNot,
     "this driver or device does not support it"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", StatusCode::kUnavailable, kNot,
     "the system is not ready, often because nvidia-fabricmanager is not running"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", StatusCode::kFailedPrecondition, kNot,
     "the kernel driver and libcuda are of different versions: usually an update without a reboot"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", StatusCode::kFailedPrecondition, kNot,
     "the forward-compatibility package does not support this device"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", StatusCode::kUnavailable, kNot,
     "the MPS control daemon or server cannot be reached"},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", StatusCode::kUnavailable, kNot,
     "a call to the MPS server failed"},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", StatusCode::kUnavailable, kNot,
     "the MPS server is not ready, perhaps recovering: try again"},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", StatusCode::kResourceExhausted, kNot,
     "the MPS server takes no more clients"},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", StatusCode::kResourceExhausted, kNot,
     "the device takes no more connections"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", StatusCode::kDataLoss, kSticky,
     "the MPS server ended this client: end the process"},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", StatusCode::kUnimplemented, kNot,
     "dynamic parallelism is not supported in this configuration, such as MPS"},
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", StatusCode::kFailedPrecondition, kNot,
     "the module mixes versions of dynamic parallelism"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", StatusCode::kFailedPrecondition, kNot,
     "the call is not permitted while a stream is being captured, and has usually ended the "
     "capture"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", StatusCode::kFailedPrecondition, kNot,
     "an earlier call invalidated the capture: end the capture, and find that call"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", StatusCode::kFailedPrecondition, kNot,
     "two independent captures would be merged"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", StatusCode::kFailedPrecondition, kNot,
     "the capture was not begun in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", StatusCode::kFailedPrecondition, kNot,
     "a forked stream was not joined before the capture ended"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", StatusCode::kFailedPrecondition, kNot,
     "a dependency would cross the boundary of the capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", StatusCode::kFailedPrecondition, kNot,
     "the legacy default stream would depend on a capture: give a stream, non-blocking"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", StatusCode::kFailedPrecondition, kNot,
     "the event was last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", StatusCode::kFailedPrecondition, kNot,
     "a capture that is not relaxed must end on the thread that began it"},
    {909, "CUDA_ERROR_TIMEOUT", StatusCode::kDeadlineExceeded, kNot, "the wait timed out"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", StatusCode::kFailedPrecondition, kNot,
     "the graph cannot be updated in place: instantiate it anew"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", StatusCode::kDataLoss, kSticky,
     "a device outside CUDA reported an error: the process is inconsistent, terminate it"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", StatusCode::kInvalidArgument, kNot,
     "the cluster configuration cannot be launched"},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", StatusCode::kFailedPrecondition, kNot,
     "the function is not loaded yet"},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", StatusCode::kInvalidArgument, kNot,
     "a resource is of the wrong type for the operation"},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", StatusCode::kInvalidArgument, kNot,
     "the resources are insufficient or do not apply"},
    {916, "CUDA_ERROR_KEY_ROTATION", StatusCode::kInternal, kNot, "a key rotation failed"},
    {917, "CUDA_ERROR_STREAM_DETACHED", StatusCode::kFailedPrecondition, kNot,
     "the stream's green context was destroyed"},
    {918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", StatusCode::kFailedPrecondition, kNot,
     "the graph could not be captured again in place"},
    {999, "CUDA_ERROR_UNKNOWN", StatusCode::kUnknown, kNot,
     "an unknown error; for creating a context, also a prohibited compute mode"},
};

constexpr Row kUnrecognized = {
    -1, "CUDA_ERROR_UNRECOGNIZED", StatusCode::kUnknown, kNot,
    "a code newer than this library; the driver's own documentation has it"};

constexpr char kPayload[] = "cuguest/CUresult";

const Row& Find(CUresult code) noexcept {
  const Row* row =
      std::lower_bound(std::begin(kRows), std::end(kRows), static_cast<int>(code),
                       [](const Row& candidate, int wanted) { return candidate.code < wanted; });
  return row != std::end(kRows) && row->code == static_cast<int>(code) ? *row : kUnrecognized;
}

}  // namespace

namespace internal {

absl::Status ErrorStatus(CUresult code, std::string_view doing, std::string_view object,
                         std::string_view said) {
  // Spelled out piece by piece: std::string_view and absl::string_view are different
  // types in some builds of Abseil.
  std::string text(doing);
  if (!object.empty()) {
    if (!text.empty()) text += ", ";
    text += object;
  }
  if (!text.empty()) text += ": ";
  text += said;
  absl::Status status(Find(code).canonical, text);
  SetNumber(kPayload, static_cast<int>(code), &status);
  return status;
}

void SetNumber(const char* payload, int number, absl::Status* status) {
  status->SetPayload(payload, absl::Cord(absl::StrCat(number)));
}

std::optional<int> NumberOf(const char* payload, const absl::Status& status) {
  const auto found = status.GetPayload(payload);
  if (!found.has_value()) return std::nullopt;
  const std::string digits(*found);
  int number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

absl::Status MakeStatus(CUresult code, std::string_view doing, std::string_view object) {
  const Row& row = Find(code);
  return ErrorStatus(code, doing, object,
                     absl::StrCat(row.name, " (", static_cast<int>(code), "): ", row.text));
}

}  // namespace internal

std::optional<CUresult> CodeOf(const absl::Status& status) {
  if (status.ok()) return CUDA_SUCCESS;
  const std::optional<int> code = internal::NumberOf(kPayload, status);
  if (!code.has_value()) return std::nullopt;
  return static_cast<CUresult>(*code);
}

const char* ErrorName(CUresult code) noexcept { return Find(code).name; }
const char* ErrorText(CUresult code) noexcept { return Find(code).text; }
bool IsSticky(CUresult code) noexcept { return Find(code).sticky; }

CUGUEST_END_NAMESPACE
