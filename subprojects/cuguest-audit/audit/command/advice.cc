// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/advice.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "audit/command/result_name.h"
#include "audit/text.h"

namespace cuguest::audit {

namespace {

using Kind = FindingKind;

// The first row of a kind that fits counts, and its last one is of all other calls.
constexpr AdviceRow kRows[] = {
    {Kind::kLeakedPush,
     {"cuCtxCreate", "CtxCreate"},
     {"cuCtxPopCurrent after cuCtxCreate, which pushes what it creates",
      "SharedContext::Create, which pushes nothing"}},
    {Kind::kLeakedPush,
     {"cuCtxPushCurrent", "CtxPushCurrent"},
     {"cuCtxPopCurrent on every path, also of errors and exceptions", "ContextGuard"}},
    {Kind::kLeakedPush,
     {},
     {"cuCtxPopCurrent for the push before: the call made another context current in its place",
      "ContextGuard"}},

    {Kind::kExtraPop,
     {"cuCtxPopCurrent", "CtxPopCurrent"},
     {"pop only what you pushed, and only if the push succeeded", "ContextGuard"}},
    {Kind::kExtraPop,
     {},
     {"cuCtxGetCurrent before the call, which pops, and cuCtxPushCurrent of that when the work is "
      "done",
      "NoContextGuard"}},

    {Kind::kReplacedContext,
     {"cuCtxPushCurrent or cuCtxCreate, after a pop", "CtxPushCurrent|CtxCreate"},
     {"leave the caller's entry: push yours over it, work, and pop yours", "ContextGuard"}},
    {Kind::kReplacedContext,
     {"cuCtxSetCurrent", "CtxSetCurrent"},
     {"cuCtxGetCurrent before, and cuCtxSetCurrent of that when the work is done; or push, work "
      "and pop",
      "ContextGuard"}},
    {Kind::kReplacedContext,
     {},
     {"cuCtxGetCurrent before, and cuCtxSetCurrent of that when the work is done: cudaSetDevice "
      "restores no context",
      "runtime::CalleeScope around it"}},

    {Kind::kLeftContext,
     {},
     {"cuCtxSetCurrent(nullptr) when the work is done",
      "ContextGuard; NoContextGuard around a callee"}},

    {Kind::kCreatedPrimary,
     {"cuDevicePrimaryCtxRetain", "DevicePrimaryCtxRetain"},
     {"work in the caller's context: push what cuStreamGetCtx says of its stream, or "
      "cuPointerGetAttribute of its memory",
      "AcquireFromStream, AcquireFromPointer"}},
    {Kind::kCreatedPrimary,
     {"cuGreenCtxCreate", "GreenCtxCreate"},
     {"leave it out unless the caller asks for it: no green context is without the primary one of "
      "its device",
      ""}},
    {Kind::kCreatedPrimary,
     {"a copy or an access between devices by the runtime",
      "MemcpyPeer|Memcpy3DPeer|DeviceEnablePeerAccess"},
     {"cuMemcpyPeer or cuCtxEnablePeerAccess with the contexts of both: the runtime takes the "
      "primary ones",
      "CopyAsync, PeerAccess"}},
    {Kind::kCreatedPrimary,
     {},
     {"push the caller's context first, as the runtime works in what is current, and pop it when "
      "the work is done",
      "AcquireFromStream, AcquireFromPointer; ContextScope in a thread"}},

    {Kind::kQueryCreatedPrimary,
     {"cudaSetDeviceFlags", "SetDeviceFlags"},
     {"cuDevicePrimaryCtxSetFlags, which creates no context", ""}},
    {Kind::kQueryCreatedPrimary,
     {"cudaSetDevice", "SetDevice"},
     {"choose a device only if cuDevicePrimaryCtxGetState says that it is active; go back by "
      "cuCtxSetCurrent of what cuCtxGetCurrent said",
      "runtime::DeviceGuard"}},
    {Kind::kQueryCreatedPrimary,
     {"cudaInitDevice", "InitDevice"},
     {"leave it out: the first work initialises the device", "ContextGuard"}},
    {Kind::kQueryCreatedPrimary,
     {"cudaDeviceGetExecutionCtx", "DeviceGetExecutionCtx"},
     {"leave it out until the primary context is needed: nothing else has that execution context",
      ""}},
    {Kind::kQueryCreatedPrimary,
     {"cudaThreadExchangeStreamCaptureMode", "ThreadExchangeStreamCaptureMode"},
     {"cuThreadExchangeStreamCaptureMode, which creates no context", "CaptureModeGuard"}},
    {Kind::kQueryCreatedPrimary,
     {"cudaMemGetInfo", "MemGetInfo"},
     {"push a context of the device first; where there is none, NVML has the free memory and needs "
      "no context",
      "GetFreeMemory"}},
    {Kind::kQueryCreatedPrimary,
     {"a call that frees", "", 0, Purpose::kFrees},
     {"skip it for a null handle, and as an initialisation; otherwise push the context of the "
      "object first",
      "its objects, which enter their context"}},
    {Kind::kQueryCreatedPrimary,
     {"a call that waits", "", 0, Purpose::kWaits},
     {"call it only if cuDevicePrimaryCtxGetState says that the device is active: otherwise there "
      "is nothing to wait for",
      "PrimaryContext::RetainIfActive"}},
    {Kind::kQueryCreatedPrimary,
     {"a call that sets", "", 0, Purpose::kChooses},
     {"push the context that is meant first, to set its limits one of your own, and pop it behind",
      "SharedContext::Create"}},
    {Kind::kQueryCreatedPrimary,
     {},
     {"push the caller's context first, as the runtime asks about what is current, and pop it "
      "behind",
      "AcquireFromStream, AcquireFromPointer"}},

    {Kind::kTouchedDeviceZero,
     {"cudaSetDevice, cudaInitDevice", "SetDevice|InitDevice"},
     {"choose no device that you do not work on, also not to go back: cuDevicePrimaryCtxGetState "
      "says whether it is active",
      "runtime::DeviceGuard"}},
    {Kind::kTouchedDeviceZero,
     {},
     {"cudaSetDevice first on every thread; or CUDA_VISIBLE_DEVICES for the process",
      "ContextScope"}},

    {Kind::kResetPrimary,
     {"cuDevicePrimaryCtxReset", "DevicePrimaryCtxReset"},
     {"cuDevicePrimaryCtxRelease of the references that you retained", "PrimaryContext"}},
    {Kind::kResetPrimary,
     {},
     {"leave out the call: the process's end cleans up", "PrimaryContext"}},

    {Kind::kOverReleasedPrimary, {}, {"one release for each retain of your own", "PrimaryContext"}},

    {Kind::kDestroyedContext, {}, {"destroy only what you created", "SharedContext"}},

    {Kind::kDestroyedWork,
     {},
     {"cuCtxPushCurrent of the caller's context before each callback, and cuCtxPopCurrent behind "
      "it",
      "ContextGuard"}},

    {Kind::kDestroyedInUse,
     {},
     {"join the threads first, or let each pop the context", "ContextScope, SharedContext"}},

    {Kind::kUsedDestroyedContext,
     {},
     {"note cuCtxGetId of the context, and use the handle only while cuCtxGetId says the same",
      "ContextRef"}},

    {Kind::kChangedSetting,
     {"a limit", "CtxSetLimit|DeviceSetLimit|ThreadSetLimit"},
     {"cuCtxGetLimit before, and cuCtxSetLimit of that when the work is done",
      "SharedContext::Create"}},
    {Kind::kChangedSetting,
     {"flags of the primary context", "SetDeviceFlags|DevicePrimaryCtxSetFlags"},
     {"cuDevicePrimaryCtxGetState before, and cuDevicePrimaryCtxSetFlags of its flags when the "
      "work is done",
      "SharedContext::Create"}},
    {Kind::kChangedSetting,
     {"flags", "CtxSetFlags"},
     {"cuCtxGetFlags before, and cuCtxSetFlags of that when the work is done",
      "SharedContext::Create"}},
    {Kind::kChangedSetting,
     {"a cache configuration", "CtxSetCacheConfig|DeviceSetCacheConfig|ThreadSetCacheConfig"},
     {"cuFuncSetCacheConfig of your own kernels, which no others see", "SharedContext::Create"}},
    {Kind::kChangedSetting,
     {},
     {"cuCtxGetSharedMemConfig before, and cuCtxSetSharedMemConfig of that when the work is done",
      "SharedContext::Create"}},

    {Kind::kLeftError,
     {"a call that asks", "", 0, Purpose::kAsks},
     {"the driver's counterpart of the call, whose failure is no last error; or cudaGetLastError "
      "after it",
      "runtime::LastErrorScope"}},
    {Kind::kLeftError,
     {},
     {"cudaGetLastError after the call if it fails and there was no error before",
      "runtime::LastErrorScope"}},

    {Kind::kBrokeCapture,
     {"a call in stream 0, for which a blocking stream captures (906)", "", 906},
     {"a stream of your own, of CU_STREAM_NON_BLOCKING, and calls that take it; no capture mode "
      "helps",
      "HousekeepingIsSafe before it"}},
    {Kind::kBrokeCapture,
     {"a call about an event that was recorded in the capture (907)", "", 907},
     {"an event of your own that is recorded in no capture; no capture mode helps for this one",
      ""}},
    {Kind::kBrokeCapture,
     {"a wait in a capturing stream for an event from outside (905)", "", 905},
     {"CU_EVENT_WAIT_EXTERNAL as the wait's flag; no capture mode helps", ""}},
    {Kind::kBrokeCapture,
     {"a wait that joins two captures (902)", "", 902},
     {"leave out the wait: what is captured in one graph waits for nothing in another; no capture "
      "mode helps",
      ""}},
    {Kind::kBrokeCapture,
     {"a call about a whole context or device",
      "CtxSynchronize|CtxRecordEvent|CtxWaitEvent|GreenCtxRecordEvent|"
      "GreenCtxWaitEvent|ExecutionCtx|DeviceSynchronize|ThreadSynchronize"},
     {"wait for a stream of your own, by cuStreamSynchronize within "
      "cuThreadExchangeStreamCaptureMode(relaxed); for the "
      "context no capture mode helps",
      "HousekeepingIsSafe before it"}},
    {Kind::kBrokeCapture,
     {"a wait for or a query of a stream", "StreamSynchronize|StreamQuery"},
     {"for a stream of your own within cuThreadExchangeStreamCaptureMode(relaxed); for a captured "
      "one no mode helps: ask "
      "cuStreamIsCapturing first, and leave it out",
      "CaptureStatusOf, CaptureModeGuard"}},
    {Kind::kBrokeCapture,
     {"a question about the captured stream", "StreamGet"},
     {"ask cuStreamIsCapturing first, and leave it out where the stream captures: no capture mode "
      "helps; cuStreamGetCtx "
      "may be called",
      "CaptureStatusOf"}},
    {Kind::kBrokeCapture,
     {"cuStreamAddCallback", "StreamAddCallback"},
     {"cuLaunchHostFunc, which a capture records; no capture mode helps", ""}},
    {Kind::kBrokeCapture,
     {"the launch or upload of a graph in the captured stream", "GraphLaunch|GraphUpload"},
     {"launch it in a stream of your own: no capture mode helps", ""}},
    {Kind::kBrokeCapture,
     {"a copy between devices, or a prefetch, in the captured stream",
      "MemcpyPeer|Memcpy3DPeer|MemPrefetch"},
     {"cuMemcpyAsync, which a capture records; no capture mode helps", ""}},
    {Kind::kBrokeCapture,
     {},
     {"cuThreadExchangeStreamCaptureMode(relaxed) around the call; or make it before the capture",
      "CaptureModeGuard"}},

    {Kind::kForkedChild,
     {},
     {"start processes by spawn, or initialise CUDA after the fork: no call helps in the child",
      "Driver::GetInitialized"}},

    {Kind::kAfterShutdown,
     {},
     {"free before main returns, and nothing from a static destructor",
      "its objects, which skip such calls"}},

    {Kind::kLeakedReference, {}, {"one release for each retain", "PrimaryContext"}},

    {Kind::kLeakedContext,
     {},
     {"destroy the context before the library is unloaded", "SharedContext"}},

    {Kind::kForbidden, {}, {"put the call off until CUDA is needed", "Driver::GetInitialized"}},

    {Kind::kNoisy,
     {},
     {"ask first, by a call that cannot fail, what this one needs",
      "its calls, which do not fail"}},

    {Kind::kUsedAfterContext,
     {"a call that frees", "", 0, Purpose::kFrees},
     {"free it before its context ends; where that is not yours to say, note that context and its "
      "cuCtxGetId beside it, and drop it without a call unless cuCtxGetId still says the same",
      "PerContext, Stream, Event, PinnedBuffer"}},
    {Kind::kUsedAfterContext,
     {},
     {"note its context and cuCtxGetId of that beside it, and make it anew unless cuCtxGetId still "
      "says the same: the handle alone may be another context's",
      "PerContext, Stream, Event, PinnedBuffer"}},
};

// In the order of the kinds, and of each its last row is of all other calls.
constexpr bool AreComplete() {
  std::size_t kind = 0;
  for (const AdviceRow& row : kRows) {
    if (kind == kFindingKinds || row.kind != static_cast<Kind>(kind)) {
      return false;
    }
    kind += row.of.IsAnything() ? 1 : 0;
  }
  return kind == kFindingKinds;
}
static_assert(AreComplete());

struct MeaningRow {
  Kind kind;
  const char* meaning;
};

constexpr MeaningRow kMeanings[] = {
    {Kind::kLeakedPush,
     "Contexts are on the stack that were not there when the library was called: later pops of "
     "its caller take the wrong entries."},
    {Kind::kExtraPop,
     "Entries of the context stack are gone that the caller had pushed: it works in another "
     "context, or in none."},
    {Kind::kReplacedContext,
     "Another context is current than before the call: the caller's streams and modules are "
     "invalid in it."},
    {Kind::kLeftContext,
     "No context was current before the call, and one is now: the caller works in a context that "
     "it did not choose."},
    {Kind::kCreatedPrimary,
     "A primary context was created in a process in which another library manages contexts. It "
     "takes some 500 MB of the device until exit."},
    {Kind::kQueryCreatedPrimary,
     "A call that only asks, chooses or frees created a primary context, which takes some 500 MB "
     "of the device until exit."},
    {Kind::kTouchedDeviceZero,
     "The primary context of device 0 was created, and nothing was done in it. It takes some 500 "
     "MB of the device until exit."},
    {Kind::kResetPrimary,
     "A primary context was reset while others hold it: their memory, streams and modules are "
     "gone."},
    {Kind::kOverReleasedPrimary,
     "A primary context was released more often than retained: it may be destroyed while others "
     "use it."},
    {Kind::kDestroyedContext,
     "A context of another library was destroyed: its next call in it fails, or crashes."},
    {Kind::kDestroyedWork,
     "Memory, streams and modules of the caller were destroyed with a context that the library "
     "had made current."},
    {Kind::kDestroyedInUse,
     "A context was destroyed that is on the stack of another thread: the next call there fails, "
     "or crashes."},
    {Kind::kUsedDestroyedContext,
     "The handle of a destroyed context was pushed or made current: an error, a crash, or work in "
     "another context at the same address."},
    {Kind::kChangedSetting,
     "A limit, a flag or the cache configuration of another library's context was changed: its "
     "kernels run with the new value."},
    {Kind::kLeftError,
     "The runtime's last error was left to another library, which reports a failure that was none "
     "of its own."},
    {Kind::kBrokeCapture,
     "A stream capture of another library was invalidated: it ends with an error, and there is no "
     "graph."},
    {Kind::kForkedChild,
     "A process that was forked after CUDA's start calls CUDA: every call fails there."},
    {Kind::kAfterShutdown,
     "A call was made after the driver's shutdown: it has no effect, or crashes in another order "
     "of destructors."},
    {Kind::kLeakedReference,
     "A primary context was retained and never released: it stays until exit, with its memory."},
    {Kind::kLeakedContext,
     "A library was unloaded and its context was not destroyed: it stays until exit, and each "
     "loading of the library adds one."},
    {Kind::kForbidden, "The program did what --forbid says that it does not."},
    {Kind::kNoisy,
     "A call of CUDA failed in a library: the driver writes it into the host's error log, whether "
     "or not the library expects it."},
    {Kind::kUsedAfterContext,
     "A call was given a stream, an event, memory or another object of a context that is over: an "
     "error, a crash, or use of what took its place."},
};
static_assert(std::size(kMeanings) == kFindingKinds);

constexpr bool AreMeaningsInOrder() {
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (kMeanings[i].kind != static_cast<Kind>(i)) {
      return false;
    }
  }
  return true;
}
static_assert(AreMeaningsInOrder());

bool BeginsWithOneOf(std::string_view call, std::string_view beginnings) {
  while (!beginnings.empty()) {
    const std::size_t end = std::min(beginnings.find('|'), beginnings.size());
    if (StartsWith(call, beginnings.substr(0, end))) {
      return true;
    }
    beginnings.remove_prefix(std::min(end + 1, beginnings.size()));
  }
  return false;
}

bool Fits(const CallsMeant& of, std::string_view call, int result) {
  call.remove_prefix(StartsWith(call, "cuda") ? 4 : StartsWith(call, "cu") ? 2 : 0);
  return (of.result == 0 || of.result == result) &&
         (*of.calls == '\0' || BeginsWithOneOf(call, of.calls));
}

std::string OnDevice(int device) { return device < 0 ? "" : " on GPU " + std::to_string(device); }

std::string Of(int device) { return device < 0 ? "" : " of GPU " + std::to_string(device); }

// Where the victim's next work is done. `whose`: "host's".
std::string NextLaunch(const NamedFinding& named, const std::string& whose) {
  const ContextNote& before = named.before.note;
  const ContextNote& after = named.after.note;
  if (after.id == 0) {
    return whose + " next call fails with CUDA_ERROR_INVALID_CONTEXT: no context is current";
  }
  if (after.id == before.id) return whose + " next launch runs where it expects";
  return whose + " next launch runs" + OnDevice(after.device) + ", in context " +
         std::to_string(after.id) + (before.id == 0 ? "" : ", not " + std::to_string(before.id));
}

int DeviceOf(const NamedFinding& named) {
  if (named.after.note.device >= 0) return named.after.note.device;
  return named.before.note.device >= 0 ? named.before.note.device : named.finding.device;
}

}  // namespace

std::vector<AdviceRow> AdviceRows() { return {std::begin(kRows), std::end(kRows)}; }

Advice AdviceOf(const Finding& finding) {
  for (const AdviceRow& row : kRows) {
    const bool fits = row.kind == finding.kind && Fits(row.of, finding.call, finding.result) &&
                      (!row.of.purpose || *row.of.purpose == PurposeOf(finding.call));
    if (fits) {
      return row.advice;
    }
  }
  return {};
}

std::string InWords(const Advice& advice) {
  const std::string plain = advice.plain;
  return *advice.cuguest == '\0' ? plain : plain + "; with cuguest: " + advice.cuguest;
}

const char* MeaningOf(FindingKind kind) {
  return kMeanings[static_cast<std::size_t>(kind)].meaning;
}

std::string SectionOf(FindingKind kind) {
  std::string section = Name(kind);
  section[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(section[0])));
  return section;
}

std::string Consequence(const NamedFinding& named, const std::string& victim) {
  const std::string whose = victim.empty() ? "the program's" : victim + "'s";
  const int device = DeviceOf(named);
  switch (named.finding.kind) {
    case FindingKind::kLeakedPush:
      if (named.after.note.id == named.before.note.id) {
        return whose + " next pop takes this entry in place of its own";
      }
      return NextLaunch(named, whose) + "; its next pop takes this entry in place of its own";
    case FindingKind::kExtraPop:
      return NextLaunch(named, whose) + "; its own pop takes an entry of its caller";
    case FindingKind::kReplacedContext:
      return NextLaunch(named, whose) + ", where its streams and modules are invalid";
    case FindingKind::kLeftContext:
      return NextLaunch(named, whose) + ", which it did not choose";
    case FindingKind::kCreatedPrimary:
    case FindingKind::kQueryCreatedPrimary:
    case FindingKind::kTouchedDeviceZero:
      return "some 500 MB" + OnDevice(device) + " until exit, for a context that nobody asked for";
    case FindingKind::kResetPrimary:
      return whose + " memory, streams and modules" + OnDevice(device) +
             " are gone: its next use of one fails";
    case FindingKind::kOverReleasedPrimary:
      return "the primary context" + Of(device) + " may be destroyed while " +
             (victim.empty() ? "others work" : victim + " works") + " in it";
    case FindingKind::kDestroyedContext:
    case FindingKind::kDestroyedInUse:
      return whose + " next call in context " + std::to_string(named.before.note.id) +
             " fails with CUDA_ERROR_CONTEXT_IS_DESTROYED, or crashes";
    case FindingKind::kDestroyedWork:
      return whose + " memory, streams and modules of context " +
             std::to_string(named.before.note.id) + " are gone: its next use of one fails";
    case FindingKind::kUsedDestroyedContext:
      return "an error, a crash, or work in another context at the same address";
    case FindingKind::kChangedSetting:
      return "all kernels of context " + std::to_string(named.before.note.id) + ", also " + whose +
             ", run with the new value";
    case FindingKind::kLeftError:
      return whose + " cudaGetLastError returns " +
             ResultName(named.finding.call, named.finding.result) + ", a failure of another call";
    case FindingKind::kBrokeCapture:
      return whose + " capture ends with an error, and there is no graph";
    case FindingKind::kForkedChild:
      return "every call of CUDA fails in the child";
    case FindingKind::kAfterShutdown:
      return "the call has no effect; in another order of destructors it crashes";
    case FindingKind::kLeakedReference:
      return "the primary context" + Of(device) + " stays until exit, with its memory";
    case FindingKind::kLeakedContext:
      return "the context and what is in it stay" + OnDevice(device) +
             " until exit; each loading of the library adds one";
    case FindingKind::kForbidden:
      return "the process was to do without it (--forbid)";
    case FindingKind::kNoisy:
      return whose + " error log (CUDA_LOG_FILE) has the failure, which is none of its own";
    case FindingKind::kUsedAfterContext:
      return std::string("the ") + Name(named.finding.object.kind) +
             " ended with its context: an error, a crash, or what took its place is used";
  }
  return "";
}

}  // namespace cuguest::audit
