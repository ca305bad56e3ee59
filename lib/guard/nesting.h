// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is done to the driver's stack for a record (records.h): entered, left, verified, repaired,
// moved, with the driver resolved; and what the scopes that hold records have beside
// cuguest/internal/scope.h.                                                               tier: 2

#ifndef CUGUEST_LIB_GUARD_NESTING_H_
#define CUGUEST_LIB_GUARD_NESTING_H_

#include <cuda.h>

#include "cuguest/internal/compiler.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

namespace nesting {

// What is done to the records of a kind that few programs enter. The source of what enters it has
// them and calls Register() first, and nothing else names them: an archive's user that does not
// enter that kind does not link them.
struct KindCalls {
  CUresult (*enter)(Record*);                        // of kExact: as Enter()
  Finding (*repair)(const Record&);                  // of kExact: what Leave() finds
  bool (*is_on_top)(const Record&);                  // of kExact, whose context is current
  CUresult (*close)(unsigned slot, Location where);  // of kHost and kCaptureMode: as Close()
  CUresult (*reassert)(unsigned slot);               // of kCaptureMode: as Reassert()
};
constexpr unsigned kKinds = static_cast<unsigned>(Record::Kind::kCaptureMode) + 1;
extern const KindCalls* g_calls_of[kKinds];  // atomic; each is set once

inline void Register(Record::Kind kind, const KindCalls& calls) noexcept {
  const KindCalls** const place = &g_calls_of[static_cast<unsigned>(kind)];
  if (CUGUEST_INTERNAL_UNLIKELY(LoadRelaxed(place) == nullptr)) {
    StoreRelaxed(place, &calls);
  }
}
// Needs a record whose kind has them.
inline const KindCalls& CallsOf(const Record& record) noexcept {
  return *LoadRelaxed(&g_calls_of[static_cast<unsigned>(record.kind)]);
}

// Enters record->ours on what is current (`current`, if that is known already) and makes the record
// live; of kExact the whole stack is remembered. On failure the stack is as it was.
CUresult Enter(Record* record, const CUcontext* current) noexcept;

// Ends the topmost open record: leaves, verifies and repairs, reports, and gives the record back.
// The result is what the end of a scope returns.
CUresult Close(unsigned slot, Location where) noexcept;
// The same, where asking for the top, or popping it, has given `code` and `popped`.
CUresult CloseDisturbed(unsigned slot, CUresult code, CUcontext popped) noexcept;
// Closes those that have ended and are on top by now, and gives back the places of those that are
// free there. Whether one was closed.
bool CloseEnded() noexcept;

// Whether the record is the topmost open one of its resource, once the pushes of cuguest_push()
// above it are given back whose entries somebody else has popped. Driver calls only where there are
// pushes above it.
bool IsTopmost(unsigned slot) noexcept;
// Gives those back. What makes such a push has it, as sources have KindCalls; before the first
// there is nothing to do.
extern void (*g_forget_popped)();  // atomic; set once
inline void RegisterForgetPopped(void (*forget)()) noexcept {
  if (CUGUEST_INTERNAL_UNLIKELY(LoadRelaxed(&g_forget_popped) == nullptr)) {
    StoreRelaxed(&g_forget_popped, forget);
  }
}
inline void ForgetPopped() noexcept {
  const auto forget = LoadRelaxed(&g_forget_popped);
  if (forget != nullptr) forget();
}
// Whether it is a push of cuguest_push(), which anybody may pop.
inline bool IsPush(const Record& record) noexcept {
  return record.owner == Record::Owner::kNobody && record.state == Record::State::kLive;
}

// Of the topmost open record, which is kElided or kPushed. Where it could not enter again, it is
// kGone; a listener may have closed it.
CUresult Move(unsigned slot, const Incarnation& to, Location where) noexcept;
CUresult Reassert(unsigned slot) noexcept;  // or kExact or kCaptureMode

// What leaving gave when the scope was moved or reasserted, and its end is to return: the caller's
// context is over, or its stack could not be restored. What those two return is about the context
// that they enter.
inline CUresult Owed(const Record& record) noexcept {
  return record.owner == Record::Owner::kStaleScope ? record.owed : CUDA_SUCCESS;
}

// The parts of these, for the kinds that are in sources of their own.

// Of a scope that has taken everything off the stack.
inline bool IsOfNone(const Record& record) noexcept { return record.ours.context == nullptr; }

// What the end of a scope finds first: the code of asking for the top, or of popping it, and what
// it gave. It is clean if that is all there is to do.
struct FirstLook {
  CUresult code;
  CUcontext popped;
  bool is_clean;
};
FirstLook Look(const Record& record) noexcept;
// As Close(), after Look().
CUresult CloseAfter(unsigned slot, const FirstLook& look, Location where) noexcept;
// Takes the record out, as the end of its scope would leave it, for the HostScope at `host`, which
// returns what leaving gives; for nobody (kNowhere), the end of the scope owes that.
CUresult LeaveFor(unsigned slot, const FirstLook& look, unsigned host) noexcept;
// Out until it is entered again or given back. Its entries are let go.
void PutOut(Record* record, const Finding& finding, unsigned host) noexcept;
// Makes the incarnation known; for certain while the context's entry is on the stack.
CUresult Identify(Record* record) noexcept;
// Enters one that is out again, unless its context is gone: pushing a destroyed handle is accepted
// and corrupts the driver's heap.
CUresult EnterAgain(Record* record) noexcept;

}  // namespace nesting

// A scope has ended; the stack is put back when those have ended that are inside it, or, for one
// that was ended on another thread, when its own thread comes to it.
constexpr CUresult kEndsLater = CUDA_ERROR_NOT_READY;

// What a scope can add to the driver's words, because it knows what it was asked: a phrase with
// static storage; empty where there is nothing to add.
const char* Advice(CUresult code) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_GUARD_NESTING_H_
