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

struct Row {
  int code;
  const char* name;
  absl::StatusCode canonical;
  const char* text;
};

// Every code of the CUDA 13.0 header, in ascending order, and the two that 13.1 and
// 13.3 add. Plain numbers, so that an older toolkit can compile it; the test holds
// them against the header's enumerators. kDataLoss are the sticky ones: of which the
// header says "the process must be terminated and relaunched".
#define ROW(code, name, canonical, text) \
  { code, "CUDA_ERROR_" #name, absl::StatusCode::canonical, text }
constexpr Row kRows[] = {
    {0, "CUDA_SUCCESS", absl::StatusCode::kOk, "no error"},
    ROW(1, INVALID_VALUE, kInvalidArgument,
        "an argument is null, out of range, or belongs to another device"),
    ROW(2, OUT_OF_MEMORY, kResourceExhausted,
        "device or pinned memory ran out; a context alone takes about half a GiB"),
    ROW(3, NOT_INITIALIZED, kFailedPrecondition,
        "cuInit was not called in this process, or the process was forked from one that had called "
        "it: CUDA cannot be used in such a child, start it with exec or spawn"),
    ROW(4, DEINITIALIZED, kCancelled,
        "the process is ending and the driver has shut down; nothing is left to release"),
    ROW(5, PROFILER_DISABLED, kFailedPrecondition, "the profiler is not initialised for this run"),
    ROW(6, PROFILER_NOT_INITIALIZED, kFailedPrecondition,
        "deprecated: profiling needs no initialisation since CUDA 5.0"),
    ROW(7, PROFILER_ALREADY_STARTED, kAlreadyExists, "deprecated: profiling is already on"),
    ROW(8, PROFILER_ALREADY_STOPPED, kAlreadyExists, "deprecated: profiling is already off"),
    ROW(34, STUB_LIBRARY, kFailedPrecondition,
        "the libcuda that was loaded is the toolkit's link-time stub: take the toolkit's stubs "
        "directory out of LD_LIBRARY_PATH and the run path, so that the driver's own is found"),
    ROW(36, CALL_REQUIRES_NEWER_DRIVER, kUnimplemented,
        "the installed driver is older than this call needs: update it"),
    ROW(46, DEVICE_UNAVAILABLE, kUnavailable,
        "the device is busy or in an exclusive or prohibited compute mode"),
    ROW(100, NO_DEVICE, kNotFound,
        "the driver sees no CUDA device: look at CUDA_VISIBLE_DEVICES, the container's device "
        "options and nvidia-smi"),
    ROW(101, INVALID_DEVICE, kNotFound, "there is no such device in this process"),
    ROW(102, DEVICE_NOT_LICENSED, kPermissionDenied, "the device's licence does not allow it"),
    ROW(200, INVALID_IMAGE, kInvalidArgument,
        "the module image is not PTX, a cubin or a fatbin that this driver understands"),
    ROW(201, INVALID_CONTEXT, kFailedPrecondition,
        "no context is current, or the handle is not a usable context here"),
    ROW(202, CONTEXT_ALREADY_CURRENT, kAlreadyExists,
        "deprecated: a context may be pushed repeatedly"),
    ROW(205, MAP_FAILED, kInternal, "a map operation failed"),
    ROW(206, UNMAP_FAILED, kInternal, "an unmap operation failed"),
    ROW(207, ARRAY_IS_MAPPED, kFailedPrecondition, "the array is mapped and cannot be destroyed"),
    ROW(208, ALREADY_MAPPED, kAlreadyExists, "the resource is already mapped"),
    ROW(209, NO_BINARY_FOR_GPU, kFailedPrecondition,
        "the image holds neither code for this device's architecture nor PTX for an older one"),
    ROW(210, ALREADY_ACQUIRED, kAlreadyExists, "the resource is already acquired"),
    ROW(211, NOT_MAPPED, kFailedPrecondition, "the resource is not mapped"),
    ROW(212, NOT_MAPPED_AS_ARRAY, kFailedPrecondition,
        "the resource is not mapped for access as an array"),
    ROW(213, NOT_MAPPED_AS_POINTER, kFailedPrecondition,
        "the resource is not mapped for access as a pointer"),
    ROW(214, ECC_UNCORRECTABLE, kDataLoss,
        "an uncorrectable memory error: every context on the device is lost, end the process"),
    ROW(215, UNSUPPORTED_LIMIT, kUnimplemented, "the device does not support this limit"),
    ROW(216, CONTEXT_ALREADY_IN_USE, kFailedPrecondition,
        "the context can be current to one thread at a time and is current to another"),
    ROW(217, PEER_ACCESS_UNSUPPORTED, kUnimplemented,
        "the two devices cannot reach each other's memory"),
    ROW(218, INVALID_PTX, kInvalidArgument, "the PTX does not compile"),
    ROW(219, INVALID_GRAPHICS_CONTEXT, kFailedPrecondition,
        "the OpenGL or DirectX context is not usable here"),
    ROW(220, NVLINK_UNCORRECTABLE, kDataLoss,
        "an uncorrectable NVLink error: every context on the device is lost, end the process"),
    ROW(221, JIT_COMPILER_NOT_FOUND, kUnavailable,
        "libnvidia-ptxjitcompiler is missing from the driver installation: PTX cannot be compiled"),
    ROW(222, UNSUPPORTED_PTX_VERSION, kUnimplemented,
        "the PTX was made by a newer toolkit than this driver knows"),
    ROW(223, JIT_COMPILATION_DISABLED, kFailedPrecondition,
        "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT forbids compiling PTX"),
    ROW(224, UNSUPPORTED_EXEC_AFFINITY, kUnimplemented,
        "the device does not support this execution affinity"),
    ROW(225, UNSUPPORTED_DEVSIDE_SYNC, kUnimplemented,
        "the code calls cudaDeviceSynchronize on the device, which is not supported"),
    ROW(226, CONTAINED, kDataLoss,
        "a contained memory error: the contexts it touched are lost, end the process"),
    ROW(300, INVALID_SOURCE, kInvalidArgument, "the kernel source is invalid"),
    ROW(301, FILE_NOT_FOUND, kNotFound, "the file was not found"),
    ROW(302, SHARED_OBJECT_SYMBOL_NOT_FOUND, kNotFound, "a shared object misses a symbol"),
    ROW(303, SHARED_OBJECT_INIT_FAILED, kUnavailable,
        "a shared object could not be loaded: with libcuda.so.1, no NVIDIA driver is installed "
        "here or the container was started without it"),
    ROW(304, OPERATING_SYSTEM, kInternal, "an operating system call failed"),
    ROW(400, INVALID_HANDLE, kInvalidArgument,
        "the handle is not valid, or belongs to another context"),
    ROW(401, ILLEGAL_STATE, kFailedPrecondition,
        "a resource is not in the state that the operation needs"),
    ROW(402, LOSSY_QUERY, kFailedPrecondition,
        "the answer would drop information that this query cannot express"),
    ROW(500, NOT_FOUND, kNotFound, "the named symbol was not found"),
    ROW(600, NOT_READY, kUnavailable,
        "the work is still running; this is an answer, not a failure"),
    ROW(700, ILLEGAL_ADDRESS, kDataLoss,
        "a kernel used an invalid address: every context on the device is lost, end the process; "
        "compute-sanitizer finds the access"),
    ROW(701, LAUNCH_OUT_OF_RESOURCES, kResourceExhausted,
        "the launch needs more registers, threads or shared memory than a multiprocessor has"),
    ROW(702, LAUNCH_TIMEOUT, kDataLoss,
        "a kernel ran longer than the device's watchdog allows: every context on it is lost, end "
        "the process"),
    ROW(703, LAUNCH_INCOMPATIBLE_TEXTURING, kFailedPrecondition,
        "the launch uses an incompatible texturing mode"),
    ROW(704, PEER_ACCESS_ALREADY_ENABLED, kAlreadyExists,
        "peer access was enabled before, perhaps by somebody else: leave it"),
    ROW(705, PEER_ACCESS_NOT_ENABLED, kFailedPrecondition, "peer access is not enabled"),
    ROW(708, PRIMARY_CONTEXT_ACTIVE, kFailedPrecondition,
        "the device's primary context is in use already and its flags stay as they are"),
    ROW(709, CONTEXT_IS_DESTROYED, kFailedPrecondition,
        "the context was destroyed, or is a primary context that was reset: everything in it is "
        "gone; take a new one and build again"),
    ROW(710, ASSERT, kDataLoss,
        "a device-side assert failed: every context on the device is lost, end the process"),
    ROW(711, TOO_MANY_PEERS, kResourceExhausted, "no more peers can be enabled"),
    ROW(712, HOST_MEMORY_ALREADY_REGISTERED, kAlreadyExists,
        "the host memory is registered already"),
    ROW(713, HOST_MEMORY_NOT_REGISTERED, kFailedPrecondition, "the host memory is not registered"),
    ROW(714, HARDWARE_STACK_ERROR, kDataLoss,
        "a device stack error: every context on the device is lost, end the process"),
    ROW(715, ILLEGAL_INSTRUCTION, kDataLoss,
        "an illegal device instruction: every context on the device is lost, end the process"),
    ROW(716, MISALIGNED_ADDRESS, kDataLoss,
        "a misaligned device address: every context on the device is lost, end the process"),
    ROW(717, INVALID_ADDRESS_SPACE, kDataLoss,
        "an address of the wrong space: every context on the device is lost, end the process"),
    ROW(718, INVALID_PC, kDataLoss,
        "an invalid program counter: every context on the device is lost, end the process"),
    ROW(719, LAUNCH_FAILED, kDataLoss,
        "a kernel failed: every context on the device is lost, end the process"),
    ROW(720, COOPERATIVE_LAUNCH_TOO_LARGE, kResourceExhausted,
        "a cooperative launch has more blocks than fit on the device at once"),
    ROW(721, TENSOR_MEMORY_LEAK, kDataLoss,
        "a kernel ended without freeing tensor memory: the contexts are lost, end the process"),
    ROW(800, NOT_PERMITTED, kPermissionDenied,
        "the call is not permitted here: CUDA cannot be called from a stream callback or host "
        "function"),
    ROW(801, NOT_SUPPORTED, kUnimplemented, "this driver or device does not support it"),
    ROW(802, SYSTEM_NOT_READY, kUnavailable,
        "the system is not ready, often because nvidia-fabricmanager is not running"),
    ROW(803, SYSTEM_DRIVER_MISMATCH, kFailedPrecondition,
        "the kernel driver and libcuda are of different versions: usually an update without a "
        "reboot"),
    ROW(804, COMPAT_NOT_SUPPORTED_ON_DEVICE, kFailedPrecondition,
        "the forward-compatibility package does not support this device"),
    ROW(805, MPS_CONNECTION_FAILED, kUnavailable,
        "the MPS control daemon or server cannot be reached"),
    ROW(806, MPS_RPC_FAILURE, kUnavailable, "a call to the MPS server failed"),
    ROW(807, MPS_SERVER_NOT_READY, kUnavailable,
        "the MPS server is not ready, perhaps recovering: try again"),
    ROW(808, MPS_MAX_CLIENTS_REACHED, kResourceExhausted, "the MPS server takes no more clients"),
    ROW(809, MPS_MAX_CONNECTIONS_REACHED, kResourceExhausted,
        "the device takes no more connections"),
    ROW(810, MPS_CLIENT_TERMINATED, kDataLoss, "the MPS server ended this client: end the process"),
    ROW(811, CDP_NOT_SUPPORTED, kUnimplemented,
        "dynamic parallelism is not supported in this configuration, such as MPS"),
    ROW(812, CDP_VERSION_MISMATCH, kFailedPrecondition,
        "the module mixes versions of dynamic parallelism"),
    ROW(900, STREAM_CAPTURE_UNSUPPORTED, kFailedPrecondition,
        "the call is not permitted while a stream is being captured, and has usually ended the "
        "capture"),
    ROW(901, STREAM_CAPTURE_INVALIDATED, kFailedPrecondition,
        "an earlier call invalidated the capture: end the capture, and find that call"),
    ROW(902, STREAM_CAPTURE_MERGE, kFailedPrecondition, "two independent captures would be merged"),
    ROW(903, STREAM_CAPTURE_UNMATCHED, kFailedPrecondition,
        "the capture was not begun in this stream"),
    ROW(904, STREAM_CAPTURE_UNJOINED, kFailedPrecondition,
        "a forked stream was not joined before the capture ended"),
    ROW(905, STREAM_CAPTURE_ISOLATION, kFailedPrecondition,
        "a dependency would cross the boundary of the capture"),
    ROW(906, STREAM_CAPTURE_IMPLICIT, kFailedPrecondition,
        "the legacy default stream would depend on a capture: give a stream, non-blocking"),
    ROW(907, CAPTURED_EVENT, kFailedPrecondition,
        "the event was last recorded in a capturing stream"),
    ROW(908, STREAM_CAPTURE_WRONG_THREAD, kFailedPrecondition,
        "a capture that is not relaxed must end on the thread that began it"),
    ROW(909, TIMEOUT, kDeadlineExceeded, "the wait timed out"),
    ROW(910, GRAPH_EXEC_UPDATE_FAILURE, kFailedPrecondition,
        "the graph cannot be updated in place: instantiate it anew"),
    ROW(911, EXTERNAL_DEVICE, kDataLoss,
        "a device outside CUDA reported an error: the process is inconsistent, terminate it"),
    ROW(912, INVALID_CLUSTER_SIZE, kInvalidArgument,
        "the cluster configuration cannot be launched"),
    ROW(913, FUNCTION_NOT_LOADED, kFailedPrecondition, "the function is not loaded yet"),
    ROW(914, INVALID_RESOURCE_TYPE, kInvalidArgument,
        "a resource is of the wrong type for the operation"),
    ROW(915, INVALID_RESOURCE_CONFIGURATION, kInvalidArgument,
        "the resources are insufficient or do not apply"),
    ROW(916, KEY_ROTATION, kInternal, "a key rotation failed"),
    ROW(917, STREAM_DETACHED, kFailedPrecondition, "the stream's green context was destroyed"),
    ROW(918, GRAPH_RECAPTURE_FAILURE, kFailedPrecondition,
        "the graph could not be captured again in place"),
    ROW(999, UNKNOWN, kUnknown,
        "an unknown error; for creating a context, also a prohibited compute mode"),
};

constexpr Row kUnrecognized = ROW(
    -1, UNRECOGNIZED, kUnknown, "a code newer than cuguest; the driver's own documentation has it");
#undef ROW

constexpr char kPayload[] = "cuguest/CUresult";

const Row& Find(CUresult code) noexcept {
  const Row* row =
      std::lower_bound(std::begin(kRows), std::end(kRows), static_cast<int>(code),
                       [](const Row& candidate, int wanted) { return candidate.code < wanted; });
  return row != std::end(kRows) && row->code == static_cast<int>(code) ? *row : kUnrecognized;
}

}  // namespace

namespace internal {

std::string StatusText(std::string_view doing, std::string_view object, std::string_view said) {
  // Spelled out piece by piece: std::string_view and absl::string_view are different
  // types in some builds of Abseil.
  std::string text(doing);
  if (!object.empty()) {
    if (!text.empty()) text += ", ";
    text += object;
  }
  if (!text.empty()) text += ": ";
  text += said;
  return text;
}

absl::Status ErrorStatus(CUresult code, std::string_view doing, std::string_view object,
                         std::string_view said) {
  absl::Status status(Find(code).canonical, StatusText(doing, object, said));
  SetNumber(kPayload, static_cast<int>(code), &status);
  return status;
}

absl::Status Reworded(const absl::Status& status, absl::StatusCode code, std::string_view text) {
  absl::Status reworded(code, std::string(text));
  status.ForEachPayload(
      [&](auto url, const absl::Cord& payload) { reworded.SetPayload(url, payload); });
  return reworded;
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
  return code.has_value() ? std::optional(static_cast<CUresult>(*code)) : std::nullopt;
}

const char* ErrorName(CUresult code) noexcept { return Find(code).name; }
const char* ErrorText(CUresult code) noexcept { return Find(code).text; }
bool IsSticky(CUresult code) noexcept {
  return Find(code).canonical == absl::StatusCode::kDataLoss;
}

CUGUEST_END_NAMESPACE
