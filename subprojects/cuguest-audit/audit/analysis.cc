// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "audit/call_rule.h"
#include "audit/captures.h"
#include "audit/cause.h"
#include "audit/contexts.h"
#include "audit/ledger.h"
#include "audit/party.h"
#include "audit/primaries.h"
#include "audit/settings.h"
#include "audit/thread_model.h"

namespace cuguest::audit {
namespace {

using CausePointer = std::shared_ptr<const Cause>;

constexpr int kNotInitialized = 3;
constexpr int kDeinitialized = 4;
constexpr int kNotReady = 600;
constexpr std::size_t kMakerLimit = 4096;  // the collector numbers no more
constexpr int kWrongThread = 908;          // to end a capture from: it goes on

// Stays in the runtime's last error, whatever is called: the process has lost its device.
bool IsSticky(int result) {
  return result == 700 || result == 702 || (result >= 709 && result < 720);
}

// What the runtime does with a program's kernels at its end, also after the driver's.
bool IsUnload(const std::string& call) {
  return call == "cuLibraryUnload" || call == "cuModuleUnload";
}

// Whether the call took one entry from the stack.
bool Pops(CallKind kind, const Event& event) {
  const bool changed = event.before != event.after;
  if (event.result == 0 && kind == CallKind::kPop) {
    return true;
  }
  if (event.result == 0 && kind == CallKind::kDestroy) {
    // Also where the next entry is the same context; cuCtxDetach only if it was the last reference.
    return event.before == event.context &&
           (changed || event.name.find("Detach") == std::string::npos);
  }
  if (event.result == 0 && kind == CallKind::kSetCurrent && event.context == 0) {
    return true;
  }
  return changed && (event.after == 0 || event.name == "cudaSetValidDevices");
}

}  // namespace

class Analysis::State {
 public:
  State(bool forked, std::string program) : forked_(forked), program_(std::move(program)) {}

  void OnObject(std::uint32_t index, const Object& object) { parties_.AddObject(index, object); }
  void OnEvent(const Event& event);
  // `returned`: as if all that was called had returned.
  std::vector<Finding> Findings(bool returned) const;
  std::vector<Finding> Unsettled() const;
  std::vector<Finding> Leaks() const;
  const std::vector<FirstUse>& FirstUses() const { return first_uses_; }
  std::uint64_t Dropped() const { return ledger_.dropped(); }
  const std::set<std::string>& Limits() const { return ledger_.limits(); }
  std::vector<Finding> Noise() const { return noise_.Findings(habits_); }
  std::uint64_t DroppedNoise() const { return noise_.dropped(); }
  std::vector<ContextId> Stack(std::uint32_t thread) const;
  ContextNote Context(ContextId id) const { return contexts_.NoteOf(id); }
  const std::vector<Object>& objects() const { return parties_.objects(); }

 private:
  struct Thread {
    Thread(const Contexts* contexts, const Habits* habits, Ledger* ledger)
        : model(contexts, habits, ledger) {}

    ThreadModel model;
    std::string entered;  // the call that was given a destroyed handle and has not returned
    CausePointer error;   // the call that set the runtime's last error; null: nothing is set
    std::uint64_t error_activation = 0;
    CausePointer released;  // whose reference a runtime gave back in the event before; or null
  };

  CausePointer CauseOf(const Event& event) const;
  void NoteScript(const Cause& cause);
  [[nodiscard]] bool IsProgram(PartyId party) const {
    return party == script_ || party == parties_.OfPath(program_);
  }
  void NoteFirstUse(const Event& event, const Cause& cause);
  [[nodiscard]] bool IsUnloaded(std::uint32_t object) const;
  void EndThread(std::uint32_t number);
  void OnWork(const Event& event, const CausePointer& cause, const ThreadModel& model);
  void OnContext(const Event& event, const CausePointer& cause);
  void EndPrimary(int device, const CausePointer& cause);
  bool ChargeOf(ContextId context, Charge* charge) const;
  std::vector<Victim> OthersWithContexts(const Cause& cause, int device) const;
  void OnCall(const Event& event, const CausePointer& cause, Thread* thread);
  void OnResult(CallKind kind, const Cause& cause);
  void NoteNoise(CallKind kind, const Cause& cause);
  void OnDestroyedHandle(ContextId context, const Cause& cause);
  void OnStale(const Event& event, const Cause& cause);
  // Of what the call destroys, before it does: the call that had put it on a stack, or null. For
  // some sources nothing is current behind it.
  CausePointer PutBefore(CallKind kind, const Event& event, const Cause& cause,
                         const ThreadModel& model) const;
  CausePointer PrimaryPutBy(int device, const Cause& cause) const;
  CausePointer UserOf(int device, const Cause& cause, const CausePointer& released) const;
  // `put`: what PutBefore() said.
  void OnDestruction(ContextId context, const CausePointer& cause, const CausePointer& put);
  void AddLostWork(ContextId context, const ContextFacts& facts, const Cause& cause);
  void OnLastError(CallKind kind, const Event& event, const CausePointer& cause, Thread* thread);
  static void ChangeStack(CallKind kind, const Event& event, const CausePointer& cause,
                          ThreadModel* model);
  void Add(Finding finding) { ledger_.Add({std::move(finding), {}}); }
  bool IsOpen(std::uint32_t thread, std::uint64_t activation) const;
  int DeviceOf(const Event& event) const;

  const bool forked_;
  const std::string program_;
  bool ended_ = false;
  PartyId script_ = 0;  // 0: the program is none, as far as is known
  Parties parties_;
  Contexts contexts_;
  Habits habits_;
  Ledger ledger_;
  Ledger noise_;
  Captures captures_{&ledger_};
  Settings settings_{&contexts_, &ledger_};
  Primaries primaries_{&contexts_, &ledger_};
  std::map<std::uint32_t, Thread> threads_;
  std::set<std::uint32_t> unloaded_;              // objects
  std::map<std::uint64_t, CausePointer> makers_;  // by number
  std::vector<FirstUse> first_uses_;
  std::map<std::pair<FirstUse::What, int>, std::set<std::string>> used_first_;  // names of calls
};

void Analysis::State::OnEvent(const Event& event) {
  if (event.kind == EventKind::kThreadEnd) {
    EndThread(event.thread);
    return;
  }
  if (event.kind == EventKind::kProcessEnd) {
    ended_ = true;  // what libraries do afterwards is to clean up
    return;
  }
  if (event.kind == EventKind::kUnloaded) {
    unloaded_.insert(static_cast<std::uint32_t>(event.value));
    return;
  }
  const CausePointer cause = CauseOf(event);
  if (event.kind == EventKind::kMade) {
    if (makers_.size() < kMakerLimit) {
      makers_[event.value] = cause;
    }
    return;
  }
  NoteScript(*cause);
  NoteFirstUse(event, *cause);
  if (event.kind == EventKind::kInitialized) {
    return;
  }
  Thread& thread = threads_.try_emplace(event.thread, &contexts_, &habits_, &ledger_).first->second;
  const bool has_before = event.kind == EventKind::kCall || event.kind == EventKind::kCheck;
  thread.model.Arrive(has_before ? event.before : ThreadModel::kUnknown, *cause);
  if (event.kind == EventKind::kCheck || event.kind == EventKind::kUsed) {
    thread.model.Work(*cause);
  }
  switch (event.kind) {
    case EventKind::kContext:
      OnContext(event, cause);
      break;
    case EventKind::kUsed:
      OnWork(event, cause, thread.model);
      break;
    case EventKind::kEntered:
      OnDestroyedHandle(event.context, *cause);
      thread.entered = event.name;
      break;
    case EventKind::kStale:
      OnStale(event, *cause);
      break;
    case EventKind::kCall:
      OnCall(event, cause, &thread);
      break;
    default:
      break;
  }
}

// With the same object for the same code, wherever it is loaded.
CausePointer Analysis::State::CauseOf(const Event& event) const {
  auto cause = std::make_shared<Cause>(event, parties_);
  cause->at_end = ended_;
  const auto is_copy = [&](const Frame& frame) {
    return parties_.Canonical(frame.object) != frame.object;
  };
  if (std::any_of(cause->chain->begin(), cause->chain->end(), is_copy)) {
    auto chain = std::make_shared<Chain>(*cause->chain);
    for (Frame& frame : *chain) {
      frame.object = parties_.Canonical(frame.object);
    }
    cause->callers = CallersOf(*chain, parties_);
    cause->chain = std::move(chain);
  }
  return cause;
}

// The program is an interpreter then.
void Analysis::State::NoteScript(const Cause& cause) {
  if (script_ == 0 && cause.thread == 1 && !cause.callers.empty() &&
      parties_.IsPython(cause.PlaceOf(cause.callers.front().frame).object)) {
    script_ = cause.callers.front().party;
  }
}

void Analysis::State::NoteFirstUse(const Event& event, const Cause& cause) {
  FirstUse::What what = FirstUse::kCall;
  if (event.kind == EventKind::kInitialized) {
    what = FirstUse::kInitialized;
  } else if (event.kind == EventKind::kContext) {
    what = FirstUse::kContext;
  } else if (event.kind != EventKind::kCall && event.kind != EventKind::kUsed) {
    return;
  }
  const int device = what == FirstUse::kContext ? event.device : -1;
  if (cause.party() == 0) {
    return;
  }
  // Most events are of a call that is known.
  std::set<std::string>& known = used_first_[{what, device}];
  if (known.find(event.name) != known.end()) {
    return;
  }
  known.insert(event.name);
  Finding finding = FindingOf(FindingKind::kForbidden, cause);
  finding.device = device;
  if (what == FirstUse::kContext) {
    finding.after.id = event.context;
    finding.after.device = event.device;
    finding.after.primary = event.primary;
    finding.after.creator = cause.place();
  }
  first_uses_.push_back({what, std::move(finding)});
}

// A library that is loaded again is there.
bool Analysis::State::IsUnloaded(std::uint32_t object) const {
  for (std::uint32_t i = 1; i < objects().size(); ++i) {
    if (parties_.Canonical(i) == object && unloaded_.count(i) == 0) {
      return false;
    }
  }
  return object != 0;
}

std::vector<Finding> Analysis::State::Leaks() const {
  std::vector<Finding> leaks = primaries_.Leaks();
  contexts_.ForEachLiving([&](ContextId id, const ContextFacts& facts) {
    if (facts.primary || facts.made == nullptr || !IsUnloaded(facts.made->place().object)) {
      return;
    }
    Finding finding = FindingOf(FindingKind::kLeakedContext, *facts.made);
    finding.device = facts.device;
    finding.before = contexts_.NoteOf(id);
    leaks.push_back(std::move(finding));
  });
  return leaks;
}

void Analysis::State::OnWork(const Event& event, const CausePointer& cause,
                             const ThreadModel& model) {
  const CallClass call_class = RuleOf(event.name).call_class;
  if (call_class == CallClass::kFree) {
    contexts_.RemoveWorker(event.context, cause->party());
    return;
  }
  contexts_.SetUsed(event.context);
  if (call_class == CallClass::kMake && cause->party() != 0) {
    const CausePointer put = model.PutBy(event.context);
    const bool unaware =
        put != nullptr && put->party() != cause->party() && put->Has(cause->party());
    if (!contexts_.AddWorker(event.context, cause, unaware)) {
      ledger_.Reach("more than " + std::to_string(kWorkerLimit) +
                    " libraries worked in one context: what others lose with it is not found");
    }
  }
}

void Analysis::State::EndThread(std::uint32_t number) {
  const auto found = threads_.find(number);
  if (found != threads_.end()) {
    found->second.model.End();
    threads_.erase(found);
  }
  ledger_.EndThread(number, habits_);
  habits_.ForgetThread(number);
}

void Analysis::State::OnContext(const Event& event, const CausePointer& cause) {
  const ContextId former = event.primary ? contexts_.PrimaryOf(event.device) : 0;
  Charge charge;
  if (former == event.context && former != 0) {
    return;  // told twice
  }
  if (former != 0 && contexts_.Find(former)->destroyed == nullptr && ChargeOf(former, &charge)) {
    ledger_.Add(charge);
  }
  contexts_.Make(event.context, event.device, event.primary, cause);
  if (former != 0) {
    settings_.Forget(former, [&](auto... where) { return IsOpen(where...); });
  }
}

// A primary context, which is known.
bool Analysis::State::ChargeOf(ContextId context, Charge* charge) const {
  const ContextFacts& facts = *contexts_.Find(context);
  std::vector<Victim> others;
  if (facts.made != nullptr) {
    others = OthersWithContexts(*facts.made, facts.device);
  }
  return Primaries::ChargeOf(facts, contexts_.NoteOf(context), std::move(others), charge);
}

// In a thread of a library's own nobody called. Who minds then is who had made contexts before,
// first those of the device: a framework that is there first is a host to all that comes later. The
// program may do on its threads what it likes.
std::vector<Victim> Analysis::State::OthersWithContexts(const Cause& cause, int device) const {
  std::vector<Victim> others;
  const bool is_called =
      std::any_of(cause.callers.begin(), cause.callers.end(),
                  [&](const Caller& caller) { return caller.party != cause.party(); });
  if (is_called || cause.party() == 0 || IsProgram(cause.party())) {
    return others;
  }
  const auto is_known = [&](PartyId party) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Victim& other) { return other.party == party; });
  };
  for (const bool is_same_device : {true, false}) {
    contexts_.ForEachLiving([&](ContextId, const ContextFacts& facts) {
      if (facts.made == nullptr || facts.made->time_ns > cause.time_ns ||
          facts.made->party() == 0 || facts.made->party() == cause.party() ||
          (facts.device == device) != is_same_device ||
          !ManagesContexts(KindOf(facts.made->call)) || is_known(facts.made->party())) {
        return;
      }
      others.push_back({facts.made->party(), facts.made->place(), cause.chain->size(),
                        Minds::kIfManages, facts.made->chain});
    });
  }
  return others;
}

// A party that makes it and releases it again leaves nothing behind.
void Analysis::State::EndPrimary(int device, const CausePointer& cause) {
  const ContextId context = contexts_.PrimaryOf(device);
  const ContextFacts* facts = contexts_.Find(context);
  if (facts == nullptr || facts->destroyed != nullptr) {
    return;
  }
  Charge charge;
  if (facts->made != nullptr && !facts->made->Has(cause->party()) && ChargeOf(context, &charge)) {
    ledger_.Add(charge);
  }
  settings_.Forget(context, [&](auto... where) { return IsOpen(where...); });
  contexts_.Destroy(context, cause);
}

void Analysis::State::OnCall(const Event& event, const CausePointer& cause, Thread* thread) {
  const CallKind kind = KindOf(event.name);
  const bool succeeded = event.result == 0;
  if (ManagesContexts(kind) && cause->party() != 0 && event.runtime == Runtime::kNone) {
    habits_.SetManages(cause->party(), event.thread);
  }
  const bool is_known = std::exchange(thread->entered, "") == event.name;
  const CausePointer released = std::exchange(thread->released, nullptr);
  if ((kind == CallKind::kPush || kind == CallKind::kSetCurrent) && !is_known) {
    const ContextFacts* facts = contexts_.Find(event.context);
    if (facts != nullptr && facts->destroyed != nullptr && !facts->primary) {
      OnDestroyedHandle(event.context, *cause);
    }
  }
  const CausePointer put = PutBefore(kind, event, *cause, thread->model);
  ChangeStack(kind, event, cause, &thread->model);
  OnResult(kind, *cause);
  NoteNoise(kind, *cause);
  OnLastError(kind, event, cause, thread);
  if (kind == CallKind::kEndCapture && event.result != kWrongThread) {
    captures_.End(event);
  }
  if (!succeeded) {
    return;
  }
  switch (kind) {
    case CallKind::kDestroy:
      if (event.context != 0 &&
          (event.name.find("Detach") == std::string::npos || event.after != event.before)) {
        OnDestruction(event.context, cause, put);
      }
      break;
    case CallKind::kRetainPrimary:
      primaries_.Retain(DeviceOf(event), event.runtime, cause);
      break;
    case CallKind::kReleasePrimary:
      if (event.runtime != Runtime::kNone) {
        thread->released = primaries_.HolderOf(DeviceOf(event), event.runtime, cause->party());
      }
      if (!ended_ && primaries_.Release(DeviceOf(event), event.runtime, *cause)) {
        EndPrimary(DeviceOf(event), cause);
      }
      break;
    case CallKind::kResetPrimary:
      if (!ended_) {
        const CausePointer user = put != nullptr ? put : UserOf(DeviceOf(event), *cause, released);
        primaries_.Reset(DeviceOf(event), *cause, user.get());
        contexts_.Reset(contexts_.PrimaryOf(DeviceOf(event)), cause);
      }
      break;
    case CallKind::kSetSetting: {
      if (ended_) {
        break;
      }
      ContextId context = event.context != 0 ? event.context : event.after;
      if (event.name.find("Primary") != std::string::npos) {
        context = contexts_.PrimaryOf(event.device);
      }
      settings_.Set(context, event, *cause, thread->model.activation());
      break;
    }
    case CallKind::kBeginCapture:
      captures_.Begin(event, cause);
      break;
    default:
      break;
  }
}

CausePointer Analysis::State::PutBefore(CallKind kind, const Event& event, const Cause& cause,
                                        const ThreadModel& model) const {
  if (kind == CallKind::kDestroy) {
    return model.PutBy(event.context);
  }
  return kind == CallKind::kResetPrimary ? PrimaryPutBy(DeviceOf(event), cause) : nullptr;
}

// By others; in the thread itself only by one who called: a library's is its caller's to reset.
CausePointer Analysis::State::PrimaryPutBy(int device, const Cause& cause) const {
  const ContextId context = contexts_.PrimaryOf(device);
  for (const auto& [number, thread] : threads_) {
    CausePointer put = thread.model.PutBy(context);
    if (put != nullptr && put->party() != 0 && put->party() != cause.party() &&
        (number != cause.thread || cause.Has(put->party()))) {
      return put;
    }
  }
  return nullptr;
}

// Another party than `cause`'s that used the primary context and was not called by that: whose
// reference the runtime has just given back, or who works there.
CausePointer Analysis::State::UserOf(int device, const Cause& cause,
                                     const CausePointer& released) const {
  const auto is_others = [&](const Cause& user) {
    return user.party() != 0 && user.party() != cause.party() && !user.Has(cause.party());
  };
  if (released != nullptr && is_others(*released)) {
    return released;
  }
  const ContextFacts* facts = contexts_.Find(contexts_.PrimaryOf(device));
  if (facts != nullptr) {
    for (const auto& [party, worker] : facts->workers) {
      if (is_others(*worker.first)) {
        return worker.first;
      }
    }
  }
  return nullptr;
}

void Analysis::State::ChangeStack(CallKind kind, const Event& event, const CausePointer& cause,
                                  ThreadModel* model) {
  const bool changed = event.before != event.after;
  if (event.result == 0 && (kind == CallKind::kPush || kind == CallKind::kCreate)) {
    const bool is_named = kind == CallKind::kPush && event.context != 0;
    model->Push(is_named ? event.context : event.after, true, cause);
  } else if (Pops(kind, event)) {
    model->Pop(cause);
  } else if (changed && event.before == 0) {
    model->Push(event.after, false, cause);
  } else if (changed && model->current() != event.after) {
    model->Replace(event.after, cause);
  }
  model->Reconcile(event.after);
}

void Analysis::State::OnResult(CallKind kind, const Cause& cause) {
  if (cause.party() == 0 || kind == CallKind::kGetLastError || kind == CallKind::kPeekLastError) {
    return;
  }
  if (cause.result == kDeinitialized) {
    if (!IsUnload(cause.call)) {
      Add(FindingOf(FindingKind::kAfterShutdown, cause));
    }
  } else if (cause.result == kNotInitialized && forked_) {
    Add(FindingOf(FindingKind::kForkedChild, cause));
  } else if (kind != CallKind::kAskForCapture && kind != CallKind::kEndCapture) {
    captures_.Fail(cause);
  }
}

// The program's own log shows what the program did, and has ended with the driver.
void Analysis::State::NoteNoise(CallKind kind, const Cause& cause) {
  if (cause.result == 0 || cause.result == kNotReady || cause.result == kDeinitialized ||
      cause.party() == 0 || kind == CallKind::kGetLastError || kind == CallKind::kPeekLastError ||
      IsProgram(cause.party())) {
    return;
  }
  Finding finding = FindingOf(FindingKind::kNoisy, cause);
  if (cause.callers.size() > 1) {
    const Caller& caller = cause.callers[cause.callers.size() - 2];
    finding.victim = cause.PlaceOf(caller.frame);
    finding.victim_frame = caller.frame;
  }
  noise_.Add({std::move(finding), {}});
}

void Analysis::State::OnDestroyedHandle(ContextId context, const Cause& cause) {
  if (cause.party() == 0) {
    return;
  }
  const ContextFacts* facts = contexts_.Find(context);
  if (contexts_.IsForgotten(context)) {
    ledger_.Reach("a context was used after " + std::to_string(kDestroyedLimit) +
                  " others had been destroyed since its end: who destroyed it is not known");
  }
  const Cause* destroyed = facts != nullptr ? facts->destroyed.get() : nullptr;
  // Whose fault it is: who destroyed what another had made and still counts on did it.
  if (destroyed != nullptr && facts->made != nullptr && destroyed->party() != 0 &&
      destroyed->party() != cause.party() && !facts->made->Has(destroyed->party())) {
    Finding finding = FindingOf(FindingKind::kDestroyedContext, *destroyed);
    finding.before = contexts_.NoteOf(context);
    SetVictim(cause, *destroyed, &finding);
    Add(std::move(finding));
    return;
  }
  Finding finding = FindingOf(FindingKind::kUsedDestroyedContext, cause);
  finding.before = contexts_.NoteOf(context);
  if (destroyed != nullptr) {
    finding.victim_chain = destroyed->chain;
  }
  Add(std::move(finding));
}

// Libraries that clean up when the process ends, after the contexts, are right.
void Analysis::State::OnStale(const Event& event, const Cause& cause) {
  const Caller* const holder = HolderOf(cause, parties_);
  const bool has_kind = event.setting > 0 && event.setting < kObjectKinds;
  if (holder == nullptr || ended_ || !has_kind) {
    return;
  }
  const auto kind = static_cast<ObjectKind>(event.setting);
  const auto known = makers_.find(event.old_value);
  const Cause* made = known == makers_.end() ? nullptr : known->second.get();
  const Caller* const maker = made == nullptr ? nullptr : HolderOf(*made, parties_);
  // Their numbers are those of other contexts', too.
  const bool is_number = kind == ObjectKind::kTexture || kind == ObjectKind::kSurface;
  if (is_number && (maker == nullptr || maker->party != holder->party)) {
    return;
  }
  Finding finding = FindingOf(FindingKind::kUsedAfterContext, cause, *holder);
  finding.before = contexts_.NoteOf(event.context);
  finding.device = finding.before.device;
  finding.object.kind = kind;
  if (maker != nullptr) {
    finding.object.maker = made->PlaceOf(maker->frame);
  }
  if (const Cause* end = contexts_.EndOf(event.context)) {
    finding.object.ended_by = end->call;
    finding.object.ender = end->place();
    finding.object.ended_on = end->thread;
    finding.object.ended_ns = end->time_ns;
  }
  Add(std::move(finding));
}

void Analysis::State::OnDestruction(ContextId context, const CausePointer& cause,
                                    const CausePointer& put) {
  const ContextFacts* facts = contexts_.Find(context);
  const PartyId party = cause->party();
  const auto is_others = [&](const Cause* user) {
    return user != nullptr && user->party() != 0 && user->party() != party;
  };
  const Cause* user = nullptr;
  for (const auto& [number, thread] : threads_) {
    const Cause* there = number != cause->thread ? thread.model.PutBy(context).get() : nullptr;
    if (user == nullptr && is_others(there)) {
      user = there;
    }
  }
  // On the thread's own stack it is its maker's to destroy, whatever put it there. Where it is on
  // no stack, nobody is known to count on it: it may have been handed over.
  const bool is_makers = facts != nullptr && facts->made != nullptr && facts->made->Has(party);
  const FindingKind kind =
      user != nullptr ? FindingKind::kDestroyedInUse : FindingKind::kDestroyedContext;
  user = user == nullptr && !is_makers && is_others(put.get()) ? put.get() : user;
  if (party != 0 && user != nullptr && !ended_) {
    Finding finding = FindingOf(kind, *cause);
    finding.before = contexts_.NoteOf(context);
    SetVictim(*user, *cause, &finding);
    Add(std::move(finding));
  } else if (party != 0 && facts != nullptr && !ended_) {
    AddLostWork(context, *facts, *cause);
  }
  settings_.Forget(context, [&](auto... where) { return IsOpen(where...); });
  contexts_.Destroy(context, cause);
}

// Who had called the library that made the context current did not know that it worked there.
void Analysis::State::AddLostWork(ContextId context, const ContextFacts& facts,
                                  const Cause& cause) {
  for (const auto& [party, worker] : facts.workers) {
    if (!worker.unaware || party == cause.party()) {
      continue;
    }
    Finding finding = FindingOf(FindingKind::kDestroyedWork, cause);
    finding.before = contexts_.NoteOf(context);
    finding.victim = worker.first->place();
    finding.victim_chain = worker.first->chain;
    Add(std::move(finding));
  }
}

void Analysis::State::OnLastError(CallKind kind, const Event& event, const CausePointer& cause,
                                  Thread* thread) {
  const bool asks = kind == CallKind::kGetLastError || kind == CallKind::kPeekLastError;
  if (!asks) {
    if (event.result != 0 && IsOfRuntime(event.name) && event.result != kNotReady &&
        !IsSticky(event.result)) {
      thread->error = cause;
      thread->error_activation = thread->model.activation();
    }
    return;
  }
  const CausePointer error = thread->error;
  if (error == nullptr || event.result != error->result) {
    return;
  }
  if (kind == CallKind::kGetLastError) {
    thread->error = nullptr;
  }
  if (error->party() != 0 && cause->party() != 0 && error->party() != cause->party() &&
      !thread->model.IsOpen(thread->error_activation)) {
    Finding finding = FindingOf(FindingKind::kLeftError, *error);
    SetVictim(*cause, *error, &finding);
    Add(std::move(finding));
    thread->error = nullptr;
  }
}

bool Analysis::State::IsOpen(std::uint32_t thread, std::uint64_t activation) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && found->second.model.IsOpen(activation);
}

int Analysis::State::DeviceOf(const Event& event) const {
  return event.device >= 0 ? event.device : contexts_.NoteOf(event.before).device;
}

std::vector<Finding> Analysis::State::Findings(bool returned) const {
  Ledger all = ledger_;
  for (const auto& [number, thread] : threads_) {
    if (returned) {
      thread.model.AddChargesOfReturned(&all);
    } else {
      thread.model.AddOpenCharges(&all);
    }
  }
  settings_.AddCharges([&](auto... where) { return !returned && IsOpen(where...); }, &all);
  contexts_.ForEachLiving([&](ContextId id, const ContextFacts& facts) {
    Charge charge;
    if (facts.primary && ChargeOf(id, &charge)) {
      all.Add(charge);
    }
  });
  return all.Findings(habits_);
}

std::vector<Finding> Analysis::State::Unsettled() const {
  if (ended_) {
    return {};
  }
  const std::vector<Finding> known = Findings(/*returned=*/false);
  std::vector<Finding> unsettled = Findings(/*returned=*/true);
  const auto is_known = [&](const Finding& finding) {
    return std::any_of(known.begin(), known.end(), [&](const Finding& other) {
      return other.kind == finding.kind && other.call == finding.call &&
             other.culprit.object == finding.culprit.object &&
             other.culprit.offset == finding.culprit.offset;
    });
  };
  unsettled.erase(std::remove_if(unsettled.begin(), unsettled.end(), is_known), unsettled.end());
  return unsettled;
}

std::vector<ContextId> Analysis::State::Stack(std::uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? std::vector<ContextId>() : found->second.model.Stack();
}

Analysis::Analysis(bool forked, std::string program)
    : state_(std::make_unique<State>(forked, std::move(program))) {}
Analysis::~Analysis() = default;

void Analysis::OnObject(std::uint32_t index, const Object& object) {
  state_->OnObject(index, object);
}

void Analysis::OnEvent(const Event& event) { state_->OnEvent(event); }

std::vector<Finding> Analysis::Findings() const { return state_->Findings(/*returned=*/false); }

std::vector<Finding> Analysis::Unsettled() const { return state_->Unsettled(); }

std::vector<Finding> Analysis::Leaks() const { return state_->Leaks(); }

const std::vector<Analysis::FirstUse>& Analysis::FirstUses() const { return state_->FirstUses(); }

std::vector<std::string> Analysis::Limits() const {
  return {state_->Limits().begin(), state_->Limits().end()};
}

std::vector<Finding> Analysis::Noise() const { return state_->Noise(); }

std::uint64_t Analysis::DroppedNoise() const { return state_->DroppedNoise(); }

std::uint64_t Analysis::Dropped() const { return state_->Dropped(); }

std::vector<ContextId> Analysis::Stack(std::uint32_t thread) const { return state_->Stack(thread); }

ContextNote Analysis::Context(ContextId id) const { return state_->Context(id); }

const std::vector<Object>& Analysis::objects() const { return state_->objects(); }

}  // namespace cuguest::audit
