// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/advice.h"

#include <cctype>
#include <iterator>

#include "audit/command/result_name.h"

namespace cuguest::audit {

namespace {

struct Row {
  FindingKind kind;
  Advice advice;
};

constexpr Row kRows[] = {
    {FindingKind::kLeakedPush, {"pop on every path, also after cuCtxCreate", "ContextGuard"}},
    {FindingKind::kExtraPop, {"pop only if the push succeeded", "ContextGuard"}},
    {FindingKind::kReplacedContext,
     {"push the context, work, pop it; cudaSetDevice does not restore one",
      "ContextGuard, or runtime::CalleeScope around a callee"}},
    {FindingKind::kLeftContext,
     {"pop it, or cuCtxSetCurrent(nullptr)", "ContextGuard, or NoContextGuard around a callee"}},
    {FindingKind::kCreatedPrimary,
     {"ask the stream or pointer for its context, and push that",
      "AcquireFromStream, AcquireFromPointer"}},
    {FindingKind::kQueryCreatedPrimary,
     {"ask cuDevicePrimaryCtxGetState first", "runtime::DeviceGuard, IsActive"}},
    {FindingKind::kTouchedDeviceZero,
     {"cudaSetDevice first on every thread, or CUDA_VISIBLE_DEVICES", "ContextScope"}},
    {FindingKind::kResetPrimary,
     {"leave out the call; the process's end cleans up", "PrimaryContext"}},
    {FindingKind::kOverReleasedPrimary, {"one owner for each reference", "PrimaryContext"}},
    {FindingKind::kDestroyedContext, {"destroy only what you created", "SharedContext"}},
    {FindingKind::kDestroyedWork,
     {"push the caller's context around each callback", "ContextGuard"}},
    {FindingKind::kDestroyedInUse,
     {"join the threads first, or let each pop the context", "ContextScope, SharedContext"}},
    {FindingKind::kUsedDestroyedContext,
     {"compare cuCtxGetId with the number that you noted", "ContextRef"}},
    {FindingKind::kChangedSetting, {"set the old value again", "SharedContext::Create"}},
    {FindingKind::kLeftError,
     {"cudaGetLastError after a call that may fail", "runtime::LastErrorScope"}},
    {FindingKind::kBrokeCapture,
     {"cuThreadExchangeStreamCaptureMode around the call", "CaptureModeGuard"}},
    {FindingKind::kForkedChild,
     {"start processes by spawn, or initialise CUDA after the fork", "Driver::GetInitialized"}},
    {FindingKind::kAfterShutdown,
     {"free before main returns, and nothing from a static destructor",
      "its objects skip such calls"}},
    {FindingKind::kLeakedReference, {"release once for each retain", "PrimaryContext"}},
    {FindingKind::kLeakedContext,
     {"destroy the context before the library is unloaded", "SharedContext"}},
    {FindingKind::kForbidden, {"defer the call until CUDA is needed", "Driver::GetInitialized"}},
    {FindingKind::kNoisy,
     {"ask first what the call needs, by one that cannot fail", "its calls do not fail"}},
    {FindingKind::kUsedAfterContext,
     {"free what a context owns before it ends; else compare cuCtxGetId, and drop it unused",
      "PerContext, Stream, Event, PinnedBuffer"}},
};
static_assert(std::size(kRows) == kFindingKinds);

constexpr bool InOrder() {
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (kRows[i].kind != static_cast<FindingKind>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

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

Advice AdviceOf(FindingKind kind) { return kRows[static_cast<std::size_t>(kind)].advice; }

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
