// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/analysis.h"

#include <map>
#include <string>
#include <utility>

#include "audit/call_name.h"
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
constexpr int kWrongThread = 908;  // to end a capture from: it goes on

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
  explicit State(bool forked) : forked_(forked) {}

  void OnObject(std::uint32_t index, const Object& object) { parties_.AddObject(index, object); }
  void OnEvent(const Event& event);
  std::vector<Finding> Findings() const;
  std::uint64_t Dropped() const { return ledger_.dropped(); }
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
  };

  void EndThread(std::uint32_t number);
  void OnContext(const Event& event, const CausePointer& cause);
  void EndPrimary(int device, const CausePointer& cause);
  void OnCall(const Event& event, const CausePointer& cause, Thread* thread);
  void OnResult(CallKind kind, const Cause& cause);
  void OnDestroyedHandle(ContextId context, const Cause& cause);
  // Of what the call destroys, before it does: the call that had put it on a stack, or null. For
  // some sources nothing is current behind it.
  CausePointer PutBefore(CallKind kind, const Event& event, const Cause& cause,
                         const ThreadModel& model) const;
  CausePointer PrimaryPutBy(int device, const Cause& cause) const;
  // `put`: what PutBefore() said.
  void OnDestruction(ContextId context, const CausePointer& cause, const CausePointer& put);
  void OnLastError(CallKind kind, const Event& event, const CausePointer& cause, Thread* thread);
  static void ChangeStack(CallKind kind, const Event& event, const CausePointer& cause,
                          ThreadModel* model);
  void Add(Finding finding) { ledger_.Add({std::move(finding), {}}); }
  bool IsOpen(std::uint32_t thread, std::uint64_t activation) const;
  int DeviceOf(const Event& event) const;

  const bool forked_;
  bool ended_ = false;
  Parties parties_;
  Contexts contexts_;
  Habits habits_;
  Ledger ledger_;
  Captures captures_{&ledger_};
  Settings settings_{&contexts_, &ledger_};
  Primaries primaries_{&contexts_, &ledger_};
  std::map<std::uint32_t, Thread> threads_;
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
  const CausePointer cause = std::make_shared<const Cause>(event, parties_);
  Thread& thread = threads_.try_emplace(event.thread, &contexts_, &habits_, &ledger_).first->second;
  const bool has_before = event.kind == EventKind::kCall || event.kind == EventKind::kCheck;
  thread.model.Arrive(has_before ? event.before : ThreadModel::kUnknown, *cause);
  switch (event.kind) {
    case EventKind::kContext:
      OnContext(event, cause);
      break;
    case EventKind::kUsed:
      contexts_.SetUsed(event.context);
      break;
    case EventKind::kEntered:
      OnDestroyedHandle(event.context, *cause);
      thread.entered = event.name;
      break;
    case EventKind::kCall:
      OnCall(event, cause, &thread);
      break;
    default:
      break;
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
  if (former != 0 && contexts_.Find(former)->destroyed == nullptr &&
      Primaries::ChargeOf(*contexts_.Find(former), contexts_.NoteOf(former), &charge)) {
    ledger_.Add(charge);
  }
  contexts_.Make(event.context, event.device, event.primary, cause);
  if (former != 0) {
    settings_.Forget(former, [&](auto... where) { return IsOpen(where...); });
  }
}

// A party that makes it and releases it again leaves nothing behind.
void Analysis::State::EndPrimary(int device, const CausePointer& cause) {
  const ContextId context = contexts_.PrimaryOf(device);
  const ContextFacts* facts = contexts_.Find(context);
  if (facts == nullptr || facts->destroyed != nullptr) {
    return;
  }
  Charge charge;
  if (facts->made != nullptr && !facts->made->Has(cause->party()) &&
      Primaries::ChargeOf(*facts, contexts_.NoteOf(context), &charge)) {
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
  if ((kind == CallKind::kPush || kind == CallKind::kSetCurrent) && !is_known) {
    const ContextFacts* facts = contexts_.Find(event.context);
    if (facts != nullptr && facts->destroyed != nullptr && !facts->primary) {
      OnDestroyedHandle(event.context, *cause);
    }
  }
  const CausePointer put = PutBefore(kind, event, *cause, thread->model);
  ChangeStack(kind, event, cause, &thread->model);
  OnResult(kind, *cause);
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
      if (!ended_ && primaries_.Release(DeviceOf(event), event.runtime, *cause)) {
        EndPrimary(DeviceOf(event), cause);
      }
      break;
    case CallKind::kResetPrimary:
      if (!ended_) {
        primaries_.Reset(DeviceOf(event), *cause, put.get());
      }
      break;
    case CallKind::kSetSetting: {
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

void Analysis::State::OnDestroyedHandle(ContextId context, const Cause& cause) {
  if (cause.party() == 0) {
    return;
  }
  const ContextFacts* facts = contexts_.Find(context);
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
  if (party != 0 && user != nullptr) {
    Finding finding = FindingOf(kind, *cause);
    finding.before = contexts_.NoteOf(context);
    SetVictim(*user, *cause, &finding);
    Add(std::move(finding));
  }
  settings_.Forget(context, [&](auto... where) { return IsOpen(where...); });
  contexts_.Destroy(context, cause);
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

std::vector<Finding> Analysis::State::Findings() const {
  Ledger all = ledger_;
  for (const auto& [number, thread] : threads_) {
    thread.model.AddOpenCharges(&all);
  }
  settings_.AddCharges([&](auto... where) { return IsOpen(where...); }, &all);
  contexts_.ForEachLiving([&](ContextId id, const ContextFacts& facts) {
    Charge charge;
    if (Primaries::ChargeOf(facts, contexts_.NoteOf(id), &charge)) {
      all.Add(charge);
    }
  });
  return all.Findings(habits_);
}

std::vector<ContextId> Analysis::State::Stack(std::uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? std::vector<ContextId>() : found->second.model.Stack();
}

Analysis::Analysis(bool forked) : state_(std::make_unique<State>(forked)) {}
Analysis::~Analysis() = default;

void Analysis::OnObject(std::uint32_t index, const Object& object) {
  state_->OnObject(index, object);
}

void Analysis::OnEvent(const Event& event) { state_->OnEvent(event); }

std::vector<Finding> Analysis::Findings() const { return state_->Findings(); }

std::uint64_t Analysis::Dropped() const { return state_->Dropped(); }

std::vector<ContextId> Analysis::Stack(std::uint32_t thread) const { return state_->Stack(thread); }

ContextNote Analysis::Context(ContextId id) const { return state_->Context(id); }

const std::vector<Object>& Analysis::objects() const { return state_->objects(); }

}  // namespace cuguest::audit
