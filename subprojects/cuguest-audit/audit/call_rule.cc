// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/call_rule.h"

#include <cstddef>

#include "audit/text.h"

namespace cuguest::audit {
namespace {

// By the whole name.
constexpr CallRule kRules[] = {
    {"cuCtxPushCurrent", CallKind::kPush, CallClass::kStack, "C"},
    {"cuCtxPopCurrent", CallKind::kPop, CallClass::kStack},
    {"cuCtxSetCurrent", CallKind::kSetCurrent, CallClass::kStack, "C"},
    {"cuCtxCreate", CallKind::kCreate, CallClass::kStack},
    {"cuCtxDestroy", CallKind::kDestroy, CallClass::kStack, "C"},
    {"cuCtxAttach", CallKind::kOther, CallClass::kStack},
    {"cuCtxDetach", CallKind::kDestroy, CallClass::kStack, "C"},
    {"cuGreenCtxCreate", CallKind::kOther, CallClass::kChange},
    {"cuGreenCtxDestroy", CallKind::kDestroy, CallClass::kStack, "C"},
    {"cuDevicePrimaryCtxRetain", CallKind::kRetainPrimary, CallClass::kChange, "cD"},
    {"cuDevicePrimaryCtxRelease", CallKind::kReleasePrimary, CallClass::kChange, "D"},
    {"cuDevicePrimaryCtxReset", CallKind::kResetPrimary, CallClass::kChange, "D"},
    {"cuDevicePrimaryCtxSetFlags", CallKind::kSetSetting, CallClass::kChange, "Dv",
     Setting::kPrimaryFlags},
    {"cuDevicePrimaryCtxGetState", CallKind::kOther, CallClass::kAsk, "Dqp",
     Setting::kPrimaryFlags},
    {"cuCtxSetFlags", CallKind::kSetSetting, CallClass::kChange, "v", Setting::kContextFlags},
    {"cuCtxGetFlags", CallKind::kOther, CallClass::kAsk, "q", Setting::kContextFlags},
    {"cuCtxSetLimit", CallKind::kSetSetting, CallClass::kChange, "SV", Setting::kLimit},
    {"cuCtxGetLimit", CallKind::kOther, CallClass::kAsk, "QS", Setting::kLimit},
    {"cuCtxSetCacheConfig", CallKind::kSetSetting, CallClass::kChange, "v", Setting::kCacheConfig},
    {"cuCtxGetCacheConfig", CallKind::kOther, CallClass::kAsk, "q", Setting::kCacheConfig},
    {"cuCtxSetSharedMemConfig", CallKind::kSetSetting, CallClass::kChange, "v",
     Setting::kSharedConfig},
    {"cuCtxGetSharedMemConfig", CallKind::kOther, CallClass::kAsk, "q", Setting::kSharedConfig},
    {"cuCtxResetPersistingL2Cache", CallKind::kOther, CallClass::kChange},
    {"cuCtxEnablePeerAccess", CallKind::kOther, CallClass::kChange, "C"},
    {"cuCtxDisablePeerAccess", CallKind::kOther, CallClass::kChange, "C"},
    {"cuDeviceSetMemPool", CallKind::kOther, CallClass::kChange, "D"},
    {"cuThreadExchangeStreamCaptureMode", CallKind::kOther, CallClass::kCaptureMode, "M"},
    {"cuStreamBeginCapture", CallKind::kBeginCapture, CallClass::kChange},
    {"cuStreamBeginCaptureToGraph", CallKind::kBeginCapture, CallClass::kChange},
    {"cuStreamEndCapture", CallKind::kEndCapture, CallClass::kChange},
    {"cuStreamIsCapturing", CallKind::kAskForCapture, CallClass::kCommon},
    {"cuStreamGetCaptureInfo", CallKind::kAskForCapture, CallClass::kCommon},
    {"cudaSetDevice", CallKind::kOther, CallClass::kRuntimeChoice, "D"},
    {"cudaInitDevice", CallKind::kOther, CallClass::kRuntimeChoice, "D"},
    {"cudaSetValidDevices", CallKind::kOther, CallClass::kRuntimeChoice},
    // The handle is the driver's.
    {"cudaExecutionCtxDestroy", CallKind::kDestroy, CallClass::kStack, "C"},
    {"cudaDeviceReset", CallKind::kResetPrimary, CallClass::kChange},
    {"cudaThreadExit", CallKind::kResetPrimary, CallClass::kChange},
    {"cudaSetDeviceFlags", CallKind::kSetSetting, CallClass::kChange, "v", Setting::kContextFlags},
    {"cudaGetDeviceFlags", CallKind::kOther, CallClass::kAsk, "q", Setting::kContextFlags},
    {"cudaDeviceSetLimit", CallKind::kSetSetting, CallClass::kChange, "SV", Setting::kLimit},
    {"cudaDeviceGetLimit", CallKind::kOther, CallClass::kAsk, "QS", Setting::kLimit},
    {"cudaThreadSetLimit", CallKind::kSetSetting, CallClass::kChange, "SV", Setting::kLimit},
    {"cudaThreadGetLimit", CallKind::kOther, CallClass::kAsk, "QS", Setting::kLimit},
    {"cudaDeviceSetCacheConfig", CallKind::kSetSetting, CallClass::kChange, "v",
     Setting::kCacheConfig},
    {"cudaDeviceGetCacheConfig", CallKind::kOther, CallClass::kAsk, "q", Setting::kCacheConfig},
    {"cudaThreadSetCacheConfig", CallKind::kSetSetting, CallClass::kChange, "v",
     Setting::kCacheConfig},
    {"cudaThreadGetCacheConfig", CallKind::kOther, CallClass::kAsk, "q", Setting::kCacheConfig},
    {"cudaDeviceSetSharedMemConfig", CallKind::kSetSetting, CallClass::kChange, "v",
     Setting::kSharedConfig},
    {"cudaDeviceGetSharedMemConfig", CallKind::kOther, CallClass::kAsk, "q",
     Setting::kSharedConfig},
    {"cudaCtxResetPersistingL2Cache", CallKind::kOther, CallClass::kChange},
    {"cudaDeviceEnablePeerAccess", CallKind::kOther, CallClass::kChange, "D"},
    {"cudaDeviceDisablePeerAccess", CallKind::kOther, CallClass::kChange, "D"},
    {"cudaDeviceSetMemPool", CallKind::kOther, CallClass::kChange, "D"},
    {"cudaThreadExchangeStreamCaptureMode", CallKind::kOther, CallClass::kCaptureMode, "M"},
    {"cudaStreamBeginCapture", CallKind::kBeginCapture, CallClass::kChange},
    {"cudaStreamBeginCaptureToGraph", CallKind::kBeginCapture, CallClass::kChange},
    {"cudaStreamEndCapture", CallKind::kEndCapture, CallClass::kChange},
    {"cudaStreamIsCapturing", CallKind::kAskForCapture, CallClass::kCommon},
    {"cudaStreamGetCaptureInfo", CallKind::kAskForCapture, CallClass::kCommon},
    {"cudaGetLastError", CallKind::kGetLastError, CallClass::kClearError},
    {"cudaPeekAtLastError", CallKind::kPeekLastError, CallClass::kPeekError},
};

constexpr CallRule kCommon = {"", CallKind::kOther, CallClass::kCommon};
constexpr CallRule kWork = {"", CallKind::kOther, CallClass::kWork};
constexpr CallRule kMake = {"", CallKind::kOther, CallClass::kMake};
constexpr CallRule kFree = {"", CallKind::kOther, CallClass::kFree};

struct Beginning {
  std::string_view start;  // of the name, without "cu" or "cuda"
  Purpose purpose;
  const CallRule* rule = &kCommon;  // of what kRules does not name
};

// The first one counts.
constexpr Beginning kBeginnings[] = {
    // What stays in the context, and goes with it. Memory of pools belongs to devices.
    {"MallocAsync", Purpose::kWorks, &kWork},
    {"MallocFromPool", Purpose::kWorks, &kWork},
    {"MemAllocAsync", Purpose::kWorks, &kWork},
    {"MemAllocFromPool", Purpose::kWorks, &kWork},
    {"Malloc", Purpose::kWorks, &kMake},
    {"MemAlloc", Purpose::kWorks, &kMake},
    {"MemHostAlloc", Purpose::kWorks, &kMake},
    {"HostAlloc", Purpose::kWorks, &kMake},
    {"StreamCreate", Purpose::kWorks, &kMake},
    {"ModuleLoad", Purpose::kWorks, &kMake},
    {"LibraryLoad", Purpose::kWorks, &kMake},
    {"ArrayCreate", Purpose::kWorks, &kMake},
    {"Array3DCreate", Purpose::kWorks, &kMake},
    {"MipmappedArrayCreate", Purpose::kWorks, &kMake},
    {"GraphInstantiate", Purpose::kWorks, &kMake},
    // What takes that away.
    {"FreeAsync", Purpose::kFrees},
    {"MemFreeAsync", Purpose::kFrees},
    {"Free", Purpose::kFrees, &kFree},
    {"MemFree", Purpose::kFrees, &kFree},
    {"StreamDestroy", Purpose::kFrees, &kFree},
    {"ModuleUnload", Purpose::kFrees, &kFree},
    {"LibraryUnload", Purpose::kFrees, &kFree},
    {"ArrayDestroy", Purpose::kFrees, &kFree},
    {"MipmappedArrayDestroy", Purpose::kFrees, &kFree},
    {"GraphExecDestroy", Purpose::kFrees, &kFree},
    // Called too often to tell who did, or of what no context has.
    {"EventDestroy", Purpose::kFrees},
    {"GraphDestroy", Purpose::kFrees},
    {"GraphReleaseUserObject", Purpose::kFrees},
    {"UserObjectRelease", Purpose::kFrees},
    {"Destroy", Purpose::kFrees},  // cudaDestroyTextureObject
    {"TexObjectDestroy", Purpose::kFrees},
    {"SurfObjectDestroy", Purpose::kFrees},
    {"LinkDestroy", Purpose::kFrees},
    {"ExecutionCtxDestroy", Purpose::kFrees},
    {"MemPoolDestroy", Purpose::kFrees},
    {"MemPoolTrim", Purpose::kFrees},
    {"DeviceGraphMemTrim", Purpose::kFrees},
    {"IpcClose", Purpose::kFrees},
    {"HostUnregister", Purpose::kFrees},
    {"MemHostUnregister", Purpose::kFrees},
    {"GraphicsUnregister", Purpose::kFrees},
    {"GraphicsUnmap", Purpose::kFrees},
    {"DeviceUnregister", Purpose::kFrees},
    {"LogsUnregister", Purpose::kFrees},
    {"UnbindTexture", Purpose::kFrees},
    {"DeviceReset", Purpose::kFrees},
    {"ThreadExit", Purpose::kFrees},
    // Other work.
    {"Launch", Purpose::kWorks, &kWork},
    {"Memcpy", Purpose::kWorks, &kWork},
    {"Memset", Purpose::kWorks, &kWork},
    {"LinkCreate", Purpose::kWorks, &kWork},
    {"GraphLaunch", Purpose::kWorks, &kWork},
    {"EventCreate", Purpose::kWorks, &kWork},
    {"MemPoolCreate", Purpose::kWorks, &kWork},
    // What does none.
    {"SetDevice", Purpose::kChooses},
    {"InitDevice", Purpose::kChooses},
    {"SetValidDevices", Purpose::kChooses},
    {"ChooseDevice", Purpose::kChooses},
    {"DeviceSet", Purpose::kChooses},
    {"FuncSet", Purpose::kChooses},
    {"ThreadExchangeStreamCaptureMode", Purpose::kChooses},
    {"CtxResetPersistingL2Cache", Purpose::kChooses},
    {"DeviceSynchronize", Purpose::kWaits},
    {"ThreadSynchronize", Purpose::kWaits},
    {"StreamSynchronize", Purpose::kWaits},
    {"EventSynchronize", Purpose::kWaits},
    {"DeviceCanAccessPeer", Purpose::kAsks},
    {"StreamQuery", Purpose::kAsks},
    {"StreamIsCapturing", Purpose::kAsks},
    {"EventQuery", Purpose::kAsks},
    {"EventElapsedTime", Purpose::kAsks},
    {"Occupancy", Purpose::kAsks},
};
constexpr Beginning kGets = {"", Purpose::kAsks};
constexpr Beginning kUnknown = {"", Purpose::kWorks};

const Beginning& BeginningOf(std::string_view call) {
  const std::string_view prefix = StartsWith(call, "cuda") ? "cuda" : "cu";
  if (!StartsWith(call, prefix)) {
    return kUnknown;
  }
  call.remove_prefix(prefix.size());
  for (const Beginning& beginning : kBeginnings) {
    if (StartsWith(call, beginning.start)) {
      return beginning;
    }
  }
  return call.find("Get") != std::string_view::npos ? kGets : kUnknown;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

// "_v2", "_v12000".
std::size_t LengthOfVersion(std::string_view name) {
  const std::size_t digits = name.size() - 1 - name.find_last_not_of("0123456789");
  return digits > 0 && EndsWith(name.substr(0, name.size() - digits), "_v") ? digits + 2 : 0;
}

}  // namespace

std::string_view NameAsWritten(std::string_view name) {
  for (std::size_t before = 0; before != name.size();) {
    before = name.size();
    for (const std::string_view twin : {"_ptsz", "_ptds"}) {
      if (EndsWith(name, twin)) {
        name.remove_suffix(twin.size());
      }
    }
    name.remove_suffix(LengthOfVersion(name));
  }
  return name;
}

const CallRule& RuleOf(std::string_view call) {
  const std::string_view base = NameAsWritten(call);
  for (const CallRule& rule : kRules) {
    if (rule.name == base) {
      return rule;
    }
  }
  return *BeginningOf(base).rule;
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

Purpose PurposeOf(std::string_view call) { return BeginningOf(call).purpose; }

bool IsQuery(std::string_view call) {
  return StartsWith(call, "cuda") && PurposeOf(call) != Purpose::kWorks;
}

std::string_view SettingOf(std::string_view call) {
  const CallRule& rule = RuleOf(call);
  if (rule.kind != CallKind::kSetSetting) {
    return "";
  }
  switch (rule.setting) {
    case Setting::kNone:
      break;
    case Setting::kLimit:
      return "Limit";
    case Setting::kCacheConfig:
      return "CacheConfig";
    case Setting::kSharedConfig:
      return "SharedMemConfig";
    case Setting::kContextFlags:
    case Setting::kPrimaryFlags:
      return "Flags";
  }
  return "";
}

}  // namespace cuguest::audit
