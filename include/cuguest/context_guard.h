// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// context_guard.h                                                       tier: 2
// -----------------------------------------------------------------------------
//
// `ContextGuard` makes one CUDA context current for a scope and then leaves the
// calling thread's stack of contexts as it found it: also when something that was
// called inside the scope did not.
//
//   absl::Status Blur(CUcontext context, Image* image) {
//     cuguest::ContextGuard guard(context);
//     if (!guard.ok()) return cuguest::ToStatus(guard);
//     return LaunchBlur(image);          // runs with `context` current
//   }                                    // the caller's context is current again
//
// It calls the driver only: it starts no CUDA runtime, creates no context, and
// never calls cuInit.

#ifndef CUGUEST_CONTEXT_GUARD_H_
#define CUGUEST_CONTEXT_GUARD_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/incident.h"
#include "cuguest/internal/stack_calls.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
class ThreadStack;
struct Finding;
}  // namespace internal

// Note [How a guard restores]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The caller's stack is [X,A] (A is current) and the guard's context is B.
//
//   a callee ...            | the stack then | the guard ...            | incident
//   ------------------------+----------------+--------------------------+------------
//   is clean                | [X,A,B]        | pops                     |
//   replaces the top        | [X,A,P]        | pops                     | kReplaced
//   leaves pushes           | [X,A,B,C..]    | pops until B is gone     | kLeakedPush
//   pops once too often     | [X,A]          | pops A, pushes it back   | kExtraPop
//   destroys B              | [X,A]          | the same; leaves B alone | kDestroyed
//   elided (A is B): top replaced | [X,P]    | puts B back on top       | kReplaced
//   elided: leaves a push   | [X,B,C]        | pops C                   | kLeakedPush
//   elided: pops            | [X]            | pushes B                 | kExtraPop
//   elided: destroys B      | [X]            | leaves it so             | kDestroyed
//
// A context that is destroyed while its entry stays on the stack (from another
// thread, or buried) is popped like any other and nothing is reported: nothing of
// the caller's was disturbed. A handle that is dead is never pushed again, because
// the driver accepts it and corrupts its heap (test/sim/destroyed_facts_test.cc).
//
// Note [What is inferred]
// ~~~~~~~~~~~~~~~~~~~~~~~
// The driver shows the top of the stack and nothing else, not even its depth, and a
// guard does not take the caller's stack apart to look. So:
//
// - An elided guard that finds another context C on top, and not its own beneath
//   (nor beneath a run of the same C), cannot know whether C replaced its context
//   or lay below it all along. If C is a primary context it is taken for a
//   replacement, which is what cudaSetDevice leaves; otherwise for an extra pop.
// - A guard that pushed, and finds neither its own context nor the caller's on top, takes
//   up to 64 entries off to look for them. If the caller's turns up first, everything
//   above it is taken for a callee's. If neither does, all is put back, as the caller's
//   remaining stack, and the caller's context on top of it; the incident is marked
//   kUnrepaired if the search ended at the limit, or met an entry whose context is
//   destroyed and which therefore cannot be put back.
// - A callee that leaves an empty stack behind has popped at least the caller's current
//   entry; what lay below cannot be known.
//
// Such an incident is marked `Repair::kInferred`. The caller's context is current
// in every one of these cases; only the depth may be off. The same handle twice in
// the stack can make two of the rows above look alike, with the same effect and
// without the mark:
//
// - elided, caller [B,B]: a replaced top looks like a leaked push;
// - caller [A,A]: an extra pop looks like a replaced top;
// - caller [A,B,A]: an extra pop looks like a leaked push.
//
// What leaves *our own* context on top can go unseen, since it is what the guard looks
// for: above all a push of it that a callee leaves behind.
//
// - A guard that switched ([X,A,B,B]): the pop returns B, as it should, and the caller
//   is left with [X,A,B]; likewise a callee that pops B and A and pushes B again. Seeing
//   it costs the fourth driver call, which the default mode does not make: kAlwaysPush
//   looks once more after its pop, and repairs it.
// - The caller's context is ours ([X,B,B], or [X,B,B,B] in kAlwaysPush): what is current
//   is right all along, and only kExact can see that the stack has grown or shrunk.
//
// kExact has no such cases at all.

enum class GuardMode : unsigned char {
  // No push when the context is already current: two contention-free queries. With
  // 16 threads in one context that is some fifty times cheaper than a push and a pop,
  // because the driver counts those atomically.
  kElide,
  // Always push, and prove the caller's context current after the pop: the caller's
  // entry survives also a callee that replaces the top.
  kAlwaysPush,
  // Take the whole stack off on entry and put it back, and compare entry by entry on
  // exit. For tests and debugging.
  kExact,
};

// ContextGuard
//
// Stack:   +1 or +0 on construction, undone on destruction; net 0 over the scope.
// Count:   none; it keeps nothing alive. That is the caller's business.
// Threads: bound to the constructing thread; end it there, in reverse order of
//          construction.
// Cost:    driver calls when nothing went wrong:
//            kElide       2 elided (query, query), 3 switched (query, push, pop)
//            kAlwaysPush  4 (query, push, pop, query)
//            kExact       about 10 for every entry of the stack
//          and one more (cuCtxGetId) when built from a ContextRef. No lock, no
//          allocation, no other work. test/context/guard_cost_test.cc counts them.
// Errors:  construction never throws, never aborts: test ok(). A guard that failed
//          to enter has changed nothing and will restore nothing. result() is
//            CUDA_ERROR_INVALID_CONTEXT       nullptr, or an empty ContextRef
//            CUDA_ERROR_CONTEXT_IS_DESTROYED  the ContextRef's life is over
//            CUDA_ERROR_NOT_INITIALIZED       a forked child, see advice()
//            CUDA_ERROR_NOT_PERMITTED         inside a stream callback
//            CUDA_ERROR_NOT_SUPPORTED         kExact only: the stack is deeper than
//                                             kMaxExactDepth or holds a dead entry
//            CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, _STUB_LIBRARY,
//            _CALL_REQUIRES_NEWER_DRIVER      no usable driver, see driver.h
//          ToStatus(guard) turns it into a status with the advice in words.
//          CUDA_ERROR_DEINITIALIZED on the way out counts as success: the process
//          is ending and there is no stack left to restore.
// Source:  CUDA Driver API, "Context Management"; test/context/repair_table_test.cc
//          runs every row of the table above in every mode.
class [[nodiscard]] CUGUEST_API ContextGuard {
 public:
  // Entries that kExact can hold; the guard has room for them so as not to allocate.
  static constexpr int kMaxExactDepth = 32;

  // Enters `context`, which must be alive: a destroyed handle that is pushed
  // corrupts the driver's heap, and no driver call can tell for certain. Give a
  // ContextRef where it may have been destroyed or reset meanwhile.
  // nullptr is refused rather than read as "none": for that, see NoContextGuard.
  explicit ContextGuard(CUcontext context, GuardMode mode = GuardMode::kElide,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept
      : context_(context), file_(file), line_(line), mode_(mode) {
    CUcontext current = nullptr;
    result_ = context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : internal::GetCurrent(&current);
    caller_ = current;
    if (result_ != CUDA_SUCCESS || mode != GuardMode::kElide) {
      Enter();
    } else if (current == context) {
      state_ = State::kElided;
    } else {
      result_ = internal::Push(context);
      state_ = result_ == CUDA_SUCCESS ? State::kPushed : State::kOut;
    }
  }

  // The same, refused if the ref's life is over: also when its handle is current
  // and has begun another, since everything that lived in the old one is gone.
  explicit ContextGuard(const ContextRef& context, GuardMode mode = GuardMode::kElide,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept;

  // Neither copied nor moved. See Note [Guards do not move].
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

  // As Restore(), whose result an incident carries.
  ~ContextGuard() { static_cast<void>(Restore()); }

  [[nodiscard]] bool ok() const noexcept { return result_ == CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }
  [[nodiscard]] const char* doing() const noexcept { return "enter a context"; }
  [[nodiscard]] const char* advice() const noexcept;

  // The guard's context.
  [[nodiscard]] CUcontext get() const noexcept { return context_; }
  // What was current when it entered; nullptr if nothing was.
  [[nodiscard]] CUcontext caller() const noexcept { return caller_; }
  // Whether it is inside without having pushed.
  [[nodiscard]] bool elided() const noexcept { return state_ == State::kElided; }

  // After a call into foreign code: makes the guard's context current again if it is
  // not, and reports who it was expected to be. The caller's entries below are
  // repaired at the same time, by the same rules as at the end of the scope.
  //
  // Stack:  as right after construction.
  // Errors: the code with which re-entering failed; the guard is then no longer
  //         ok(), and the caller's context is current.
  // Cost:   one driver call when nothing is wrong (kExact: as leaving and entering).
  CUresult Reassert() noexcept;

  // Ends the scope now. Does nothing the second time.
  //
  // Errors: CUDA_SUCCESS when the caller's stack is as it was, or was repaired;
  //         otherwise the driver's code that prevented it (also in the incident).
  CUresult Restore() noexcept {
    if (state_ != State::kElided && state_ != State::kPushed) return Leave();
    CUcontext top = nullptr;
    const CUresult code =
        state_ == State::kElided ? internal::GetCurrent(&top) : internal::Pop(&top);
    if (code != CUDA_SUCCESS || top != context_) return LeaveDisturbed(code, top);
    state_ = State::kOut;
    return CUDA_SUCCESS;
  }

 private:
  friend class HostScope;
  friend class ThreadResidency;
  enum class State : unsigned char {
    kOut,
    kGone,  // out, and leaving has shown that context_ was destroyed
    kElided,
    kPushed,  // in mode kElide
    kPushedAlways,
    kExact,
  };

  void Enter() noexcept;
  void Abandon() noexcept { state_ = State::kOut; }  // leaves the stack as it is
  bool IsInside() const noexcept { return state_ != State::kOut && state_ != State::kGone; }
  CUresult Prepare() noexcept;
  void Reenter() noexcept;
  CUresult Leave() noexcept;
  CUresult LeaveDisturbed(CUresult code, CUcontext top) noexcept;
  internal::Finding Mend(const internal::ThreadStack& stack, CUresult code,
                         CUcontext popped) const noexcept;

  // Written once each where the constructor knows them: a store before the push has to be
  // drained by the driver's atomic operations.
  CUcontext context_;
  CUcontext caller_;
  const char* file_;
  unsigned long long id_ = 0;  // of the ContextRef it was built from; 0: not checked
  int line_;
  CUresult result_;
  GuardMode mode_;
  State state_;
  int exact_depth_;                  // these two in kExact only
  CUcontext exact_[kMaxExactDepth];  // bottom first
};

// Note [Guards carry CUresult, not Status]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A guard stands in every function of an embedder, so its header includes <cuda.h>
// and nothing heavier (Abseil's status header is fourteen times its size), and
// building a status allocates. Whoever needs one calls ToStatus(guard) of error.h.
//
// Note [Guards do not move]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A guard restores by stack discipline, so its lifetime must nest. Moving one out of
// its scope lets guards end out of order, and no answer to "which context is current
// now?" is then right. For a conditional one use std::optional<ContextGuard> and
// emplace().

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CONTEXT_GUARD_H_
