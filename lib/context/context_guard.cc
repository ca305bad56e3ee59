// SPDX-License-Identifier: Apache-2.0

#include "cuguest/context_guard.h"

#include "cuguest/internal/report.h"
#include "lib/context/stack_repair.h"
#include "lib/context/thread_guards.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE

namespace {

// Whether `to` is the current context, in one driver call where its handle is unknown or has an id.
bool IsCurrent(const internal::Incarnation& to) noexcept {
  unsigned long long id = 0;
  const bool has_id = to.IsKnown() && to.id != 0;
  if (has_id) return internal::GetId(nullptr, &id) == CUDA_SUCCESS && id == to.id;
  CUcontext top = nullptr;
  if (internal::GetCurrent(&top) != CUDA_SUCCESS || top != to.context) return false;
  return !to.IsKnown() || internal::CheckIncarnation(to) == CUDA_SUCCESS;
}

}  // namespace

ContextGuard& GuardBase::Exact() noexcept { return static_cast<ContextGuard&>(*this); }
const ContextGuard& GuardBase::Exact() const noexcept {
  return static_cast<const ContextGuard&>(*this);
}

const internal::StackGuard::Type GuardBase::kType = {
    [](StackGuard* guard) { return static_cast<GuardBase*>(guard)->Restore(); },
    [](StackGuard* guard) { return static_cast<GuardBase*>(guard)->Suspend(); },
    [](StackGuard* guard) { static_cast<GuardBase*>(guard)->Reenter(); },
    [](StackGuard* guard) { return static_cast<GuardBase*>(guard)->SuspendIfOnTop(); },
    &internal::SuspendAll,
    &internal::ForgetListOf,
    [](StackGuard* guard) { return static_cast<GuardBase*>(guard)->Reassert(); },
    [](StackGuard* guard, const internal::Incarnation& to, Location where) {
      return static_cast<GuardBase*>(guard)->Move(to, where);
    },
    &internal::EndInside,
    [](StackGuard* from, StackGuard* to) { return static_cast<GuardBase*>(from)->GiveTo(to); },
};

// Where `caller` is current, or `code` says why nobody knows what is.
void GuardBase::EnterBeside(CUcontext context, GuardMode mode, Location where, CUresult code,
                            CUcontext caller) noexcept {
  const internal::Incarnation ours = internal::Incarnation::Unknown(context);
  if (code != CUDA_SUCCESS || mode == GuardMode::kExact) {
    return EnterSpecially(ours, mode, where, code, caller);
  }
  code = internal::EnterIncarnation(ours);
  SetInside(ours, mode, where, code, StateOfPush(mode), caller);
}

// Where it is not known what is current.
void GuardBase::EnterAsking(const ContextRef& context, GuardMode mode, Location where) noexcept {
  const internal::Incarnation ours = internal::Incarnation::Of(context);
  CUcontext caller = nullptr;
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  if (ours.context != nullptr) code = internal::GetCurrent(&caller);
  if (code != CUDA_SUCCESS || mode == GuardMode::kExact) {
    return EnterSpecially(ours, mode, where, code, caller);
  }
  const bool is_elided = mode == GuardMode::kElide && caller == ours.context;
  code = is_elided ? internal::CheckIncarnation(ours) : internal::EnterIncarnation(ours);
  // 0 is the id of every context of a driver that has no ids.
  internal::ThisThread& here = internal::t_this_thread;
  here.expects_current = is_elided && ours.id != 0;
  SetInside(ours, mode, where, code, is_elided ? State::kElided : StateOfPush(mode), caller);
}

// After the driver's answer to what is current, where that is an error, or in kExact.
void GuardBase::EnterSpecially(const internal::Incarnation& ours, GuardMode mode, Location where,
                               CUresult code, CUcontext caller) noexcept {
  Set(ours, mode, where, code, State::kOut, code == CUDA_SUCCESS ? caller : nullptr);
  if (code == internal::kNotResolved) {
    if (internal::ResolveDriver(&result_) != nullptr) EnterAs(ours, mode, where);
  } else if (code == CUDA_SUCCESS) {
    EnterExactly();
  }
}

// For those who have an incarnation, known or not. By value: it may be `ours_`.
void GuardBase::EnterAs(internal::Incarnation ours, GuardMode mode, Location where) noexcept {
  if (ours.IsKnown()) {
    Enter(ours.Ref(), mode, where);
  } else {
    Enter(ours.context, mode, where);
  }
}

void GuardBase::EnterNone() noexcept {
  result_ = CUDA_SUCCESS;
  static_cast<void>(internal::TryDriver(&result_));
  if (result_ == CUDA_SUCCESS) EnterExactly();
}

void GuardBase::EnterExactly() noexcept {
  const auto and_then = IsOfNone() ? internal::AndThen::kLeaveEmpty : internal::AndThen::kPutBack;
  result_ = internal::TakeDown(Exact().exact_, ContextGuard::kMaxExactDepth, &Exact().exact_depth_,
                               and_then);
  if (result_ == CUDA_SUCCESS && !IsOfNone()) result_ = internal::EnterIncarnation(ours_);
  if (result_ != CUDA_SUCCESS) return;
  state_ = State::kExact;
  Link(internal::t_this_thread);
}

// What the fast path does not do: the modes that look further than the top, guards that do not
// end in reverse order of construction, on another thread, or in another copy of cuguest, and
// those that are out.
CUresult GuardBase::Leave() noexcept {
  if (!IsInside() && state_ != State::kSuspended) {
    if (result_ == CUDA_SUCCESS || asked_) return CUDA_SUCCESS;
    asked_ = true;
    internal::ReportIncident(IncidentKind::kUnasked, Repair::kUnrepaired, result_, file_, line_);
    return CUDA_SUCCESS;
  }
  if (type != &kType) return type->restore(this);
  if (!internal::IsThisThread(thread)) {
    return internal::ReportElsewhere(ours_.context, {file_, line_});
  }
  if (state_ == State::kSuspended) {
    internal::Resign(this);
    state_ = State::kOut;
    return CUDA_SUCCESS;
  }
  if (state_ == State::kExact) return LeaveDisturbed(CUDA_SUCCESS, nullptr);
  CUcontext top = nullptr;
  const CUresult code = state_ == State::kElided ? internal::GetCurrent(&top) : internal::Pop(&top);
  bool is_clean = code == CUDA_SUCCESS && top == ours_.context;
  if (is_clean && state_ == State::kPushedAlways) is_clean = CallerIsCurrent();
  if (!is_clean) return LeaveDisturbed(code, top);
  internal::Unlink(this);
  state_ = State::kOut;
  return CUDA_SUCCESS;
}

// The caller's context. kExact knows which incarnation it is, and an outer guard may.
internal::Incarnation GuardBase::Caller() const noexcept {
  if (state_ == State::kExact && Exact().exact_depth_ > 0) {
    return Exact().exact_[Exact().exact_depth_ - 1];
  }
  if (caller_ == ours_.context) return ours_;
  if (!internal::ListIsSound()) return internal::Incarnation::Unknown(caller_);
  for (const StackGuard* guard = outer; guard != nullptr; guard = guard->outer) {
    if (guard->type != &kType) break;
    const internal::Incarnation& theirs = static_cast<const GuardBase*>(guard)->ours_;
    if (theirs.context == nullptr) break;  // what is outside of it is not on the stack
    if (theirs.context == caller_) return theirs;
  }
  return internal::Incarnation::Unknown(caller_);
}

internal::Finding GuardBase::Mend(const internal::Incarnation& caller, CUresult code,
                                  CUcontext popped) const noexcept {
  if (state_ == State::kElided) return internal::RepairElided(ours_);
  if (state_ == State::kExact) {
    return internal::RestoreExactly(Exact().exact_, Exact().exact_depth_,
                                    IsOfNone() ? nullptr : &ours_);
  }
  if (code != CUDA_SUCCESS) {
    code = internal::stack::Pop(&popped);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_CONTEXT) {
      return {true, IncidentKind::kFailed, Repair::kUnrepaired, code, ours_.context};
    }
  }
  return internal::RepairPushed(ours_, caller, popped);
}

// `code` and `top` are what asking for the top, or popping it, gave.
CUresult GuardBase::LeaveDisturbed(CUresult code, CUcontext top) noexcept {
  const internal::Incarnation caller = Caller();
  const internal::Finding finding = Mend(caller, code, top);
  internal::Unlink(this);
  state_ = State::kOut;
  if (finding.kind == IncidentKind::kDestroyed && !IsOfNone()) state_ = State::kGone;
  const bool died = finding.result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (finding.repair == Repair::kUnrepaired && !died) internal::stack::MakeCurrent(caller);
  return internal::Report(finding, ours_.context, {file_, line_});
}

// The end of a guard that could not be left: on another thread than its own, whose list keeps
// a place that is gone.
void GuardBase::GiveUp() noexcept {
  if (IsInside() || state_ == State::kSuspended) type->forget_list_of(thread);
}

// Leaves its place on its thread's list to `to`.
bool GuardBase::GiveTo(StackGuard* to) noexcept {
  if (internal::IsThisThread(thread)) {
    internal::Replace(this, to);
    return true;
  }
  static_cast<void>(internal::ReportElsewhere(ours_.context, {file_, line_}));
  internal::ForgetListOf(thread);
  return false;
}

// Makes the incarnation known; for certain while the context's entry is on the stack.
CUresult GuardBase::Identify() noexcept {
  if (ours_.IsKnown()) return CUDA_SUCCESS;
  unsigned long long id = 0;
  const CUresult code = internal::GetId(ours_.context, &id);
  if (code == CUDA_SUCCESS) ours_.id = id;
  return code;
}

// Enters again after Restore() or Suspend(), unless the context is gone: pushing a destroyed handle
// is accepted and corrupts the driver's heap.
void GuardBase::Reenter() noexcept {
  result_ = state_ == State::kGone ? CUDA_ERROR_CONTEXT_IS_DESTROYED : Identify();
  state_ = State::kOut;
  if (IsOfNone()) {
    EnterNone();
  } else if (result_ == CUDA_SUCCESS) {
    EnterAs(ours_, mode_, {file_, line_});
  }
  asked_ = !internal::kReportsUnasked;
}

CUresult GuardBase::Suspend() noexcept {
  static_cast<void>(Identify());  // if it fails, Resume() tries once more
  const CUresult code = Restore();
  if (state_ == State::kOut) state_ = State::kSuspended;
  return code;
}

bool GuardBase::SuspendIfOnTop() noexcept {
  CUcontext top = nullptr;
  if (internal::GetCurrent(&top) != CUDA_SUCCESS || top != ours_.context) return false;
  static_cast<void>(Identify());
  if (state_ == State::kElided) return Suspend() == CUDA_SUCCESS;
  if (state_ == State::kExact) return IsAllOnTop() && Suspend() == CUDA_SUCCESS;
  if (internal::Pop(&top) != CUDA_SUCCESS) return false;
  if (!CallerIsCurrent()) {
    static_cast<void>(internal::stack::Push(ours_));
    return false;
  }
  internal::Unlink(this);
  state_ = State::kSuspended;
  return true;
}

// Of kExact, whose context is current: whether the whole stack is what the guard left.
bool GuardBase::IsAllOnTop() const noexcept {
  if (IsOfNone()) return true;
  internal::Incarnation entries[ContextGuard::kMaxExactDepth + 1];
  int depth = 0;
  const CUresult code = internal::TakeDown(entries, ContextGuard::kMaxExactDepth + 1, &depth,
                                           internal::AndThen::kPutBack);
  if (code != CUDA_SUCCESS || depth != Exact().exact_depth_ + 1) return false;
  for (int i = 0; i < Exact().exact_depth_; ++i) {
    if (!internal::stack::IsSame(Exact().exact_[i], entries[i])) return false;
  }
  return internal::stack::IsSame(ours_, entries[Exact().exact_depth_]);
}

void GuardBase::SetPlace(const internal::Incarnation& ours, Location where) noexcept {
  ours_ = ours;
  file_ = where.file;
  line_ = where.line;
}

// On its own thread, and only the innermost: otherwise what is on top belongs to another one.
CUresult GuardBase::Move(const internal::Incarnation& to, Location where) noexcept {
  if (IsInside() || state_ == State::kSuspended) {
    if (type != &kType) return type->move_to(this, to, where);
    if (!internal::IsThisThread(thread)) return CUDA_ERROR_ILLEGAL_STATE;
    result_ = IsInside() && IsInnermost() ? MoveInside(to, where) : CUDA_ERROR_ILLEGAL_STATE;
  } else {
    EnterAs(to, mode_, where);
  }
  return result();
}

// What is asked, and in which order, lets every refusal come before the stack is touched. In kElide
// the top is looked at no closer at the end of a scope, either; the other modes promise more.
CUresult GuardBase::MoveInside(const internal::Incarnation& to, Location where) noexcept {
  if (to.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (state_ != State::kExact && to.context == ours_.context && IsCurrent(to)) {
    SetPlace(to, where);
    return CUDA_SUCCESS;
  }
  CUresult code = to.IsKnown() ? internal::CheckIncarnation(to) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  if (mode_ != GuardMode::kElide || to.context == caller_) return LeaveAndEnter(to, where);
  CUcontext top = nullptr;
  code = internal::GetCurrent(&top);
  if (code != CUDA_SUCCESS) return code;
  if (top != ours_.context) return LeaveAndEnter(to, where);
  code = state_ == State::kElided ? internal::Push(to.context)
                                  : internal::ResolvedDriver().CtxSetCurrent(to.context);
  if (code != CUDA_SUCCESS) {
    static_cast<void>(Reassert());  // whatever the call did before it failed
    return code;
  }
  SetPlace(to, where);
  state_ = State::kPushed;
  return CUDA_SUCCESS;
}

CUresult GuardBase::LeaveAndEnter(const internal::Incarnation& to, Location where) noexcept {
  const internal::Incarnation ours = ours_;
  const Location place{file_, line_};
  static_cast<void>(Restore());
  const State left = state_;
  // Then one query says that it is current, and which one it is. 0 is as in EnterAsking().
  if (to.context == caller_ && to.IsKnown()) internal::t_this_thread.expects_current = to.id != 0;
  EnterAs(to, mode_, where);
  const CUresult code = result_;
  if (code == CUDA_SUCCESS) return code;
  SetPlace(ours, place);
  state_ = left;
  Reenter();
  return code;
}

CUresult GuardBase::Reassert() noexcept {
  if (!IsInside()) return ok() ? CUDA_ERROR_ILLEGAL_STATE : result_;
  if (type != &kType) return type->reassert(this);
  if (!internal::IsThisThread(thread)) return CUDA_ERROR_ILLEGAL_STATE;
  if (state_ != State::kExact) {
    CUcontext top = nullptr;
    if (internal::GetCurrent(&top) == CUDA_SUCCESS && top == ours_.context) {
      result_ = ours_.IsKnown() ? internal::CheckIncarnation(ours_) : CUDA_SUCCESS;
      if (result_ != CUDA_SUCCESS) static_cast<void>(Restore());  // nothing to come back into
      return result();
    }
  }
  static_cast<void>(Restore());
  Reenter();
  return result();
}

const char* GuardBase::advice() const noexcept { return internal::Advice(result_); }

CUGUEST_END_NAMESPACE
