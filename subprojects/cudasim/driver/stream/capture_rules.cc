// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/stream/capture.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "driver/entry.h"
#include "driver/entry_list.h"

namespace cudasim::driver {
namespace {

// Rule
//
// Measured on an H100, driver 580.159.04. 900 is STREAM_CAPTURE_UNSUPPORTED, 901
// STREAM_CAPTURE_INVALIDATED, 906 STREAM_CAPTURE_IMPLICIT; "!": the capture is invalidated.
// "Legacy": stream 0 of a context in which a blocking stream captures, or had its capture
// invalidated and not ended.
//
// | rule       | capturing stream | its capture lost | legacy    | otherwise            |
// |------------|------------------|------------------|-----------|----------------------|
// | kHarmless  | fine             | fine             | fine      | fine                 |
// | kNames     | fine             | fine             | 906!      | fine                 |
// | kUnsafe    | -                | -                | -         | 900! if forbidden    |
// | kContext   | -                | -                | -         | 900! if the context  |
// |            |                  |                  |           | has a capture        |
// | kWork      | recorded         | 901              | 906!      | fine                 |
// | kAllocates | recorded         | 901              | 906!      | 900! if forbidden    |
// | kDescribes | fine             | 901              | 906!      | fine                 |
// | kObserves  | fine             | fine             | 906       | fine                 |
// | kRefused   | 900!             | 900              | 906!      | fine                 |
// | kWaits     | 900!             | 900              | 906!      | 900! if forbidden    |
//
// "If forbidden": by the modes of the captures and of this thread (capture.cc).
// Not measured: cuIpc* on a thread that is not relaxed, of which nothing kinder is known; 906 of
// kAllocates, which follows kWork; the green forms of kContext, which follow what cuda.h says; the
// three of cuLaunch, cuGraphInstantiateWithParams, cuGraphUpload and cuEventRecordWithFlags, which
// follow their like; cuMemPrefetchAsync, of which no node is known. cuMemcpyBatchAsync refuses an
// active capture itself. What is synchronous works on stream 0.
enum class Rule {
  kHarmless,
  kNames,
  kUnsafe,
  kContext,
  kWork,
  kAllocates,
  kDescribes,
  kObserves,
  kRefused,
  kWaits
};

struct Row {
  std::string_view base;
  Rule rule;
};

// All others are harmless.
constexpr Row kRows[] = {
    {"cuCtxSynchronize", Rule::kContext},
    {"cuCtxRecordEvent", Rule::kContext},
    {"cuCtxWaitEvent", Rule::kContext},
    {"cuGreenCtxRecordEvent", Rule::kContext},
    {"cuGreenCtxWaitEvent", Rule::kContext},

    {"cuCtxSetLimit", Rule::kUnsafe},
    {"cuCtxSetCacheConfig", Rule::kUnsafe},
    {"cuCtxSetSharedMemConfig", Rule::kUnsafe},
    {"cuCtxEnablePeerAccess", Rule::kUnsafe},
    {"cuCtxDisablePeerAccess", Rule::kUnsafe},
    {"cuMemAlloc", Rule::kUnsafe},
    {"cuMemAllocPitch", Rule::kUnsafe},
    {"cuMemAllocManaged", Rule::kUnsafe},
    {"cuMemAllocHost", Rule::kUnsafe},
    {"cuMemHostAlloc", Rule::kUnsafe},
    {"cuMemFree", Rule::kUnsafe},
    {"cuMemFreeHost", Rule::kUnsafe},
    {"cuMemHostRegister", Rule::kUnsafe},
    {"cuMemHostUnregister", Rule::kUnsafe},
    {"cuMemPoolCreate", Rule::kUnsafe},
    {"cuMemPoolDestroy", Rule::kUnsafe},
    {"cuMemPoolTrimTo", Rule::kUnsafe},
    {"cuMemPoolGetAttribute", Rule::kUnsafe},
    {"cuMemPoolSetAttribute", Rule::kUnsafe},
    {"cuDeviceSetMemPool", Rule::kUnsafe},
    {"cuModuleUnload", Rule::kUnsafe},
    {"cuLibraryUnload", Rule::kUnsafe},
    {"cuArrayCreate", Rule::kUnsafe},
    {"cuArray3DCreate", Rule::kUnsafe},
    {"cuArrayDestroy", Rule::kUnsafe},
    {"cuMipmappedArrayCreate", Rule::kUnsafe},
    {"cuMipmappedArrayDestroy", Rule::kUnsafe},
    {"cuTexObjectCreate", Rule::kUnsafe},
    {"cuTexObjectDestroy", Rule::kUnsafe},
    {"cuSurfObjectCreate", Rule::kUnsafe},
    {"cuSurfObjectDestroy", Rule::kUnsafe},
    {"cuIpcGetMemHandle", Rule::kUnsafe},
    {"cuIpcOpenMemHandle", Rule::kUnsafe},
    {"cuIpcCloseMemHandle", Rule::kUnsafe},
    {"cuIpcGetEventHandle", Rule::kUnsafe},
    {"cuIpcOpenEventHandle", Rule::kUnsafe},
    {"cuEventQuery", Rule::kUnsafe},
    {"cuEventSynchronize", Rule::kUnsafe},
    {"cuGraphExecDestroy", Rule::kUnsafe},
    {"cuGraphInstantiate", Rule::kUnsafe},
    {"cuGraphInstantiateWithFlags", Rule::kUnsafe},
    {"cuGraphInstantiateWithParams", Rule::kUnsafe},

    {"cuStreamSynchronize", Rule::kWaits},
    {"cuStreamQuery", Rule::kWaits},

    {"cuStreamBeginCapture", Rule::kNames},
    {"cuStreamEndCapture", Rule::kNames},
    {"cuStreamUpdateCaptureDependencies", Rule::kNames},
    {"cuStreamDestroy", Rule::kNames},
    {"cuStreamIsCapturing", Rule::kObserves},
    {"cuStreamGetCaptureInfo", Rule::kObserves},
    {"cuStreamGetCtx", Rule::kDescribes},
    {"cuStreamGetGreenCtx", Rule::kDescribes},
    {"cuStreamGetPriority", Rule::kDescribes},
    {"cuStreamGetFlags", Rule::kRefused},
    {"cuStreamGetId", Rule::kRefused},
    {"cuStreamGetDevice", Rule::kRefused},
    {"cuStreamAddCallback", Rule::kRefused},
    {"cuGraphLaunch", Rule::kRefused},
    {"cuGraphUpload", Rule::kRefused},

    {"cuStreamWaitEvent", Rule::kWork},
    {"cuEventRecord", Rule::kWork},
    {"cuEventRecordWithFlags", Rule::kWork},
    {"cuLaunchKernel", Rule::kWork},
    {"cuLaunchKernelEx", Rule::kWork},
    {"cuLaunchCooperativeKernel", Rule::kWork},
    {"cuLaunchHostFunc", Rule::kWork},
    {"cuLaunch", Rule::kWork},
    {"cuLaunchGrid", Rule::kWork},
    {"cuLaunchGridAsync", Rule::kWork},
    {"cuMemcpyAsync", Rule::kWork},
    {"cuMemcpyBatchAsync", Rule::kWork},
    {"cuMemcpyHtoDAsync", Rule::kWork},
    {"cuMemcpyDtoHAsync", Rule::kWork},
    {"cuMemcpyDtoDAsync", Rule::kWork},
    {"cuMemcpyPeerAsync", Rule::kRefused},
    {"cuMemPrefetchAsync", Rule::kRefused},
    {"cuMemcpy3DPeerAsync", Rule::kRefused},
    {"cuMemsetD8Async", Rule::kWork},
    {"cuMemsetD16Async", Rule::kWork},
    {"cuMemsetD32Async", Rule::kWork},

    {"cuMemcpy2DAsync", Rule::kWork},
    {"cuMemcpy3DAsync", Rule::kWork},
    {"cuMemcpyHtoAAsync", Rule::kWork},
    {"cuMemcpyAtoHAsync", Rule::kWork},
    {"cuMemsetD2D8Async", Rule::kWork},
    {"cuMemsetD2D16Async", Rule::kWork},
    {"cuMemsetD2D32Async", Rule::kWork},

    {"cuMemAllocAsync", Rule::kAllocates},
    {"cuMemAllocFromPoolAsync", Rule::kAllocates},
    {"cuMemFreeAsync", Rule::kAllocates},

    {"cuMemcpy", Rule::kRefused},
    {"cuMemcpyHtoD", Rule::kRefused},
    {"cuMemcpyDtoH", Rule::kRefused},
    {"cuMemcpyDtoD", Rule::kRefused},
    {"cuMemcpyPeer", Rule::kRefused},
    {"cuMemcpy3DPeer", Rule::kRefused},
    {"cuMemsetD8", Rule::kRefused},
    {"cuMemsetD16", Rule::kRefused},
    {"cuMemsetD32", Rule::kRefused},
    {"cuMemcpy2D", Rule::kRefused},
    {"cuMemcpy2DUnaligned", Rule::kRefused},
    {"cuMemcpy3D", Rule::kRefused},
    {"cuMemcpyHtoA", Rule::kRefused},
    {"cuMemcpyAtoH", Rule::kRefused},
    {"cuMemcpyDtoA", Rule::kRefused},
    {"cuMemcpyAtoD", Rule::kRefused},
    {"cuMemcpyAtoA", Rule::kRefused},
    {"cuMemsetD2D8", Rule::kRefused},
    {"cuMemsetD2D16", Rule::kRefused},
    {"cuMemsetD2D32", Rule::kRefused},
};

// Outside of IsEntry, where clang would evaluate it for each row, and exceed its limit of steps.
constexpr std::string_view kBases[] = {
#define CUDASIM_BASE(Base, ...) "cu" #Base,
    CUDASIM_ENTRIES(CUDASIM_BASE, CUDASIM_BASE)
#undef CUDASIM_BASE
};

constexpr bool IsEntry(std::string_view base) {
  for (const std::string_view entry : kBases) {
    if (entry == base) return true;
  }
  return false;
}

constexpr bool AreEntries() {
  for (const Row& row : kRows) {
    if (!IsEntry(row.base)) return false;
  }
  return true;
}
static_assert(AreEntries());

Rule RuleOfThisCall() {
  const Entry* entry = ThisCall().entry;
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [=](const Row& candidate) {
    return candidate.base == entry->base;
  });
  return row != std::end(kRows) ? row->rule : Rule::kHarmless;
}

CUresult AskIfForbidden() {
  return Captures::HasForbiddingUnsafeCalls(/*lose=*/true) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                           : CUDA_SUCCESS;
}

// What a stream that does not capture is asked.
CUresult AskOutside(Rule rule) {
  const bool unsafe = rule == Rule::kWaits || rule == Rule::kAllocates;
  return unsafe ? AskIfForbidden() : CUDA_SUCCESS;
}

CUresult AskOnLegacy(Rule rule, const Stream& stream) {
  if (rule == Rule::kHarmless) return CUDA_SUCCESS;
  if (Captures::HasInBlockingStreamOf(stream.incarnation.id, /*lose=*/rule != Rule::kObserves)) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return AskOutside(rule);
}

CUresult AskOnCapturing(Rule rule, const Stream& stream, bool lost) {
  if (rule == Rule::kRefused || rule == Rule::kWaits) {
    Captures::Lose(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const bool told = rule == Rule::kWork || rule == Rule::kAllocates || rule == Rule::kDescribes;
  return lost && told ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

}  // namespace

CUresult AskCaptures() {
  if (!Captures::Any() || RuleOfThisCall() != Rule::kUnsafe) return CUDA_SUCCESS;
  return AskIfForbidden();
}

CUresult AskCaptures(const Incarnation& current) {
  if (!Captures::Any()) return CUDA_SUCCESS;
  if (RuleOfThisCall() != Rule::kContext) return AskCaptures();
  return Captures::HasInContext(current.id, /*lose=*/true) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                           : CUDA_SUCCESS;
}

CUresult AskCaptures(const Stream& stream) {
  if (!Captures::Any()) return CUDA_SUCCESS;
  const Rule rule = RuleOfThisCall();
  if (stream.is_legacy) return AskOnLegacy(rule, stream);
  const CUstreamCaptureStatus status = Captures::StatusOf(stream);
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return AskOutside(rule);
  return AskOnCapturing(rule, stream, status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

}  // namespace cudasim::driver
