// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of cuguest_push() and cuguest_pop(): scopes that no object stands for.

#include <algorithm>

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using nesting::IsOfNone;
using nesting::IsPush;

// A thread's stack, the lowest entry first. Of what lies below an entry whose context is over
// nothing is known, since that entry could not be put back.
struct Seen {
  static constexpr long kMost = 63;

  CUcontext entries[kMost];
  long count = 0;
  bool is_all = true;
};

// Takes the stack off and puts it back. False if it is deeper than is looked at, or the driver
// refuses.
bool See(Seen* seen) {
  RemovedEntries taken;
  StackEntry top;
  CUcontext popped = nullptr;
  CUresult code = CUDA_SUCCESS;
  while (taken.count() < Seen::kMost && (code = stack::Look(&top)) == CUDA_SUCCESS &&
         !top.is_dead && (code = stack::Pop(&popped)) == CUDA_SUCCESS) {
    taken.Add(top);
  }
  static_cast<void>(stack::PutBack(taken));
  seen->is_all = code == CUDA_ERROR_INVALID_CONTEXT;
  if (!seen->is_all) {
    if (code != CUDA_SUCCESS || taken.count() == Seen::kMost) return false;
    seen->entries[seen->count++] = top.incarnation.context;
  }
  for (long i = 0; i < taken.count(); ++i) {
    seen->entries[seen->count++] = taken.FromBottom(i).incarnation.context;
  }
  return true;
}

// Which pushes are on the stack, and which somebody else has popped. An entry lies above those of
// the records before it, and a pushed one right above what its record found. Of the ways to find
// entries for the records it is the one with most scopes, whose entries are nobody else's to pop;
// of those the one that leaves fewest pushes unexplained, which found what cannot have been there;
// of those the one with most pushes, and with the older ones.
class Match {
 public:
  explicit Match(const Seen& seen) : seen_(seen) {
    Choose();
    Find();
  }

  // One that is not among those that were looked at is there, as far as is known.
  bool IsGone(unsigned slot) const {
    for (unsigned i = 0; i < count_; ++i) {
      if (slots_[i] == slot) return !is_there_[i] && IsPush(records::At(slot));
    }
    return false;
  }

 private:
  static constexpr unsigned kMost = 64;
  static constexpr int kUnexplained = kMost + 1;           // counts more than all pushes,
  static constexpr int kScope = kMost * kUnexplained + 1;  // and this more than all of those
  static constexpr int kNever = -(1 << 30);

  // The last records that are on the stack, the last one first. Those below a scope that has taken
  // everything off are not on it; where it is not known as a whole, those below the last scope are
  // not looked for.
  void Choose() {
    for (unsigned slot = records::Depth(); slot-- > 0 && count_ < kMost;) {
      const Record& record = records::At(slot);
      if (!records::IsOpen(record) || record.kind > Record::Kind::kExact) continue;
      if (IsOfNone(record)) break;
      slots_[count_++] = slot;
      if (!seen_.is_all && !IsPush(record)) break;
    }
  }

  const Record& At(unsigned i) const { return records::At(slots_[i]); }
  bool CanLie(const Record& record, long place) const {
    if (seen_.entries[place] != record.ours.context) return false;
    if (record.kind == Record::Kind::kElided) return true;
    if (record.kind == Record::Kind::kExact) return place == static_cast<long>(record.entry_count);
    const bool is_lowest = place == 0;
    return is_lowest ? IsOnUnknown(place) || record.caller == nullptr
                     : seen_.entries[place - 1] == record.caller;
  }
  // Whether nothing says what the entry at `place` was pushed on.
  bool IsOnUnknown(long place) const { return place == 0 && !seen_.is_all; }
  // Where its entry lies, above one at `above`; -1 if it cannot. As low as it can, since that
  // leaves most room to those above it; at the lowest place, if that is on what is not known, only
  // where no other can be.
  long PlaceOf(unsigned i, long above) const {
    const bool can_be_same = At(i).kind == Record::Kind::kElided && above >= 0;
    long on_unknown = -1;
    for (long place = can_be_same ? above : above + 1; place < seen_.count; ++place) {
      if (!CanLie(At(i), place)) continue;
      if (!IsOnUnknown(place)) return place;
      on_unknown = place;
    }
    return on_unknown;
  }
  int WorthAt(unsigned i, long place) const {
    if (!IsPush(At(i))) return kScope;
    return IsOnUnknown(place) ? 0 : 1;
  }
  // What was pushed before it, and is gone, has found what lies below this.
  long EndBefore(unsigned i, long place) const {
    return At(i).kind == Record::Kind::kElided ? place + 1 : place;
  }
  // Whether push `i`, which is gone, can have found its caller's context: between the last entry
  // before it that is there and the end before the next one, or as another push that is gone, too.
  bool CanHaveFound(unsigned i, long above, long end) const {
    const CUcontext caller = At(i).caller;
    if (above < 0 && caller == nullptr) return true;
    for (long place = std::max(above, 0L); place < end; ++place) {
      if (seen_.entries[place] == caller) return true;
    }
    for (unsigned older = i + 1; older < count_ && IsPush(At(older)); ++older) {
      if (At(older).ours.context == caller) return true;
    }
    return false;
  }

  // What the records looked at so far are worth where the last one before them that is there lies
  // at a place, and the end before the first of them that is there is known: in row 1 + the place,
  // column the end.
  using Row = int[Seen::kMost + 1];
  // Of the best the highest, which leaves fewest entries above what is found.
  long BestEnd(const Row& row) const {
    long best = 0;
    for (long end = 1; end <= seen_.count; ++end) {
      if (row[end] >= row[best]) best = end;
    }
    return best;
  }
  void Find() {
    Row rows[Seen::kMost + 1];
    unsigned char next_ends[kMost][Seen::kMost];  // of a record that is there, by its place
    unsigned long long takes[kMost] = {};         // a bit for a row: whether the record is there
    for (Row& row : rows) {
      std::fill(row, row + seen_.count, kNever);
      row[seen_.count] = 0;
    }
    for (unsigned i = 0; i < count_; ++i) {
      const bool is_push = IsPush(At(i));
      // Upwards, since a row is made of those that are no lower.
      for (long above = -1; above < seen_.count; ++above) {
        Row& row = rows[above + 1];
        const long place = PlaceOf(i, above);
        int with = kNever;
        if (place >= 0) {
          const long next_end = BestEnd(rows[place + 1]);
          next_ends[i][place] = static_cast<unsigned char>(next_end);
          with = rows[place + 1][next_end] + WorthAt(i, place);
        }
        for (long end = 0; is_push && end <= seen_.count; ++end) {
          if (row[end] > kNever && !CanHaveFound(i, above, end)) row[end] -= kUnexplained;
        }
        if (place < 0 || with < row[EndBefore(i, place)]) continue;
        row[EndBefore(i, place)] = with;
        takes[i] |= 1ULL << (above + 1);
      }
    }
    long above = -1;
    long end = BestEnd(rows[0]);
    for (unsigned i = count_; i-- > 0;) {
      const long place = PlaceOf(i, above);
      is_there_[i] = (takes[i] >> (above + 1) & 1) != 0 && end == EndBefore(i, place);
      if (!is_there_[i]) continue;
      above = place;
      end = next_ends[i][place];
    }
  }

  const Seen& seen_;
  unsigned slots_[kMost];
  bool is_there_[kMost];
  unsigned count_ = 0;
};

void ForgetPopped() {
  Seen seen;
  if (!See(&seen)) return;
  const Match match(seen);
  for (unsigned slot = records::Depth(); slot-- > 0;) {
    if (match.IsGone(slot)) records::Free(slot);
  }
}

// The push that a pop means which has taken `popped` off for the one at `slot`: that one, or where
// pops by hand have done its work, the next one below it that was there; no scope lies between
// them.
unsigned MeantInstead(unsigned slot, CUcontext popped) {
  Seen seen;
  if (!See(&seen) || seen.count == Seen::kMost) return slot;
  seen.entries[seen.count++] = popped;
  const Match match(seen);
  for (unsigned i = slot + 1; i-- > 0;) {
    const Record& record = records::At(i);
    if (!records::IsOpen(record) || record.kind == Record::Kind::kCaptureMode) continue;
    if (!IsPush(record)) break;
    if (!match.IsGone(i)) return i;
  }
  return slot;
}

CUresult CloseUnowned(unsigned slot) {
  nesting::FirstLook look = nesting::Look(records::At(slot));
  if (look.code != CUDA_SUCCESS) look.code = stack::Pop(&look.popped);
  if (!look.is_clean && look.code == CUDA_SUCCESS) {
    const unsigned meant = MeantInstead(slot, look.popped);
    for (; slot > meant; --slot) {
      if (slot < records::Depth() && IsPush(records::At(slot))) records::Free(slot);
    }
    const Record& record = records::At(meant);
    CUcontext now = nullptr;
    look.is_clean = look.popped == record.ours.context && stack::Current(&now) == CUDA_SUCCESS &&
                    now == record.caller;
  }
  const Record& record = records::At(slot);
  return nesting::CloseAfter(slot, look, {record.file, record.line});
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
    if (!is_sure) return ForgetPopped();
  }
}

}  // namespace

CUresult Scope::PushUnowned(const Incarnation& context) noexcept {
  nesting::RegisterForgetPopped(&ForgetPopped);
  ForgetNowAndThen();
  Scope scope;
  scope.EnterByCall(context, /*always_pushes=*/true, {"(cuguest_push)", 0});
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
