// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/call_name.h"

#include <cstddef>

#include "audit/text.h"

namespace cuguest::audit {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Prefix {
  std::string_view start;
  CallKind kind;
};

constexpr Prefix kPrefixes[] = {
    {"cuCtxPushCurrent", CallKind::kPush},
    {"cuCtxPopCurrent", CallKind::kPop},
    {"cuCtxSetCurrent", CallKind::kSetCurrent},
    {"cuCtxCreate", CallKind::kCreate},
    {"cuCtxDestroy", CallKind::kDestroy},
    {"cuCtxDetach", CallKind::kDestroy},
    {"cuGreenCtxDestroy", CallKind::kDestroy},
    {"cudaExecutionCtxDestroy", CallKind::kDestroy},
    {"cuDevicePrimaryCtxRetain", CallKind::kRetainPrimary},
    {"cuDevicePrimaryCtxRelease", CallKind::kReleasePrimary},
    {"cuDevicePrimaryCtxReset", CallKind::kResetPrimary},
    {"cudaDeviceReset", CallKind::kResetPrimary},
    {"cudaThreadExit", CallKind::kResetPrimary},
    {"cudaGetLastError", CallKind::kGetLastError},
    {"cudaPeekAtLastError", CallKind::kPeekLastError},
    {"cuStreamBeginCapture", CallKind::kBeginCapture},
    {"cudaStreamBeginCapture", CallKind::kBeginCapture},
    {"cuStreamEndCapture", CallKind::kEndCapture},
    {"cudaStreamEndCapture", CallKind::kEndCapture},
    {"cuStreamIsCapturing", CallKind::kAskForCapture},
    {"cudaStreamIsCapturing", CallKind::kAskForCapture},
    {"cuStreamGetCaptureInfo", CallKind::kAskForCapture},
    {"cudaStreamGetCaptureInfo", CallKind::kAskForCapture},
};

// Of the runtime: what else makes a primary context does work in it.
constexpr std::string_view kQueries[] = {
    "cudaSetDevice",
    "cudaInitDevice",
    "cudaSetValidDevices",
    "cudaChooseDevice",
    "cudaFree",
    "cudaMemGetInfo",
    "cudaPointerGet",
    "cudaDeviceGet",
    "cudaDeviceSet",
    "cudaGetDevice",
    "cudaDeviceSynchronize",
    "cudaDeviceCanAccessPeer",
    "cudaStreamQuery",
    "cudaStreamGet",
    "cudaStreamIsCapturing",
    "cudaStreamSynchronize",
    "cudaStreamDestroy",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaEventDestroy",
    "cudaFuncGetAttributes",
    "cudaFuncSet",
    "cudaOccupancy",
    "cudaThreadExchangeStreamCaptureMode",
    "cudaThreadSynchronize",
    "cudaGetSymbol",
    "cudaCtxResetPersistingL2Cache",
};

struct Work {
  std::string_view start;  // without "cu" or "cuda"
  WorkKind kind;
};

constexpr Work kWork[] = {
    // Of pools, which belong to devices.
    {"MallocAsync", WorkKind::kOther},   {"MallocFromPool", WorkKind::kOther},
    {"MemAllocAsync", WorkKind::kOther}, {"MemAllocFromPool", WorkKind::kOther},
    {"FreeAsync", WorkKind::kOther},     {"MemFreeAsync", WorkKind::kOther},
    {"Malloc", WorkKind::kMakes},        {"MemAlloc", WorkKind::kMakes},
    {"MemHostAlloc", WorkKind::kMakes},  {"HostAlloc", WorkKind::kMakes},
    {"StreamCreate", WorkKind::kMakes},  {"EventCreate", WorkKind::kMakes},
    {"ModuleLoad", WorkKind::kMakes},    {"LibraryLoad", WorkKind::kMakes},
    {"ArrayCreate", WorkKind::kMakes},   {"GraphInstantiate", WorkKind::kMakes},
    {"Free", WorkKind::kFrees},          {"MemFree", WorkKind::kFrees},
    {"StreamDestroy", WorkKind::kFrees}, {"EventDestroy", WorkKind::kFrees},
    {"ModuleUnload", WorkKind::kFrees},  {"LibraryUnload", WorkKind::kFrees},
    {"ArrayDestroy", WorkKind::kFrees},  {"GraphExecDestroy", WorkKind::kFrees},
};

}  // namespace

CallKind KindOf(std::string_view call) {
  for (const Prefix& prefix : kPrefixes) {
    if (StartsWith(call, prefix.start)) {
      return prefix.kind;
    }
  }
  return SettingOf(call).empty() ? CallKind::kOther : CallKind::kSetSetting;
}

bool IsDestruction(std::string_view call) {
  const CallKind kind = KindOf(call);
  return kind == CallKind::kDestroy || kind == CallKind::kResetPrimary;
}

bool IsOfRuntime(std::string_view call) {
  // The driver's begin with "cu" and a capital letter.
  return StartsWith(call, "cuda") || !StartsWith(call, "cu") || call.size() < 3 || call[2] < 'A' ||
         call[2] > 'Z';
}

bool ManagesContexts(CallKind kind) {
  switch (kind) {
    case CallKind::kPush:
    case CallKind::kPop:
    case CallKind::kSetCurrent:
    case CallKind::kCreate:
    case CallKind::kDestroy:
    case CallKind::kRetainPrimary:
      return true;
    default:
      return false;
  }
}

bool IsQuery(std::string_view call) {
  for (const std::string_view query : kQueries) {
    if (StartsWith(call, query)) {
      return true;
    }
  }
  return false;
}

WorkKind WorkOf(std::string_view call) {
  if (!StartsWith(call, "cu")) {
    return WorkKind::kOther;
  }
  call.remove_prefix(StartsWith(call, "cuda") ? 4 : 2);
  for (const Work& work : kWork) {
    if (StartsWith(call, work.start)) {
      return work.kind;
    }
  }
  return WorkKind::kOther;
}

std::string_view SettingOf(std::string_view call) {
  if (!Has(call, "Set")) {
    return "";
  }
  if (StartsWith(call, "cuCtxSet") || StartsWith(call, "cudaDeviceSet") ||
      StartsWith(call, "cudaSetDeviceFlags") || StartsWith(call, "cudaThreadSet") ||
      StartsWith(call, "cuDevicePrimaryCtxSetFlags")) {
    for (const std::string_view setting : {"Limit", "Flags", "CacheConfig", "SharedMemConfig"}) {
      if (Has(call, setting)) {
        return setting;
      }
    }
  }
  return "";
}

}  // namespace cuguest::audit
