// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/finding.h"

#include <cstdio>
#include <iterator>

namespace cuguest::audit {
namespace {

struct KindRow {
  FindingKind kind;
  const char* name;
  const char* identifier;
};

constexpr KindRow kKinds[] = {
    {FindingKind::kLeakedPush, "leaked push", "leaked-push"},
    {FindingKind::kExtraPop, "extra pop", "extra-pop"},
    {FindingKind::kReplacedContext, "replaced current context", "replaced-context"},
    {FindingKind::kLeftContext, "left a context current", "left-context"},
    {FindingKind::kCreatedPrimary, "created a primary context", "created-primary"},
    {FindingKind::kQueryCreatedPrimary, "created a primary as a side effect",
     "query-created-primary"},
    {FindingKind::kTouchedDeviceZero, "touched device 0 without using it", "touched-device-zero"},
    {FindingKind::kResetPrimary, "reset a primary context that is held", "reset-primary"},
    {FindingKind::kOverReleasedPrimary, "released a primary context too often",
     "over-released-primary"},
    {FindingKind::kDestroyedContext, "destroyed a context of another's", "destroyed-context"},
    {FindingKind::kDestroyedWork, "destroyed another's work with a context", "destroyed-work"},
    {FindingKind::kDestroyedInUse, "destroyed a context on another thread's stack",
     "destroyed-in-use"},
    {FindingKind::kUsedDestroyedContext, "used a destroyed context", "used-destroyed-context"},
    {FindingKind::kChangedSetting, "changed a setting of another's context", "changed-setting"},
    {FindingKind::kLeftError, "left the runtime's last error", "left-error"},
    {FindingKind::kBrokeCapture, "broke a stream capture", "broke-capture"},
    {FindingKind::kForkedChild, "device work in a forked child", "forked-child"},
    {FindingKind::kAfterShutdown, "call after the driver's shutdown", "after-shutdown"},
    {FindingKind::kLeakedReference, "never released a primary context", "leaked-reference"},
    {FindingKind::kLeakedContext, "never destroyed a context", "leaked-context"},
    {FindingKind::kForbidden, "did what is forbidden", "forbidden-use"},
    {FindingKind::kNoisy, "made a call that failed", "noisy-call"},
    {FindingKind::kUsedAfterContext, "used what was left of a context", "used-after-context"},
};
static_assert(std::size(kKinds) == kFindingKinds);

constexpr const char* kObjects[] = {
    "nothing", "stream",   "event", "device memory", "page-locked memory",
    "module",  "function", "array", "texture",       "surface"};
static_assert(std::size(kObjects) == kObjectKinds);

constexpr bool InOrder() {
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (kKinds[i].kind != static_cast<FindingKind>(i)) {
      return false;
    }
  }
  return true;
}
static_assert(InOrder());

std::string Hexadecimal(std::uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string PlaceText(std::uint32_t object, std::uint64_t offset,
                      const std::vector<Object>& objects) {
  if (object == 0 || object >= objects.size()) {
    return offset == 0 ? "unknown" : Hexadecimal(offset);
  }
  return objects[object].path + "+" + Hexadecimal(offset);
}

std::string ContextText(const ContextNote& context, const std::vector<Object>& objects) {
  if (context.id == 0) {
    return "none";
  }
  std::string text = std::to_string(context.id) + (context.primary ? " (primary of" : " (of");
  text += context.device < 0 ? " an unknown device" : " device " + std::to_string(context.device);
  if (context.creator.object != 0) {
    text += ", by " + PlaceText(context.creator.object, context.creator.offset, objects);
  }
  return text + ")";
}

void AddChain(const char* title, const Chain& chain, const std::vector<Object>& objects,
              std::string* text) {
  *text += std::string("  ") + title + "\n";
  for (const Frame& frame : chain) {
    *text += "    " + PlaceText(frame.object, frame.offset, objects) + "\n";
  }
}

}  // namespace

const char* Name(FindingKind kind) { return kKinds[static_cast<std::size_t>(kind)].name; }

const char* Name(ObjectKind kind) { return kObjects[static_cast<std::size_t>(kind)]; }

const char* Identifier(FindingKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].identifier;
}

std::string ThreadText(const Finding& finding) {
  std::string text = "thread " + std::to_string(finding.thread);
  if (finding.os_thread != nullptr) {
    text +=
        " (tid " + std::to_string(finding.os_thread->id) + ", \"" + finding.os_thread->name + "\")";
  }
  return text;
}

std::string Text(const Finding& finding, const std::vector<Object>& objects) {
  std::string text = std::string(Identifier(finding.kind)) + " by " + finding.call + "\n";
  text += "  culprit " + PlaceText(finding.culprit.object, finding.culprit.offset, objects) + "\n";
  text += "  victim " + PlaceText(finding.victim.object, finding.victim.offset, objects) + "\n";
  text += "  before " + ContextText(finding.before, objects) + "\n";
  text += "  after " + ContextText(finding.after, objects) + "\n";
  text += "  count " + std::to_string(finding.count) + ", first in " + ThreadText(finding) +
          " at " + std::to_string(finding.time_ns) + " ns\n";
  text += "  result " + std::to_string(finding.result) + ", device " +
          std::to_string(finding.device) + ", depth " + std::to_string(finding.depth) + "\n";
  if (finding.setting >= 0 || finding.kind == FindingKind::kChangedSetting) {
    text += "  setting " + std::to_string(finding.setting) + ", " + Hexadecimal(finding.value) +
            " instead of " + Hexadecimal(finding.old_value) + "\n";
  }
  if (finding.object.kind != ObjectKind::kNone) {
    const ObjectNote& object = finding.object;
    text += std::string("  object ") + Name(object.kind) + " by " +
            PlaceText(object.maker.object, object.maker.offset, objects) + "\n";
    if (!object.ended_by.empty()) {
      text += "  ended by " + object.ended_by + " of " +
              PlaceText(object.ender.object, object.ender.offset, objects) + " in thread " +
              std::to_string(object.ended_on) + " at " + std::to_string(object.ended_ns) + " ns\n";
    }
  }
  if (!finding.cause.call.empty()) {
    text += std::string("  after ") + Identifier(finding.cause.kind) + " by " + finding.cause.call +
            " of " +
            PlaceText(finding.cause.culprit.object, finding.cause.culprit.offset, objects) + "\n";
  }
  AddChain("chain", *finding.chain, objects, &text);
  if (!finding.victim_chain->empty()) {
    AddChain("victim's chain", *finding.victim_chain, objects, &text);
  }
  return text;
}

}  // namespace cuguest::audit
