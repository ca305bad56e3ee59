// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/guard/nesting.h"

#include <cstdlib>

#include "lib/core/driver_access.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

namespace nesting {

using Kind = Record::Kind;
using State = Record::State;

const KindCalls* g_calls_of[kKinds] = {};
void (*g_forget_popped)() = nullptr;

namespace {

// No HostScope is at this place.
constexpr unsigned kNobody = records::kNowhere;

// The caller's context: which incarnation it is a kExact record knows, and another one below may.
Incarnation CallerOf(const Record& record, unsigned slot) {
  if (record.kind == Kind::kExact && record.entry_count > 0) {
    return record.entries[record.entry_count - 1];
  };
  const CUcontext caller = record.caller;
  if (caller == record.ours.context) return record.ours;
  while (slot-- > 0) {
    const Record& below = records::At(slot);
    if (!records::IsOpen(below) || below.kind > Kind::kExact) continue;
    if (IsOfNone(below)) break;  // what is below it is not on the stack
    if (below.ours.context == caller) return below.ours;
  }
  return Incarnation::Unknown(caller);
}

}  // namespace

FirstLook Look(const Record& record) noexcept {
  FirstLook look{CUDA_SUCCESS, nullptr, false};
  if (record.kind == Kind::kExact) return look;
  look.code = record.kind == Kind::kElided ? GetCurrent(&look.popped) : Pop(&look.popped);
  look.is_clean = look.code == CUDA_SUCCESS && look.popped == record.ours.context;
  if (!look.is_clean || record.kind == Kind::kElided) return look;
  CUcontext now = nullptr;
  look.is_clean = GetCurrent(&now) == CUDA_SUCCESS && now == record.caller;
  return look;
}

namespace {

// What the records below the one at `slot`, which elided, know to lie beneath its context.
Beneath KnownBeneath(unsigned slot) {
  Beneath known = {};
  CUcontext top = records::At(slot).ours.context;
  while (slot-- > 0) {
    const Record& below = records::At(slot);
    if (!records::IsOpen(below) || below.kind == Kind::kCaptureMode) continue;
    if (below.kind == Kind::kHost || IsOfNone(below) || below.ours.context != top) break;
    if (below.kind == Kind::kElided) continue;
    known.is_all = below.kind == Kind::kExact || below.caller == nullptr;
    if (below.kind == Kind::kExact) {
      for (unsigned i = below.entry_count; i-- > 0;) known.Add(below.entries[i].context);
    } else if (below.caller != nullptr) {
      known.Add(below.caller);
    }
    if (known.is_all || below.kind == Kind::kExact) break;
    top = below.caller;
  }
  return known;
}

Finding Repair(unsigned slot, const Incarnation& caller, FirstLook look) {
  const Record& record = records::At(slot);
  if (record.kind == Kind::kElided) return RepairElided(record.ours, KnownBeneath(slot));
  if (record.kind == Kind::kExact) return CallsOf(record).repair(record);
  if (look.code != CUDA_SUCCESS) {
    look.code = stack::Pop(&look.popped);
    if (look.code != CUDA_SUCCESS && look.code != CUDA_ERROR_INVALID_CONTEXT) {
      return {true, Incident::Kind::kFailed, Incident::Repair::kUnrepaired, look.code,
              record.ours.context};
    }
  }
  return RepairPushed(record.ours, caller, look.popped);
}

// Takes what is left of the record off the stack. What it finds is to be reported.
Finding Leave(unsigned slot, const FirstLook& look) {
  if (look.is_clean) return {};
  const Record& record = records::At(slot);
  const Incarnation caller = CallerOf(record, slot);
  return Concluded(Repair(slot, caller, look), caller);
}

}  // namespace

void PutOut(Record* record, const Finding& finding, unsigned host) noexcept {
  if (record->kind == Kind::kExact) {
    std::free(record->entries);
    record->entries = nullptr;
  }
  // What was found destroyed may have been the caller's.
  const bool may_be_gone = finding.happened && finding.kind == Incident::Kind::kDestroyed;
  const bool is_gone = may_be_gone && !IsOfNone(*record) && !stack::IsAlive(record->ours);
  record->result = is_gone ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
  const CUresult owed = Owed(*record);
  record->owed = owed == CUDA_SUCCESS && host == kNobody ? finding.Code() : owed;
  record->host_slot = host;
  record->state = State::kOut;
  if (record->owner == Record::Owner::kScope) record->owner = Record::Owner::kStaleScope;
}

CUresult Identify(Record* record) noexcept {
  if (record->ours.IsKnown() || IsOfNone(*record)) return CUDA_SUCCESS;
  unsigned long long id = 0;
  const CUresult code = GetId(record->ours.context, &id);
  if (code == CUDA_SUCCESS) record->ours.id = id;
  return code;
}

CUresult EnterAgain(Record* record) noexcept {
  CUresult code = record->result;
  if (code == CUDA_SUCCESS) code = Identify(record);
  if (code == CUDA_SUCCESS) code = Enter(record, nullptr);
  return code;
}

CUresult LeaveFor(unsigned slot, const FirstLook& look, unsigned host) noexcept {
  const Finding finding = Leave(slot, look);
  Record& record = records::At(slot);
  const CUcontext ours = record.ours.context;
  const Location place{record.file, record.line};
  PutOut(&record, finding, host);
  return Report(finding, ours, place);  // a listener may have scopes: `record` is over
}

CUresult CloseAfter(unsigned slot, const FirstLook& look, Location where) noexcept {
  const Finding finding = Leave(slot, look);
  const CUcontext ours = records::At(slot).ours.context;
  const CUresult owed = Owed(records::At(slot));
  records::Free(slot);
  const CUresult code = Report(finding, ours, where);
  return code != CUDA_SUCCESS ? code : owed;
}

namespace {

bool IsPushOnTop() {
  const unsigned top = records::Top(records::Resource::kContextStack);
  return top != records::kNowhere && IsPush(records::At(top));
}

// Of the pushes that lie on top. Whether what was below them is on top now.
bool ForgetPoppedOnTop() {
  if (IsPushOnTop()) ForgetPopped();
  return !IsPushOnTop();
}

}  // namespace

bool IsTopmost(unsigned slot) noexcept {
  const auto resource = records::ResourceOf(records::At(slot));
  if (slot == records::Top(resource)) return true;
  if (ForgetPoppedOnTop()) CloseEnded();  // what they kept open
  return slot == records::Top(resource);
}

CUresult Enter(Record* record, const CUcontext* current) noexcept {
  if (record->kind == Kind::kExact) {
    const CUresult code = CallsOf(*record).enter(record);
    if (code == CUDA_SUCCESS) record->state = State::kLive;
    return code;
  }
  CUcontext caller = nullptr;
  CUresult code = CUDA_SUCCESS;
  if (current != nullptr) {
    caller = *current;
  } else {
    code = GetCurrent(&caller);
  }
  if (code != CUDA_SUCCESS) return code;
  const Incarnation& ours = record->ours;
  const bool elides = !record->always_pushes && caller == ours.context;
  if (elides) {
    code = ours.IsKnown() ? CheckIncarnation(ours) : CUDA_SUCCESS;
  } else {
    code = EnterIncarnation(ours);
  }
  if (code != CUDA_SUCCESS) return code;
  record->caller = caller;
  record->kind = elides ? Kind::kElided : Kind::kPushed;
  record->state = State::kLive;
  return code;
}

CUresult Close(unsigned slot, Location where) noexcept {
  const Record& record = records::At(slot);
  if (record.kind > Kind::kExact) return CallsOf(record).close(slot, where);
  return CloseAfter(slot, Look(record), where);
}

CUresult CloseDisturbed(unsigned slot, CUresult code, CUcontext popped) noexcept {
  const Record& record = records::At(slot);
  return CloseAfter(slot, {code, popped, false}, {record.file, record.line});
}

namespace {

// Whether the last record is of a scope that is live and its owner's to end: then nothing below it
// can be closed.
bool IsSettled() {
  const ThisThread& here = *CallingThread();
  if (here.depth == 0) return true;
  if (here.capture_modes != 0 || ThisThread::HasMail()) return false;
  const Record& last = records::At(here.depth - 1);
  return last.state == State::kLive && !IsPush(last);
}

// Closes one that has ended and is on top. Whether there was one.
bool CloseOneEnded() {
  records::DropFree();
  records::ReadMail();
  unsigned ended = records::kNowhere;
  for (const auto resource : {records::Resource::kContextStack, records::Resource::kCaptureMode}) {
    const unsigned top = records::Top(resource);
    if (top != records::kNowhere && records::At(top).state == State::kEnded) ended = top;
  }
  if (ended == records::kNowhere) return false;
  const Record& record = records::At(ended);
  static_cast<void>(Close(ended, {record.file, record.line}));
  return true;
}

// Whether pushes alone keep open what has ended: somebody else may have popped them.
bool WaitsForPushes() {
  bool has_push = false;
  for (unsigned slot = records::Depth(); slot-- > 0;) {
    const Record& record = records::At(slot);
    if (!records::IsOpen(record) || record.kind == Kind::kCaptureMode) continue;
    if (!IsPush(record)) return has_push && record.state == State::kEnded;
    has_push = true;
  }
  return false;
}

}  // namespace

bool CloseEnded() noexcept {
  records::ForgetParents();
  if (IsSettled()) return false;
  bool has_closed = false;
  do {
    while (CloseOneEnded()) has_closed = true;
  } while (WaitsForPushes() && ForgetPoppedOnTop());
  return has_closed;
}

namespace {

// Outside until its scope ends or is moved.
void GiveUp(Record* record, CUresult why) {
  record->state = State::kGone;
  record->result = why;
}

// What LeaveFor() took out for nobody, once the listeners have returned: nullptr if one of them has
// ended the scope, or has left another open above its place, so that it cannot come back.
Record* StillOut(unsigned slot, unsigned long long serial) {
  Record* const record = records::Find(slot, serial);
  if (record == nullptr || record->state != State::kOut) return nullptr;
  const unsigned top = records::Top(records::Resource::kContextStack);
  if (top == records::kNowhere || top < slot) return record;
  GiveUp(record, CUDA_ERROR_ILLEGAL_STATE);
  return nullptr;
}

// Enters what LeaveFor() left.
CUresult Return(Record* record) {
  const CUresult code = EnterAgain(record);
  if (code != CUDA_SUCCESS) GiveUp(record, code);
  return code;
}

}  // namespace

CUresult Move(unsigned slot, const Incarnation& to, Location where) noexcept {
  Record* record = &records::At(slot);
  const Incarnation before = record->ours;
  const CUcontext caller = record->caller;
  if (to.context == before.context) {
    // One driver call says that it is there already, if its handle is unknown or has an id.
    CUcontext top = nullptr;
    unsigned long long id = 0;
    const bool has_id = to.IsKnown() && to.id != 0;
    bool is_there = has_id ? GetId(nullptr, &id) == CUDA_SUCCESS && id == to.id
                           : GetCurrent(&top) == CUDA_SUCCESS && top == to.context;
    if (is_there && to.IsKnown() && !has_id) is_there = CheckIncarnation(to) == CUDA_SUCCESS;
    if (is_there) {
      record->ours = to;
      record->file = where.file;
      record->line = where.line;
      return CUDA_SUCCESS;
    }
  }
  CUresult code = to.IsKnown() ? CheckIncarnation(to) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;  // before anything is done
  const FirstLook look = Look(*record);
  const unsigned long long serial = record->serial;
  static_cast<void>(LeaveFor(slot, look, kNobody));
  record = StillOut(slot, serial);
  if (record == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  record->ours = look.is_clean ? Incarnation::Unknown(to.context) : to;  // checked just now
  code = Enter(record, look.is_clean ? &caller : nullptr);
  record->ours = to;
  if (code == CUDA_SUCCESS) {
    record->file = where.file;
    record->line = where.line;
    return code;
  }
  record->ours = before;
  static_cast<void>(Return(record));
  return code;
}

CUresult Reassert(unsigned slot) noexcept {
  const Record& record = records::At(slot);
  if (record.kind == Kind::kCaptureMode) return CallsOf(record).reassert(slot);
  const unsigned long long serial = record.serial;
  CUcontext top = nullptr;
  CUresult code = CUDA_SUCCESS;
  if (record.kind != Kind::kExact && GetCurrent(&top) == CUDA_SUCCESS &&
      top == record.ours.context) {
    if (record.ours.IsKnown()) code = CheckIncarnation(record.ours);
    if (code == CUDA_SUCCESS) return code;
  }
  static_cast<void>(LeaveFor(slot, Look(record), kNobody));
  Record* const out = StillOut(slot, serial);
  if (out == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (code == CUDA_SUCCESS) return Return(out);
  GiveUp(out, code);  // there is nothing to come back into
  return code;
}

}  // namespace nesting

const char* Advice(CUresult code) noexcept {
  switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
      return "no context was given";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "the context that the ContextRef names was destroyed or reset";
    case CUDA_ERROR_NOT_INITIALIZED:
      return IsForkedChild() ? "this process was forked from one that used CUDA"
                             : "CUDA is not initialised in this process, so no context can be "
                               "alive here: was it forked from one that used CUDA?";
    case CUDA_ERROR_NOT_PERMITTED:
      return "called from inside a stream callback or host function";
    case CUDA_ERROR_NOT_READY:
      return "the scope has ended; its own thread restores the stack when the scopes inside it "
             "have ended, too";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "the stack is too deep to take apart, or holds an entry whose context is destroyed";
    case CUDA_ERROR_ILLEGAL_STATE:
      return "the scope has ended, another one is inside it, or it belongs to another thread";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "no memory: the driver's, or the host's where over 16 scopes are nested";
    default:
      return "";
  }
}

CUGUEST_END_INTERNAL_NAMESPACE
