// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. `Scope` is what every guard and scope of the core consists of: a claim to a
// record of its thread (this_thread.h, Note [Records]).

#ifndef CUGUEST_INTERNAL_SCOPE_H_
#define CUGUEST_INTERNAL_SCOPE_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/driver_table.h"
#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"
#include "cuguest/internal/current_context.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/stack_calls.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What the compiler is to lay out first: an elided guard that nobody disturbs.
CUGUEST_HIDE constexpr bool Mostly(bool is_so) { return CUGUEST_INTERNAL_LIKELY(is_so); }
CUGUEST_HIDE constexpr bool Rarely(bool is_so) { return CUGUEST_INTERNAL_UNLIKELY(is_so); }

// Whether the end of a scope is asked for, and so returns what came of it; or has nobody to tell
// but an incident, in a destructor.
enum class Reported : unsigned char { kByResult, kByIncident };

// A value: it may be moved to another address; the object that has it then is the one to leave it.
//
// In line is what a guard does that nobody disturbs, and no more, so that it is laid out in line
// also where a compiler optimises for size. Out of line a guard cost as much again as its driver
// calls (test/benchmark/context_rows.cc).
class CUGUEST_API Scope {
  using Kind = Record::Kind;
  using State = Record::State;

 public:
  // What a template of somebody else's instantiates (std::optional<ContextGuard>) may be shared by
  // two embedders, so that a scope that one copy of cuguest entered is ended by another's code:
  // that one hands it back by this table. One in every copy.
  struct Calls {
    CUresult (*leave)(Scope*, Reported);
    CUresult (*reassert)(Scope*);
    CUresult (*move_to)(Scope*, const Incarnation&, Location);
  };

  // Entries that EnterExactly() can remember.
  CUGUEST_HIDE static constexpr int kMaxExactDepth = 32;

  // Nothing is set: one of the functions that enter is called next, or StayOutside() or Refuse().
  enum NotSet : unsigned char { kNotSet };
  CUGUEST_HIDE explicit Scope(NotSet) noexcept {}
  // Inside nothing.
  CUGUEST_HIDE explicit Scope(bool always_pushes = false) noexcept { StayOutside(always_pushes); }
  CUGUEST_HIDE void StayOutside(bool always_pushes) noexcept {
    Prepare(nullptr, always_pushes, {nullptr, 0});
    SetOutside();
  }
  // As if entering had given `code`.
  void Refuse(CUresult code, Location where) noexcept;
  // `other` is inside nothing then, and keeps what it would enter by.
  CUGUEST_HIDE Scope(Scope&& other) noexcept { Take(&other); }
  Scope& operator=(Scope&&) = delete;
  CUGUEST_HIDE ~Scope() = default;

  // What the last entering, moving or reasserting gave; or why a HostScope could not enter it
  // again.
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept {
    const Record& record = PlaceIn(*CallingThread());
    const bool stands = record.serial == serial_ && record.state == State::kLive;
    return Mostly(result_ == CUDA_SUCCESS && stands) ? CUDA_SUCCESS : ResultNow();
  }
  // The same at once after it has entered, when nothing can have happened to it.
  [[nodiscard]] CUGUEST_HIDE CUresult JustEntered() const noexcept {
    if (Rarely(result_ != CUDA_SUCCESS)) asked_ = true;
    return result_;
  }
  // The same for code that is asked itself: a failure stays one that nobody knows.
  [[nodiscard]] CUGUEST_HIDE CUresult Unasked() const noexcept { return result_; }
  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result() == CUDA_SUCCESS; }
  [[nodiscard]] const char* advice() const noexcept;
  [[nodiscard]] CUGUEST_HIDE bool IsInside() const noexcept { return serial_ != 0; }
  // Of a scope that has entered: whether it did so on this thread.
  [[nodiscard]] CUGUEST_HIDE bool IsOfThisThread() const noexcept {
    return thread_ == CallingThread()->kernel_thread;
  }
  [[nodiscard]] CUGUEST_HIDE CUcontext context() const noexcept { return context_; }
  // As ContextGuard::context().
  [[nodiscard]] ContextRef Ref() const noexcept;
  [[nodiscard]] CUcontext caller() const noexcept;
  [[nodiscard]] bool elided() const noexcept;
  [[nodiscard]] CUGUEST_HIDE Location where() const noexcept { return {file_, line_}; }

  // These need a scope that is inside nothing. What is known beforehand is set before the driver is
  // called for the first time, so that it need not be saved around calls.
  [[gnu::always_inline]] CUGUEST_HIDE inline void Enter(Incarnation ours, bool always_pushes,
                                                        Location where) noexcept {
    Prepare(ours.context, always_pushes, where);
    CUcontext caller = nullptr;
    CUresult code = CUDA_ERROR_INVALID_CONTEXT;
    if (Mostly(ours.context != nullptr)) code = GetCurrent(&caller);
    ThisThread* const here = CallingThread();
    if (Rarely(code != CUDA_SUCCESS || !here->IsReady()))
      return EnterResolving(ours.id, caller, code);
    if (ours.IsKnown()) code = CheckIncarnation(ours);
    EnterOn(here, ours, caller, code, always_pushes, where);
  }
  [[gnu::always_inline]] CUGUEST_HIDE inline void Enter(CUcontext context, bool always_pushes,
                                                        Location where) noexcept {
    Enter(Incarnation::Unknown(context), always_pushes, where);
  }
  [[gnu::always_inline]] CUGUEST_HIDE inline void Enter(const ContextRef& context,
                                                        bool always_pushes,
                                                        Location where) noexcept {
    Enter(Incarnation::Of(context), always_pushes, where);
  }
  // As Enter() and Leave(), out of line: for what enters seldom, or beside what costs far more.
  void EnterByCall(const Incarnation& ours, bool always_pushes, Location where) noexcept;
  CUresult LeaveByCall(Reported end) noexcept;
  // What was found alive just now, with nothing called since; `current` is what was found current
  // since, nullptr if that was not asked. Nothing is asked twice.
  [[gnu::always_inline]] CUGUEST_HIDE inline void EnterFound(const Incarnation& ours,
                                                             const CUcontext* current,
                                                             bool always_pushes,
                                                             Location where) noexcept {
    Prepare(ours.context, always_pushes, where);
    CUcontext caller = current != nullptr ? *current : nullptr;
    const CUresult code = current != nullptr ? CUDA_SUCCESS : GetCurrent(&caller);
    ThisThread* const here = CallingThread();
    if (Rarely(code != CUDA_SUCCESS || !here->IsReady()))
      return EnterResolving(ours.id, caller, code);
    EnterOn(here, ours, caller, code, always_pushes, where);
  }
  // What was found current just now. Calls the driver for nothing. Needs current.IsSeen().
  CUGUEST_HIDE void Enter(const CurrentContext& current, Location where) noexcept {
    Prepare(current.Seen().context, false, where);
    ThisThread* const here = CallingThread();
    if (Rarely(!here->IsReady())) {
      return EnterResolving(current.Seen().id, current.Seen().context, CUDA_SUCCESS);
    }
    SetInside(here, current.Seen(), current.Seen().context, where, Kind::kElided, false);
  }
  // The whole stack is remembered, and `ours` is pushed on it; or (nullptr) it is taken off.
  void EnterExactly(const Incarnation* ours, Location where) noexcept;
  // A HostScope; `guard` has to be among those that it takes out, if it is inside.
  void EnterHost(const Scope* guard, Location where) noexcept;
  void EnterCaptureMode(CUstreamCaptureMode mode, Location where) noexcept;
  // As Leave(), of that.
  CUresult LeaveCaptureMode(Reported end) noexcept;
  // Enters `ours` by `guard`, and where that succeeds relaxes captures by `mode`. This and the next
  // are in line, in lib/guard/scope_relaxed.h.
  [[gnu::always_inline]] CUGUEST_HIDE static inline void EnterRelaxed(Incarnation ours,
                                                                      Scope* guard, Scope* mode,
                                                                      Location where) noexcept;
  // As LeaveCaptureMode() of `mode`, and then LeaveSeen() of `guard`.
  [[gnu::always_inline]] CUGUEST_HIDE static inline CUresult LeaveRelaxedSeen(Scope* guard,
                                                                              Scope* mode) noexcept;
  // The mode that EnterCaptureMode() found.
  [[nodiscard]] CUGUEST_HIDE CUstreamCaptureMode callers_mode() const noexcept {
    return static_cast<CUstreamCaptureMode>(callers_mode_);
  }

  CUresult MoveTo(const Incarnation& to, Location where) noexcept;
  CUresult Reassert() noexcept;

  // Scopes that no object stands for: see cuguest_push() and cuguest_pop() of c.h.
  static CUresult PushUnowned(const Incarnation& context) noexcept;
  static CUresult PopUnowned() noexcept;

  [[gnu::always_inline]] CUGUEST_HIDE inline CUresult Leave(Reported end) noexcept {
    ThisThread* const here = CallingThread();
    if (Rarely(!IsOnTop(*here))) return LeaveSpecially(end);
    if (Rarely(PlaceIn(*here).kind != Kind::kElided)) {
      CUcontext popped = nullptr;
      const CUresult code = Pop(&popped);
      if (Rarely(code != CUDA_SUCCESS || popped != context_)) return LeaveDisturbed(code, popped);
    }
    if (Rarely(!IsCurrent(caller_))) return LeaveDisturbed(CUDA_SUCCESS, context_);
    Leave(here);
    return CUDA_SUCCESS;
  }
  // The same of one that was entered by a ContextRef and whose context was just found current and
  // alive, where nothing was called since that could change the stack. No driver call. Does nothing
  // if it pushed: what lies below is not known before it pops.
  CUGUEST_HIDE void LeaveSeen() noexcept {
    ThisThread* const here = CallingThread();
    if (IsOnTop(*here) && PlaceIn(*here).kind == Kind::kElided) Leave(here);
  }

 private:
  static const Calls kCalls;

  // Its record, if that has its serial; another one if its own is not near, or another thread's.
  [[nodiscard]] CUGUEST_HIDE const Record& PlaceIn(ThisThread& here) const noexcept {
    return here.Near(slot_);
  }
  // Whether the record is the last one of this thread, of a capture mode that was not disturbed by
  // scopes, and there is nothing to be closed first.
  [[nodiscard]] CUGUEST_HIDE bool IsLastMode(ThisThread& here) const noexcept {
    const Record& record = PlaceIn(here);
    return serial_ != 0 && record.serial == serial_ && here.depth == slot_ + 1 &&
           record.state == State::kLive && calls_ == &kCalls && here.IsOfProcess() &&
           !ThisThread::HasMail();
  }
  // Whether the record is the last one of this thread, and as this scope entered.
  [[nodiscard]] CUGUEST_HIDE bool IsOnTop(ThisThread& here) const noexcept {
    const Record& record = PlaceIn(here);
    return record.serial == serial_ && here.depth == slot_ + 1 && record.IsAsEntered() &&
           calls_ == &kCalls && here.IsOfProcess();
  }
  // Closes the record, which is on top and of which nothing is left to restore.
  CUGUEST_HIDE void Leave(ThisThread* here) noexcept {
    serial_ = 0;
    here->depth = slot_;
    if (slot_ == 0) return;
    const bool is_near = slot_ != here->first;
    const Record& below = here->Near(slot_ - 1);
    if (Rarely(!is_near || !below.IsAsEntered() || ThisThread::HasMail())) CloseEnded();
  }

  CUGUEST_HIDE static bool IsCurrent(CUcontext context) noexcept {
    CUcontext current = nullptr;
    return GetCurrent(&current) == CUDA_SUCCESS && current == context;
  }

  // What is known before it enters.
  CUGUEST_HIDE void Prepare(CUcontext context, bool always_pushes, Location where) noexcept {
    context_ = context;
    file_ = where.file;
    calls_ = &kCalls;
    line_ = where.line;
    result_ = CUDA_SUCCESS;
    always_pushes_ = always_pushes;
    asked_ = false;
  }
  CUGUEST_HIDE void SetOutside() noexcept {
    caller_ = nullptr;
    serial_ = 0;
    slot_ = 0;
    thread_ = 0;
  }
  // A new record, which needs HasRoom(), of a scope that was prepared for the same. As few stores
  // as can be: a guard that is elided consists of them and of two queries.
  CUGUEST_HIDE Record& SetInside(ThisThread* here, Incarnation ours, CUcontext caller,
                                 Location where, Kind kind, bool always_pushes) noexcept {
    const unsigned slot = here->depth;
    Record& record = here->Near(slot);
    const unsigned long long serial = record.serial + 1;
    here->depth = slot + 1;
    record.serial = serial;
    record.ours.context = ours.context;
    record.ours.id = ours.id;
    record.caller = caller;
    record.file = where.file;
    record.SetLive(where.line, kind, always_pushes);
    caller_ = caller;
    serial_ = serial;
    slot_ = slot;
    thread_ = here->kernel_thread;
    return record;
  }
  // After the driver was asked to exchange the modes, with `code`.
  CUGUEST_HIDE void SetModes(Record* record, CUresult code, Record::CaptureModes modes) noexcept {
    if (Rarely(code != CUDA_SUCCESS)) return Conclude(code);
    record->modes = modes;
    callers_mode_ = static_cast<unsigned char>(modes.callers);
  }
  CUGUEST_HIDE void Take(Scope* other) noexcept {
    context_ = other->context_;
    caller_ = other->caller_;
    file_ = other->file_;
    calls_ = other->calls_;
    serial_ = other->serial_;
    slot_ = other->slot_;
    thread_ = other->thread_;
    line_ = other->line_;
    result_ = other->result_;
    always_pushes_ = other->always_pushes_;
    asked_ = other->asked_;
    other->Prepare(nullptr, always_pushes_, {nullptr, 0});
    other->SetOutside();
  }

  // The rest of entering, with `caller` current and `code` of looking at `ours`. Needs Prepare().
  [[gnu::always_inline]] CUGUEST_HIDE inline void EnterOn(ThisThread* here, Incarnation ours,
                                                          CUcontext caller, CUresult code,
                                                          bool always_pushes,
                                                          Location where) noexcept {
    const bool pushes = Rarely(always_pushes || caller != ours.context);
    if (code == CUDA_SUCCESS && pushes) code = Push(ours.context);
    if (Rarely(code != CUDA_SUCCESS || !here->HasRoom()))
      return EnterAfterRefusal(ours.id, caller, code);
    SetInside(here, ours, caller, where, pushes ? Kind::kPushed : Kind::kElided, always_pushes);
  }
  // These need Prepare().
  [[gnu::cold]] void EnterResolving(unsigned long long id, CUcontext caller,
                                    CUresult code) noexcept;
  [[gnu::cold]] void EnterAfterRefusal(unsigned long long id, CUcontext caller,
                                       CUresult code) noexcept;
  [[gnu::always_inline]] CUGUEST_HIDE inline void EnterCaptureModeOn(ThisThread* here,
                                                                     const DriverTable& driver,
                                                                     CUstreamCaptureMode mode,
                                                                     Location where) noexcept;
  [[gnu::cold]] void RelaxInside(Scope* mode) const noexcept;
  static void EnterChecked(Incarnation ours, CUcontext caller, CUresult code, Scope* guard,
                           Scope* mode) noexcept;
  static void EnterApart(Incarnation ours, CUcontext caller, CUresult code, Scope* guard,
                         Scope* mode) noexcept;
  [[gnu::cold]] void EnterCaptureModeResolving(CUstreamCaptureMode mode) noexcept;
  CUresult LeaveSpecially(Reported end) noexcept;
  [[gnu::cold]] CUresult LeaveDisturbed(CUresult code, CUcontext popped) noexcept;
  static void CloseEnded() noexcept;
  [[nodiscard, gnu::cold]] CUresult ResultNow() const noexcept;

  void SetFailed(CUresult code) noexcept;
  Record* Begin(unsigned long long id) noexcept;
  void Conclude(CUresult code) noexcept;
  Record* Own() const noexcept;
  Record* OwnOnTop(CUresult* why_not) noexcept;
  CUresult EndElsewhere(unsigned long long serial) noexcept;
  CUresult Move(const Incarnation& to, Location where) noexcept;
  CUresult MoveInside(const Incarnation& to, Location where) noexcept;
  CUGUEST_HIDE CUresult EnterInstead(const Incarnation& to, Location where) noexcept;
  CUGUEST_HIDE CUresult Moved(unsigned long long serial, CUresult code) noexcept;

  CUcontext context_;
  CUcontext caller_;  // when it entered
  const char* file_;
  const Calls* calls_;         // of the copy that entered
  unsigned long long serial_;  // of its record; 0: inside nothing
  unsigned slot_;              // where its record is
  int thread_;                 // the kernel's number of its thread
  int line_;
  CUresult result_;
  bool always_pushes_;
  mutable bool asked_;  // result_ is a failure, and somebody knows
  unsigned char callers_mode_;
};
static_assert(sizeof(Scope) == 64);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_SCOPE_H_
