// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of cuguest_push() and cuguest_pop(): scopes that no object stands for.

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using nesting::IsOfNone;
using nesting::IsPush;

// What ForgetPopped() has taken off the stack. Below that lies `dead`, an entry whose context is
// over, or nothing.
struct Looked {
  Taken taken;
  CUcontext dead = nullptr;

  CUcontext At(long place) const {
    return place < taken.count() ? taken.FromTop(place).incarnation.context : dead;
  }
  // The place at or below `place` of `entry` with `beneath` under it; -1 if it is not there.
  long Find(CUcontext entry, CUcontext beneath, long place) const {
    for (; place < taken.count(); ++place) {
      if (At(place) == entry && At(place + 1) == beneath) return place;
    }
    return dead != nullptr && dead == entry && place == taken.count() ? place : -1;
  }
  // Whether what the scopes around the push at `slot` left can lie below `place`. Of what was
  // disturbed when the next one began nothing is known.
  bool HasBelow(unsigned slot, long place) const {
    CUcontext above = records::At(slot).caller;
    bool is_above_push = false;  // which is not there
    while (dead == nullptr && slot-- > 0) {
      const Record& around = records::At(slot);
      if (!records::IsOpen(around) || around.kind == Record::Kind::kCaptureMode) continue;
      const bool is_as_left = around.ours.context == above;
      if (IsPush(around)) {
        if (is_as_left && Find(above, around.caller, place + 1) >= 0) return true;
        is_above_push = is_above_push || (is_as_left && around.caller != above);
        continue;
      }
      if (around.kind == Record::Kind::kHost || IsOfNone(around)) return true;
      if (!is_as_left) break;
      is_above_push = false;
      if (around.kind == Record::Kind::kExact) {
        return taken.count() - (place + 1) > static_cast<long>(around.extra);
      }
      const bool is_pushed = around.kind == Record::Kind::kPushed;
      do {
        if (++place >= taken.count()) return false;
      } while (At(place) != above || (is_pushed && At(place + 1) != around.caller));
      if (is_pushed) above = around.caller;
      if (!is_pushed) --place;  // the next may have left the same entry
    }
    return !is_above_push;
  }
  // The place at or below `place` of what the push at `slot` left; -1 if it is not there.
  long PlaceOf(unsigned slot, long place) const {
    const Record& push = records::At(slot);
    const long found = IsPush(push) ? Find(push.ours.context, push.caller, place) : -1;
    return found >= 0 && HasBelow(slot, found) ? found : -1;
  }
};

void ForgetPopped(unsigned end) {
  unsigned first = end;
  while (first > 0 &&
         (IsPush(records::At(first - 1)) || records::At(first - 1).state == Record::State::kFree)) {
    --first;
  }
  if (first == end) return;
  // Deeper than Taken::kMax nothing is known. An entry whose context is over could not be put back.
  Looked looked;
  Taken& taken = looked.taken;
  StackEntry top;
  CUcontext popped = nullptr;
  CUresult code = CUDA_SUCCESS;
  while (taken.count() < Taken::kMax && (code = stack::Look(&top)) == CUDA_SUCCESS &&
         !top.is_dead && (code = stack::Pop(&popped)) == CUDA_SUCCESS) {
    taken.Add(top);
  }
  static_cast<void>(stack::PutBack(taken));
  const bool is_dead = code == CUDA_SUCCESS && taken.count() < Taken::kMax;
  if (code != CUDA_ERROR_INVALID_CONTEXT && !is_dead) return;
  if (is_dead) looked.dead = top.incarnation.context;
  long place = 0;
  for (unsigned slot = end; slot > first;) {
    // What one of them left right here, those after it have not left.
    unsigned kept = slot;
    while (kept > first && looked.PlaceOf(kept - 1, place) != place) --kept;
    const bool is_here = kept-- > first;
    if (!is_here) kept = slot - 1;
    const long found = is_here ? place : looked.PlaceOf(kept, place);
    if (found >= 0) place = found + 1;
    if (found < 0) records::At(kept).state = Record::State::kFree;
    while (--slot > kept) records::At(slot).state = Record::State::kFree;
  }
  // Those that stay move down, since no scope knows a place of theirs.
  unsigned to = first;
  for (unsigned slot = first; slot < end; ++slot) {
    Record& record = records::At(slot);
    if (record.state == Record::State::kFree) continue;
    Record& place_of = records::At(to++);
    const unsigned long long serial = place_of.serial;
    if (&place_of == &record) continue;
    place_of = record;
    place_of.serial = serial;
    record.state = Record::State::kFree;
  }
  Record& last = records::At(end - 1);
  if (last.state != Record::State::kFree) return;
  last.kind = Record::Kind::kPushed;  // it has no entries to let go of
  records::Free(end - 1);
}

CUresult CloseUnowned(unsigned slot) {
  const Record& record = records::At(slot);
  const Location place{record.file, record.line};
  const nesting::FirstLook look = nesting::Look(record);
  if (look.is_clean) return nesting::CloseAfter(slot, look, place);
  // A pop by hand in between has done what this one was meant for, and this one what an older one
  // was meant for, whose entry it has taken off.
  CUcontext now = nullptr;
  if (look.code == CUDA_SUCCESS && stack::Current(&now) == CUDA_SUCCESS && now != record.caller) {
    for (unsigned i = slot; i-- > 0;) {
      const Record& older = records::At(i);
      if (!records::IsOpen(older) || older.kind == Record::Kind::kCaptureMode) continue;
      if (older.owner != Record::Owner::kNobody) break;
      if (older.caller != now || older.ours.context != look.popped) continue;
      for (unsigned closed = slot + 1; closed-- > i;) {
        if (closed >= records::Depth()) continue;
        if (records::At(closed).owner == Record::Owner::kNobody) records::Free(closed);
      }
      return CUDA_SUCCESS;
    }
  }
  return nesting::CloseAfter(slot, look, place);
}

// Where pushes pile up of which one at least may be gone: what it left was not current when the
// next one began, or is what it found. Now and then, so that a pair costs what it did.
void ForgetNowAndThen() {
  constexpr unsigned kNowAndThen = 16;
  const unsigned depth = records::Depth();
  if (depth == 0 || depth % kNowAndThen != 0) return;
  for (unsigned slot = depth - kNowAndThen; slot < depth; ++slot) {
    const Record& push = records::At(slot);
    if (!nesting::IsPush(push)) continue;
    const bool is_last = slot + 1 == depth;
    const bool is_sure = push.ours.context != push.caller &&
                         (is_last || records::At(slot + 1).caller == push.ours.context);
    if (!is_sure) return ForgetPopped(depth);
  }
}

}  // namespace

CUresult Scope::PushUnowned(CUcontext context) noexcept {
  nesting::BringForgetPopped(&ForgetPopped);
  ForgetNowAndThen();
  Scope scope;
  scope.Enter(context, /*always_pushes=*/true, {"(cuguest_push)", 0});
  if (scope.IsInside()) records::At(scope.slot_).owner = Record::Owner::kNobody;
  scope.serial_ = 0;  // nobody's from now on
  return scope.result();
}

CUresult Scope::PopUnowned() noexcept {
  nesting::CloseEnded();
  for (unsigned slot = records::Depth(); slot-- > 0;) {
    Record& record = records::At(slot);
    if (record.owner != Record::Owner::kNobody || record.state == Record::State::kFree ||
        record.state == Record::State::kEnded) {
      continue;
    }
    if (record.state != Record::State::kLive) {  // a HostScope has it, or had
      records::Free(slot);
      return CUDA_SUCCESS;
    }
    if (slot != records::Top(records::Resource::kContextStack)) {
      records::MarkEnded(&record);
      return kEndsLater;
    }
    const CUresult code = CloseUnowned(slot);
    nesting::CloseEnded();
    return code;
  }
  return CUDA_ERROR_ILLEGAL_STATE;
}

CUGUEST_END_INTERNAL_NAMESPACE
