// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// context_guard.h                                                       tier: 2
// -----------------------------------------------------------------------------
/// \file
/// `ContextGuard` makes one CUDA context current for a scope and then leaves the
/// calling thread's stack of contexts as it found it: also when something that was
/// called inside the scope did not.
///
///   absl::Status Blur(CUcontext context, Image* image) {
///     cuguest::ContextGuard guard(context);
///     if (!guard.ok()) return cuguest::ToStatus(guard);
///     return LaunchBlur(image);          // runs with `context` current
///   }                                    // the caller's context is current again
///
/// It calls the driver only: it starts no CUDA runtime, creates no context, and
/// never calls cuInit.

#ifndef CUGUEST_CONTEXT_GUARD_H_
#define CUGUEST_CONTEXT_GUARD_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/incident.h"
#include "cuguest/internal/current_context.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/stack_calls.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
class GuardInStorage;
class HandleScope;
struct Finding;
}  // namespace internal

/// Note [How a guard restores]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// The caller's stack is [X,A] (A is current) and the guard's context is B.
///
///   a callee ...            | the stack then | the guard ...            | incident
///   ------------------------+----------------+--------------------------+------------
///   is clean                | [X,A,B]        | pops                     |
///   replaces the top        | [X,A,P]        | pops                     | kReplaced
///   leaves pushes           | [X,A,B,C..]    | pops until B is gone     | kLeakedPush
///   pops once too often     | [X,A]          | pops A, pushes it back   | kExtraPop
///   destroys B              | [X,A]          | pops A, pushes it back   | kDestroyed
///   elided (A is B): top replaced | [X,P]    | puts B back on top       | kReplaced
///   elided: leaves a push   | [X,B,C]        | pops C                   | kLeakedPush
///   elided: pops            | [X]            | pushes B                 | kExtraPop
///   elided: destroys B      | [X]            | leaves it so             | kDestroyed
///
/// A context that is destroyed while its entry stays on the stack (from another
/// thread, or buried) is popped like any other and nothing is reported: nothing of
/// the caller's was disturbed. A handle that is dead is never pushed again, because
/// the driver accepts it and corrupts its heap (cudasim/test/destroyed_facts_test.cc).
///
/// Note [What is inferred]
/// ~~~~~~~~~~~~~~~~~~~~~~~
/// The driver shows the top of the stack and nothing else, not even its depth, and a
/// guard does not take the caller's stack apart to look. `Repair::kRepaired`, that the
/// caller's stack is what it was, is therefore said only where that is certain: by kExact,
/// which knows every entry, and where the caller had no context current. Every other repair
/// is marked `Repair::kInferred`: the caller's context is current, and the rest is the most
/// likely reading of what was found. It is right for every row of the table above; a callee
/// that pushed the caller's context, or the guard's, can have left something that looks the
/// same. What is read how:
///
/// - An elided guard that finds another context C on top, and not its own beneath (nor
///   beneath a run of the same C), cannot know whether C replaced its context or lay below
///   it all along. If C is a primary context it is treated as a replacement, which is what
///   cudaSetDevice leaves; otherwise as an extra pop.
/// - A guard that pushed, and finds neither its own context nor the caller's on top, takes
///   up to 64 entries off to look for them. If the caller's turns up first, everything
///   above it is treated as a callee's. If neither does, all is put back, as the caller's
///   remaining stack, and the caller's context on top of it; the incident is marked
///   kUnrepaired if the search ended at the limit, or met an entry whose context is
///   destroyed and which therefore cannot be put back.
/// - A callee that leaves an empty stack behind has popped at least the caller's current
///   entry; what lay below cannot be known.
/// - The same handle twice in the stack can make two rows look alike: elided, caller [B,B],
///   a replaced top looks like a leaked push; caller [A,A], an extra pop looks like a
///   replaced top; caller [A,B,A], an extra pop looks like a leaked push.
///
/// What leaves *our own* context on top can go unseen, since it is what the guard looks
/// for: above all a push of it that a callee leaves behind.
///
/// - A guard that switched ([X,A,B,B]): the pop returns B, as it should, and the caller
///   is left with [X,A,B]; likewise a callee that pops B and A and pushes B again. Seeing
///   it costs the fourth driver call, which the default mode does not make: kAlwaysPush
///   looks once more after its pop, and repairs it.
/// - The caller's context is ours ([X,B,B], or [X,B,B,B] in kAlwaysPush): what is current
///   is right all along, and only kExact can see that the stack has grown or shrunk.
///
/// kExact has no such cases at all.

/// Note [Moving to another context]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// A loop over objects in many contexts needs one guard, which moves:
///
///   cuguest::ContextGuard guard;                         // inside nothing
///   for (const Descriptor& each : descriptors) {
///     const CUresult code = guard.MoveTo(each.context);  // a ContextRef
///     if (code != CUDA_SUCCESS) return cuguest::ToStatus(guard);
///     ...
///   }                                                    // the caller's context again
///
/// The stack is at any time what a new guard would have made of the caller's, and what a callee did
/// to it is found and repaired as if the guard had ended and another one begun: MoveTo only saves
/// driver calls. (A move that stays where it is looks at the top alone, as Reassert does, and
/// leaves the rest to the next one or the end; in kExact it looks at everything.) The caller's
/// stack is [X,A]:
///
///   the guard is             | MoveTo      | the stack then | driver calls
///   -------------------------+-------------+----------------+---------------------------
///   empty, or has ended      | B           | [X,A,B]        | as construction
///   in B, or elided in A     | the same    | as it was      | query
///   elided in A              | B           | [X,A,B]        | query, push
///   in B, which it pushed    | C           | [X,A,C]        | query, set
///   in B, which it pushed    | A           | [X,A], elided  | pop, query
///   in B, kAlwaysPush        | C           | [X,A,C]        | as its end and construction
///   in B, kExact             | any         | [X,A] and it   | as its end and construction
///   in B, and disturbed      | any other   | [X,A,C]        | repair, then as construction
///
/// and one query more for a ContextRef that is not where the guard is: a move by reference to an
/// incarnation that is over is refused before anything is done. An entry is replaced by set only
/// where it is the guard's own for certain: the caller's is never replaced.
///
/// A move that fails leaves the guard where it was, so that a loop may go on with the next object.
/// Incidents name the place where the guard entered what was disturbed: the construction, or the
/// MoveTo.

/// Note [Handles and incarnations]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// A handle is used again: a primary context that was reset comes back at its handle, and so
/// may a destroyed context's handle as somebody else's. A guard that was built from a ContextRef
/// knows the incarnation it entered, and neither enters nor puts back another one.
///
/// - On the way out a handle on top is enough: an entry keeps its context's memory, so that
///   as long as the guard's entry is on the stack no other context can have its handle
///   (cudasim/test/destroyed_facts_test.cc).
/// - An entry that has to be put back on the stack is pushed only if its context is alive, and
///   the incarnation it was if that is known: of the guard's context from the ContextRef, of
///   the caller's from an outer guard around it that was built from one, of everything in
///   kExact. A primary context that was reset and retained again is put back; its entry on
///   the stack would have come back in the same way.
/// - Where nothing is known of an entry but its handle (the caller's in kElide and
///   kAlwaysPush, since asking for its id would cost every guard a driver call), and a callee
///   took it off, destroyed its context and let another begin at the handle, that other one is
///   put back. The incident is then marked kInferred.
/// - Below CUDA 12.0 there are no ids: a destroyed handle is noticed, and a primary context
///   that is reset, but not another incarnation at the same handle.

enum class GuardMode : unsigned char {
  /// No push when the context is already current: two contention-free queries. With
  /// 16 threads in one context that is over fifty times cheaper than a push and a pop,
  /// because the driver counts those atomically.
  kElide,
  /// Always push, and prove the caller's context current after the pop: the caller's
  /// entry survives also a callee that replaces the top.
  kAlwaysPush,
  /// Take the whole stack off on entry and put it back, and compare entry by entry on
  /// exit. For tests and debugging.
  kExact,
};

class ContextGuard;
class ContextScope;

/// What ContextGuard and ContextScope are but for their beginning and their end, and for the room
/// for what a guard remembers in kExact. Not for embedders.
class CUGUEST_API GuardBase : private internal::StackGuard {
 public:
  GuardBase(const GuardBase&) = delete;
  GuardBase& operator=(const GuardBase&) = delete;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return result() == CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept {
    if (result_ != CUDA_SUCCESS) asked_ = true;
    return result_;
  }
  [[nodiscard]] CUGUEST_HIDE const char* doing() const noexcept { return "enter a context"; }
  [[nodiscard]] const char* advice() const noexcept;

  /// The guard's context; nullptr if it is empty.
  [[nodiscard]] CUGUEST_HIDE CUcontext get() const noexcept { return ours_.context; }
  /// What was current when it entered; nullptr if nothing was.
  [[nodiscard]] CUGUEST_HIDE CUcontext caller() const noexcept { return caller_; }
  /// Whether it is inside without having pushed.
  [[nodiscard]] CUGUEST_HIDE bool elided() const noexcept { return state_ == State::kElided; }

  /// After a call into foreign code: makes the guard's context current again if it is
  /// not, and reports who it was expected to be. The caller's entries below are
  /// repaired at the same time, by the same rules as at the end of the scope.
  ///
  /// Stack:  as right after construction.
  /// Errors: the code with which re-entering failed; the guard is then no longer
  ///         ok(), and the caller's context is current. CUDA_ERROR_ILLEGAL_STATE, and
  ///         nothing done, of an empty guard, after Restore() and on another thread.
  /// Cost:   one driver call when nothing is wrong, two when built from a ContextRef
  ///         (kExact: as leaving and entering).
  CUresult Reassert() noexcept;

  /// Makes `context`, which must be alive, the guard's: see Note [Moving to another context]. One
  /// that is empty, or whose scope has ended, enters it in the mode that it was constructed with,
  /// and is bound to the calling thread from then on. caller() stays what it was when it entered.
  ///
  /// Stack:  as right after constructing a guard of `context` in place of this one.
  /// Errors: those of construction. The guard is where it was, and may be moved on; the end of the
  ///         scope restores the caller's stack as ever. result() is the code until a MoveTo() or
  ///         Reassert() succeeds. Where a driver call fails in the middle of leaving one context
  ///         and entering the other, the guard may be outside, with the caller's context current;
  ///         Reassert() tells.
  ///         CUDA_ERROR_ILLEGAL_STATE, and nothing done: another guard of this copy of cuguest is
  ///         inside it, a HostScope has taken it out, or it is bound to another thread (result()
  ///         stays what it was then).
  /// Cost:   in that Note: two driver calls for a change, one where there is none; one more by
  ///         reference.
  [[nodiscard]] CUGUEST_HIDE CUresult MoveTo(CUcontext context, const char* file = __builtin_FILE(),
                                             int line = __builtin_LINE()) noexcept {
    return Move(internal::Incarnation::Unknown(context), {file, line});
  }
  /// The same, refused if the ref's context was destroyed or reset.
  [[nodiscard]] CUGUEST_HIDE CUresult MoveTo(const ContextRef& context,
                                             const char* file = __builtin_FILE(),
                                             int line = __builtin_LINE()) noexcept {
    return Move(internal::Incarnation::Of(context), {file, line});
  }

  /// Ends the scope now. Does nothing the second time, nor of an empty guard.
  ///
  /// Errors: CUDA_SUCCESS when the caller's stack is as it was, or was repaired;
  ///         otherwise the driver's code that prevented it (also in the incident).
  ///         CUDA_ERROR_ILLEGAL_STATE, and nothing done, on another thread than its own:
  ///         the scope can still be ended there.
  CUGUEST_HIDE CUresult Restore() noexcept {
    internal::ThisThread& here = internal::t_this_thread;
    // A guard that is out can be the innermost: where one was destroyed on another thread, this
    // thread's list names its address.
    const State state = state_;
    const bool is_in_line = state >= State::kElided && state <= State::kPushedAlways;
    if (Rarely(!is_in_line || here.innermost != this)) return Leave();
    CUcontext top;
    const CUresult code =
        Mostly(state == State::kElided) ? internal::GetCurrent(&top) : internal::Pop(&top);
    if (Rarely(code != CUDA_SUCCESS || top != ours_.context)) {
      return LeaveDisturbed(code, code == CUDA_SUCCESS ? top : nullptr);
    }
    if (Rarely(state == State::kPushedAlways) && !CallerIsCurrent()) {
      return LeaveDisturbed(code, top);
    }
    here.innermost = outer;
    state_ = State::kOut;
    return CUDA_SUCCESS;
  }

 private:
  friend class ContextGuard;
  friend class ContextScope;
  friend class HostScope;
  friend class internal::GuardInStorage;
  friend class internal::HandleScope;
  enum class State : unsigned char {
    kOut,
    kGone,       // out, and leaving has shown that its context was destroyed
    kSuspended,  // out for the time of a HostScope
    kElided,
    kPushed,  // in mode kElide
    kPushedAlways,
    kExact,
  };

  CUGUEST_HIDE explicit GuardBase(GuardMode mode) noexcept { SetEmpty(mode); }
  CUGUEST_HIDE GuardBase() noexcept {}  // NOLINT(modernize-use-equals-default): sets nothing
  CUGUEST_HIDE ~GuardBase() = default;

  // Restore() of a guard by ContextRef whose context was just found current and alive, where
  // nothing was called since that could change the stack. No driver call. Does nothing if the guard
  // pushed: what lies below is not known before it pops.
  CUGUEST_HIDE void LeaveSeen() noexcept {
    internal::ThisThread& here = internal::t_this_thread;
    if (state_ != State::kElided || here.innermost != this) return;
    here.innermost = outer;
    state_ = State::kOut;
  }

  // What the compiler is to lay out in line: an elided guard that nobody disturbs.
  CUGUEST_HIDE static constexpr bool Mostly(bool is_so) { return __builtin_expect(is_so, true); }
  CUGUEST_HIDE static constexpr bool Rarely(bool is_so) { return __builtin_expect(is_so, false); }

  // In line is what an elided guard does, and no more, so that it is laid out in line also where a
  // compiler minds the size. Members are set when the driver has been called: with these stores
  // before its push a guard that switched took 1.5 times a push and a pop on an H100, and without
  // them 1.4.
  CUGUEST_HIDE void Enter(CUcontext context, GuardMode mode, Location where) noexcept {
    CUcontext caller = nullptr;
    CUresult code = CUDA_ERROR_INVALID_CONTEXT;
    if (Mostly(context != nullptr)) code = internal::GetCurrent(&caller);
    const bool is_elided = mode == GuardMode::kElide && code == CUDA_SUCCESS && caller == context;
    if (Rarely(!is_elided)) return EnterBeside(context, mode, where, code, caller);
    SetInside(internal::Incarnation::Unknown(context), mode, where, CUDA_SUCCESS, State::kElided,
              context);
  }
  CUGUEST_HIDE void Enter(const ContextRef& context, GuardMode mode, Location where) noexcept {
    const internal::Incarnation ours = internal::Incarnation::Of(context);
    unsigned long long id;
    const bool is_elided = mode == GuardMode::kElide && internal::t_this_thread.expects_current &&
                           internal::GetId(nullptr, &id) == CUDA_SUCCESS && id == ours.id;
    if (Rarely(!is_elided)) return EnterAsking(context, mode, where);
    SetInside(ours, mode, where, CUDA_SUCCESS, State::kElided, ours.context);
  }

  CUGUEST_HIDE static constexpr State StateOfPush(GuardMode mode) noexcept {
    return mode == GuardMode::kElide ? State::kPushed : State::kPushedAlways;
  }
  CUGUEST_HIDE void Set(const internal::Incarnation& ours, GuardMode mode, Location where,
                        CUresult result, State state, CUcontext caller) noexcept {
    ours_ = ours;
    caller_ = caller;
    file_ = where.file;
    line_ = where.line;
    result_ = result;
    mode_ = mode;
    asked_ = !internal::kReportsUnasked;
    state_ = state;
  }
  CUGUEST_HIDE void SetEmpty(GuardMode mode) noexcept {
    Set(internal::Incarnation::Unknown(nullptr), mode, {nullptr, 0}, CUDA_SUCCESS, State::kOut,
        nullptr);
  }
  CUGUEST_HIDE void SetInside(const internal::Incarnation& ours, GuardMode mode, Location where,
                              CUresult result, State state, CUcontext caller) noexcept {
    const bool is_inside = Mostly(result == CUDA_SUCCESS);
    Set(ours, mode, where, result, is_inside ? state : State::kOut, caller);
    if (is_inside) Link(internal::t_this_thread);
  }
  CUGUEST_HIDE void Link(internal::ThisThread& here) noexcept {
    type = &kType;
    thread = Mostly(here.number != 0) ? here.number : internal::NumberOfThisThread();
    outer = here.innermost;
    here.innermost = this;
  }

  [[nodiscard]] CUGUEST_HIDE bool CallerIsCurrent() const noexcept {
    CUcontext current = nullptr;
    return internal::GetCurrent(&current) == CUDA_SUCCESS && current == caller_;
  }

  static const Type kType;

  void EnterBeside(CUcontext context, GuardMode mode, Location where, CUresult code,
                   CUcontext caller) noexcept;
  void EnterAsking(const ContextRef& context, GuardMode mode, Location where) noexcept;
  void EnterSpecially(const internal::Incarnation& ours, GuardMode mode, Location where,
                      CUresult code, CUcontext caller) noexcept;
  void EnterAs(internal::Incarnation ours, GuardMode mode, Location where) noexcept;
  void EnterNone() noexcept;
  void EnterExactly() noexcept;
  CUresult Move(const internal::Incarnation& to, Location where) noexcept;
  CUresult MoveInside(const internal::Incarnation& to, Location where) noexcept;
  CUresult LeaveAndEnter(const internal::Incarnation& to, Location where) noexcept;
  void SetPlace(const internal::Incarnation& ours, Location where) noexcept;
  CUresult Identify() noexcept;
  void Reenter() noexcept;
  CUresult Suspend() noexcept;
  bool SuspendIfOnTop() noexcept;
  bool IsAllOnTop() const noexcept;
  CUGUEST_HIDE bool IsInside() const noexcept { return state_ >= State::kElided; }
  CUGUEST_HIDE bool IsInnermost() const noexcept {
    return internal::t_this_thread.innermost == this;
  }
  CUGUEST_HIDE bool IsOfNone() const noexcept { return ours_.context == nullptr; }
  CUresult Leave() noexcept;
  CUresult LeaveDisturbed(CUresult code, CUcontext top) noexcept;
  void GiveUp() noexcept;
  bool GiveTo(StackGuard* to) noexcept;
  internal::Incarnation Caller() const noexcept;
  internal::Finding Mend(const internal::Incarnation& caller, CUresult code,
                         CUcontext popped) const noexcept;

  // In kExact: the ContextGuard that this is.
  ContextGuard& Exact() noexcept;
  const ContextGuard& Exact() const noexcept;

  internal::Incarnation ours_;  // unknown if built from a handle
  CUcontext caller_;
  const char* file_;
  int line_;
  CUresult result_;
  GuardMode mode_;
  mutable bool asked_;
  State state_;
};

/// ContextGuard
///
/// Stack:   +1 or +0 on construction, undone on destruction; net 0 over the scope.
/// Count:   none; it keeps nothing alive. That is the caller's business.
/// Threads: bound to the thread that entered; destroy it there, in reverse order of entering.
///          Ended on another, it leaves both threads' stacks alone and reports kElsewhere; its own
///          thread keeps the entry.
/// Cost:    driver calls when nothing went wrong:
///            kElide       2 elided (query, query), 3 switched (query, push, pop)
///            kAlwaysPush  4 (query, push, pop, query)
///            kExact       about 10 for every entry of the stack
///          and one more (cuCtxGetId) when built from a ContextRef, except in kElide where
///          the last such guard on the thread was elided: then the current context's id is
///          what it asks for, 2 calls if it is elided too and 5 if it switches (the costs
///          in other headers count such a guard as 3 and 4). No lock, no
///          allocation; one thread_local. test/context/guard_cost_test.cc counts them.
/// Errors:  construction never throws, never aborts: test ok(). A guard that failed
///          to enter has changed nothing and will restore nothing. One whose ok() or
///          result() is never asked reports kUnasked when it ends, if the file that
///          constructs it is compiled without NDEBUG. result() is
///            CUDA_ERROR_INVALID_CONTEXT       nullptr, or an empty ContextRef
///            CUDA_ERROR_CONTEXT_IS_DESTROYED  the ContextRef's context was destroyed or reset
///            CUDA_ERROR_NOT_INITIALIZED       a forked child, see advice()
///            CUDA_ERROR_NOT_PERMITTED         inside a stream callback
///            CUDA_ERROR_NOT_SUPPORTED         kExact only: the stack is deeper than
///                                             kMaxExactDepth or holds a dead entry
///            CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, _STUB_LIBRARY,
///            _CALL_REQUIRES_NEWER_DRIVER      no usable driver, see driver.h
///          ToStatus(guard) turns it into a status with the advice in words.
///          CUDA_ERROR_DEINITIALIZED on the way out counts as success: the process
///          is ending and there is no stack left to restore.
/// Source:  CUDA Driver API, "Context Management"; test/context/repair_table_test.cc
///          runs every row of the table above in every mode.
class [[nodiscard]] CUGUEST_API ContextGuard : public GuardBase {
 public:
  /// Entries that kExact can hold; the guard has room for them so as not to allocate.
  CUGUEST_HIDE static constexpr int kMaxExactDepth = 32;

  /// Inside nothing, until MoveTo() enters: an empty guard is ok(), has no context, and its end
  /// does nothing. No driver call. `mode` is what it will enter in.
  [[nodiscard]] CUGUEST_HIDE explicit ContextGuard(GuardMode mode = GuardMode::kElide) noexcept
      : GuardBase(mode) {}

  /// Enters `context`, which must be alive: a destroyed handle that is pushed
  /// corrupts the driver's heap, and no driver call can tell for certain. Give a
  /// ContextRef where it may have been destroyed or reset meanwhile: exact for a reset, best effort
  /// for a destroyed context, as ContextRef::IsAlive says.
  /// nullptr is refused rather than read as "none": for that, see NoContextGuard.
  ///
  /// `file` and `line` are for incidents. The defaults name the code that constructs the
  /// guard: give a Location where that is the standard library's, as in emplace().
  [[nodiscard]] CUGUEST_HIDE explicit ContextGuard(CUcontext context,
                                                   GuardMode mode = GuardMode::kElide,
                                                   const char* file = __builtin_FILE(),
                                                   int line = __builtin_LINE()) noexcept {
    Enter(context, mode, {file, line});
  }
  [[nodiscard]] CUGUEST_HIDE ContextGuard(CUcontext context, Location where,
                                          GuardMode mode = GuardMode::kElide) noexcept
      : ContextGuard(context, mode, where.file, where.line) {}

  /// The same, refused if the ref's context was destroyed or reset: also when another incarnation
  /// is current at its handle, since everything in the old one is gone.
  [[nodiscard]] CUGUEST_HIDE explicit ContextGuard(const ContextRef& context,
                                                   GuardMode mode = GuardMode::kElide,
                                                   const char* file = __builtin_FILE(),
                                                   int line = __builtin_LINE()) noexcept {
    Enter(context, mode, {file, line});
  }
  [[nodiscard]] CUGUEST_HIDE ContextGuard(const ContextRef& context, Location where,
                                          GuardMode mode = GuardMode::kElide) noexcept
      : ContextGuard(context, mode, where.file, where.line) {}

  // Not for embedders: enters what was found current just now, and calls the driver for nothing.
  // Needs current.IsSeen().
  CUGUEST_HIDE ContextGuard(const internal::CurrentContext& current, Location where) noexcept {
    SetInside(current.Seen(), GuardMode::kElide, where, CUDA_SUCCESS, State::kElided,
              current.Seen().context);
  }

  /// Neither copied nor moved. See Note [Guards do not move].
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

  /// As Restore(), whose result an incident carries.
  CUGUEST_HIDE ~ContextGuard() {
    if (Restore() != CUDA_SUCCESS) GiveUp();
  }

 private:
  friend class GuardBase;
  friend class NoContextGuard;

  // A NoContextGuard's, whose context is none: in mode kExact, which leaves an empty stack then.
  CUGUEST_HIDE ContextGuard(const char* file, int line) noexcept {
    Set({nullptr, 0}, GuardMode::kExact, {file, line}, CUDA_SUCCESS, State::kOut, nullptr);
    EnterNone();
  }

  int exact_depth_;                              // these two in kExact only
  internal::Incarnation exact_[kMaxExactDepth];  // bottom first
};

/// Note [Guards carry CUresult, not Status]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// A guard stands in every function of an embedder, so its header includes <cuda.h> and nothing
/// heavier (Abseil's status header is fourteen times its size), and building a status allocates.
/// ToStatus(guard) of error.h makes one where it is needed.
///
/// Note [Guards do not move]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~
/// A guard restores by stack discipline, so its lifetime must nest. Moving one out of
/// its scope lets guards end out of order, and no answer to "which context is current
/// now?" is then right. A conditional one is empty at first and enters with MoveTo(), or is a
/// std::optional<ContextGuard> and emplace(context, Location::Here()). Where a scope begins in one
/// function and ends in another, ContextScope (context_scope.h) keeps the discipline.

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_GUARD_H_
