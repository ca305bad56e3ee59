// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/internal/scope.h"

#include <utility>

#include "cuguest/internal/report.h"
#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

const Scope::Calls Scope::kCalls = {
    [](Scope* scope, Reported end) { return scope->LeaveSpecially(end); },
    [](Scope* scope) { return scope->Reassert(); },
    [](Scope* scope, const Incarnation& to, Location where) { return scope->Move(to, where); },
};

// Inside nothing, since it could not enter.
void Scope::SetFailed(CUresult code) noexcept {
  SetOutside();
  result_ = code;
}

void Scope::Refuse(CUresult code, Location where) noexcept {
  Prepare(nullptr, false, where);
  SetFailed(code);
}

// A record for a scope that is about to enter; nullptr, with result_, without memory for it.
Record* Scope::Begin(unsigned long long id) noexcept {
  SetFailed(CUDA_ERROR_OUT_OF_MEMORY);
  Record* const record = records::Add();
  if (record == nullptr) return nullptr;
  record->ours = {context_, id};
  record->always_pushes = always_pushes_;
  record->file = file_;
  record->line = line_;
  slot_ = records::Depth() - 1;
  serial_ = record->serial;
  thread_ = t_this_thread.kernel_thread;
  return record;
}

// After the driver was asked to enter, with `code`: inside, or the record is given back.
void Scope::Conclude(CUresult code) noexcept {
  result_ = code;
  if (code == CUDA_SUCCESS) {
    caller_ = records::At(slot_).caller;
  } else {
    records::Free(slot_);
    serial_ = 0;
  }
}

// Where `caller` is current, or `code` says why that is not known: the driver is not resolved, or
// refused; scopes are to be closed first; or there is no record at hand.
void Scope::EnterResolving(unsigned long long id, CUcontext caller, CUresult code) noexcept {
  bool is_known = code == CUDA_SUCCESS;
  if (code == kNotResolved && ResolveDriver(&code) != nullptr) code = CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return SetFailed(code);
  if (nesting::CloseEnded()) is_known = false;
  Record* const record = Begin(id);
  if (record != nullptr) Conclude(nesting::Enter(record, is_known ? &caller : nullptr));
}

// Where `code` is what asking for the id, or the push on `caller`, gave: the driver refused, or has
// come back here and left a scope open.
void Scope::EnterAfterRefusal(unsigned long long id, CUcontext caller, CUresult code) noexcept {
  if (code != CUDA_SUCCESS) return SetFailed(code);
  if (always_pushes_ || caller != context_) static_cast<void>(Pop(&caller));
  code = GetCurrent(&caller);
  EnterResolving(id, caller, code);
}

void Scope::EnterByCall(const Incarnation& ours, bool always_pushes, Location where) noexcept {
  Enter(ours, always_pushes, where);
}

CUresult Scope::LeaveByCall(Reported end) noexcept { return Leave(end); }

// The scope's record, if this is its thread; the scope is inside.
Record* Scope::Own() const noexcept { return records::Find(slot_, serial_); }

CUresult Scope::ResultNow() const noexcept {
  if (result_ != CUDA_SUCCESS || serial_ == 0) return JustEntered();
  const Record* const record = calls_ == &kCalls ? Own() : nullptr;
  if (record == nullptr || record->state == State::kLive) return result_;
  if (record->state == State::kGone) return record->result;
  // A listener left by longjmp() what was to move it.
  if (record->state == State::kOut && record->host_slot == records::kNowhere) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  // Taken out by a HostScope: it comes back, unless that one has ended, and waits.
  const bool host_has_ended = record->state == State::kOut &&
                              record->host_slot < records::Depth() &&
                              records::At(record->host_slot).state == State::kEnded;
  return host_has_ended ? kEndsLater : result_;
}

// What the fast paths do not do: scopes that are out, that end out of turn, on another thread or in
// another copy of cuguest, and those whose record the thread's variables do not hold.
[[gnu::noinline]] CUresult Scope::LeaveSpecially(Reported end) noexcept {
  if (serial_ == 0) {
    if (result_ == CUDA_SUCCESS || asked_) return CUDA_SUCCESS;
    asked_ = true;
    ReportIncident(Incident::Kind::kUnasked, Incident::Repair::kUnrepaired, result_, where());
    return CUDA_SUCCESS;
  }
  if (calls_ != &kCalls) return calls_->leave(this, end);
  const unsigned long long serial = std::exchange(serial_, 0);
  nesting::CloseEnded();
  Record* const record = records::Find(slot_, serial);
  if (record == nullptr) {
    return records::IsOfParent(serial) ? CUDA_SUCCESS : EndElsewhere(serial);
  }
  if (record->state != State::kLive) {  // a HostScope has it, or had; or it could not be moved
    const CUresult owed = nesting::Owed(*record);
    records::Free(slot_);
    nesting::CloseEnded();
    return owed;
  }
  if (!nesting::IsTopmost(slot_)) {
    records::MarkEnded(record);
    if (end == Reported::kByIncident) {
      ReportIncident(Incident::Kind::kOutOfTurn, Incident::Repair::kUnrepaired, kEndsLater,
                     where());
    }
    return kEndsLater;
  }
  const CUresult code = nesting::Close(slot_, where());
  nesting::CloseEnded();
  return code;
}

// On top, on its thread. `code` and `popped` are what popping gave, if it was pushed.
[[gnu::noinline]] CUresult Scope::LeaveDisturbed(CUresult code, CUcontext popped) noexcept {
  serial_ = 0;
  code = nesting::CloseDisturbed(slot_, code, code == CUDA_SUCCESS ? popped : nullptr);
  nesting::CloseEnded();
  return code;
}

[[gnu::noinline]] void Scope::CloseEnded() noexcept { nesting::CloseEnded(); }

// Nothing is done to either thread's stack: the one that it belongs to closes it.
CUresult Scope::EndElsewhere(unsigned long long serial) noexcept {
  const bool is_told = records::TellOwner(thread_, serial);
  CUcontext current = nullptr;
  static_cast<void>(stack::Current(&current));
  const CUresult code = is_told ? kEndsLater : CUDA_ERROR_OUT_OF_MEMORY;
  return Report({true, Incident::Kind::kElsewhere, Incident::Repair::kUnrepaired, code, current},
                context_, where());
}

// The record of a scope that is inside, if it can be moved or reasserted: what lies above it is
// somebody else's to move.
Record* Scope::OwnOnTop(CUresult* why_not) noexcept {
  const unsigned long long serial = serial_;
  nesting::CloseEnded();
  *why_not = CUDA_ERROR_ILLEGAL_STATE;
  if (serial_ != serial) return nullptr;  // a listener has left it
  Record* const record = Own();
  if (record == nullptr) {
    if (records::IsOfParent(serial_)) *why_not = CUDA_ERROR_NOT_INITIALIZED;
    return nullptr;
  }
  if (record->state == State::kGone) {
    *why_not = Moved(serial_, record->result);
    return nullptr;
  }
  return record->state == State::kLive && nesting::IsTopmost(slot_) ? record : nullptr;
}

// As MoveTo(), of a scope that is inside and of this copy.
CUresult Scope::Move(const Incarnation& to, Location where) noexcept {
  const unsigned long long serial = serial_;
  nesting::CloseEnded();
  if (serial_ != serial) return CUDA_ERROR_ILLEGAL_STATE;  // a listener has left it
  CUresult why_not;
  if (OwnOnTop(&why_not) != nullptr) return MoveInside(to, where);
  const Record* const record = Own();
  if (serial_ == 0 || (record != nullptr && record->state == State::kGone)) {
    return EnterInstead(to, where);
  }
  if (record != nullptr) result_ = why_not;
  return why_not;
}

// Of one that is outside, or could not come back. If it owes something, so does its end now.
CUresult Scope::EnterInstead(const Incarnation& to, Location where) noexcept {
  const unsigned slot = slot_;
  const unsigned long long serial = serial_;
  const int thread = thread_;
  Enter(to, always_pushes_, where);
  if (serial == 0) return JustEntered();
  if (serial_ == 0) {
    slot_ = slot;
    serial_ = serial;
    thread_ = thread;
  } else {
    Record& entered = records::At(slot_);
    entered.owner = Record::Owner::kStaleScope;
    entered.owed = records::At(slot).owed;
    records::Free(slot);
  }
  return JustEntered();
}

CUresult Scope::MoveInside(const Incarnation& to, Location where) noexcept {
  const unsigned long long serial = serial_;
  const bool is_one = to.context != nullptr;
  return Moved(serial, is_one ? nesting::Move(slot_, to, where) : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult Scope::Reassert() noexcept {
  if (serial_ == 0) return ok() ? CUDA_ERROR_ILLEGAL_STATE : result_;
  if (calls_ != &kCalls) return calls_->reassert(this);
  CUresult code;
  if (OwnOnTop(&code) == nullptr) return code;
  const unsigned long long serial = serial_;
  return Moved(serial, nesting::Reassert(slot_));
}

// After the scope whose record has this serial was moved or reasserted, with `code`. A listener may
// have left it, and entered it anew. Outside it has a record only if its end owes something.
CUresult Scope::Moved(unsigned long long serial, CUresult code) noexcept {
  if (serial_ != serial && serial_ != 0) return code;
  const Record* const record = serial_ != 0 ? Own() : nullptr;
  if (record != nullptr && record->state == State::kLive) {
    context_ = record->ours.context;
    caller_ = record->caller;
    file_ = record->file;
    line_ = record->line;
  } else {
    const bool owes = record != nullptr && nesting::Owed(*record) != CUDA_SUCCESS;
    if (record != nullptr && !owes) records::Free(slot_);
    if (!owes) serial_ = 0;
    nesting::CloseEnded();
  }
  result_ = code;
  return JustEntered();
}

CUresult Scope::MoveTo(const Incarnation& to, Location where) noexcept {
  if (serial_ != 0) return calls_->move_to(this, to, where);
  // One that could not come back is its thread's still.
  const bool is_elsewhere = thread_ != 0 && thread_ != t_this_thread.kernel_thread;
  if (result_ != CUDA_SUCCESS && is_elsewhere) return CUDA_ERROR_ILLEGAL_STATE;
  return EnterInstead(to, where);
}

ContextRef Scope::Ref() const noexcept {
  if (serial_ == 0) return Incarnation::NoRef(result_);
  Record* const record = calls_ == &kCalls ? Own() : nullptr;
  if (record == nullptr) return ContextRef::Borrow(context_);
  if (record->state == State::kGone) return Incarnation::NoRef(record->result);
  Incarnation& ours = record->ours;
  if (ours.IsKnown()) return ours.Ref();
  const ContextRef ref = ContextRef::Borrow(ours.context);
  if (ref.ok()) ours = Incarnation::Of(ref);
  return ref;
}

CUcontext Scope::caller() const noexcept {
  const Record* const record = serial_ != 0 && calls_ == &kCalls ? Own() : nullptr;
  if (record != nullptr && record->state == State::kLive) return record->caller;
  return caller_;
}

bool Scope::elided() const noexcept {
  const Record* const record = serial_ != 0 && calls_ == &kCalls ? Own() : nullptr;
  return record != nullptr && record->state == State::kLive && record->kind == Kind::kElided;
}

const char* Scope::advice() const noexcept { return Advice(result()); }

CUGUEST_END_INTERNAL_NAMESPACE
