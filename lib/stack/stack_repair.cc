// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/stack/stack_repair.h"

#include <algorithm>

#include "cuguest/internal/compiler.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// Ends a repair by making `entry` current on top of what is there.
[[gnu::noinline]] Finding PutOnTop(const Incarnation& entry, Incident::Kind kind, CUcontext found) {
  const CUresult code = stack::Push(entry);
  return code == CUDA_SUCCESS ? Finding::Of(kind, Incident::Repair::kInferred, found)
                              : Finding::NotPut(code, kind, found);
}

CUcontext CurrentOf() {
  CUcontext current = nullptr;
  static_cast<void>(stack::Current(&current));
  return current;
}

// False if `taken` is full, the stack is empty, or the driver refuses.
bool Remove(RemovedEntries* taken) {
  return taken->count() < RemovedEntries::kMax && stack::Remove(taken) == CUDA_SUCCESS;
}

// Takes off the run of `same` on top; true if `wanted` is beneath it.
bool RemoveRunDownTo(CUcontext same, CUcontext wanted, RemovedEntries* taken) {
  while (CurrentOf() == same) {
    if (!Remove(taken)) return false;
  }
  return CurrentOf() == wanted;
}

// The caller had nothing current, so whatever is left belongs to a callee: the only repair
// outside of kExact that leaves nothing to be inferred.
Finding EmptyOut(const Incarnation& ours, CUcontext popped) {
  if (popped == nullptr) {
    return Finding::Of(GoneBy(ours, Incident::Kind::kExtraPop), Incident::Repair::kRepaired,
                       nullptr);
  }
  bool saw_ours = popped == ours.context;
  CUcontext entry = nullptr;
  CUresult code;
  while ((code = stack::Pop(&entry)) == CUDA_SUCCESS) saw_ours = saw_ours || entry == ours.context;
  if (code != CUDA_ERROR_INVALID_CONTEXT) return Finding::Failed(code, popped);
  if (saw_ours)
    return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kRepaired, popped);
  return Finding::Of(GoneBy(ours, Incident::Kind::kReplaced), Incident::Repair::kRepaired, popped);
}

// Our entry came off as it should, but the caller's context is not beneath it.
Finding RepairBeneath(const Incarnation& ours, const Incarnation& caller, CUcontext now) {
  if (now == ours.context) {
    RemovedEntries taken;
    if (RemoveRunDownTo(ours.context, caller.context, &taken)) {
      return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kInferred, now);
    }
    const CUresult code = stack::PutBack(taken);
    if (code != CUDA_SUCCESS) return Finding::Failed(code, now);
  }
  return PutOnTop(caller, Incident::Kind::kExtraPop, now);
}

// Our context is current and something else was popped from above it: a leaked push, if the
// caller's context is beneath. Nothing is changed, and nothing found, if it is not.
Finding DropOurs(const Incarnation& ours, const Incarnation& caller, CUcontext popped) {
  RemovedEntries taken;
  if (!Remove(&taken)) return {};
  CUcontext now = CurrentOf();
  while (now == ours.context && now != caller.context && Remove(&taken)) now = CurrentOf();
  if (now == caller.context) {
    return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kInferred, popped);
  }
  const CUresult code = stack::PutBack(taken);
  return code == CUDA_SUCCESS ? Finding{} : Finding::Failed(code, popped);
}

}  // namespace

Finding Concluded(Finding finding, const Incarnation& caller) {
  if (!finding.happened) return finding;
  const CUresult code = stack::MakeCurrent(caller);
  if (code == CUDA_SUCCESS) return finding;
  finding.repair = Incident::Repair::kUnrepaired;
  finding.result = code;
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) finding.kind = Incident::Kind::kDestroyed;
  return finding;
}

Incident::Kind GoneBy(const Incarnation& ours, Incident::Kind kind) {
  return stack::IsAlive(ours) ? kind : Incident::Kind::kDestroyed;
}

namespace {

// What the last repairs of elided guards left on this thread's stack, the last one first: evidence
// of what lies beneath the next, which the driver does not show. Handles are compared, never used.
struct Left {
  CUcontext top;  // nullptr: none
  Beneath beneath;
};
constexpr unsigned kLefts = 4;
struct LeftHere {
  Left lefts[kLefts];
  bool has_guessed;  // the last reading without evidence was a replaced top
};
CUGUEST_INTERNAL_THREAD LeftHere t_left = {};

void Remember(CUcontext top, const Beneath& beneath) {
  unsigned at = 0;
  while (at + 1 < kLefts && t_left.lefts[at].top != top) ++at;
  for (; at > 0; --at) t_left.lefts[at] = t_left.lefts[at - 1];
  t_left.lefts[0] = {top, beneath};
}

// The stack of an elided guard as it was found, taken off. An entry of ours whose context is over
// stays on it, as does one further down.
struct FoundStack {
  RemovedEntries taken;
  bool is_all = false;         // nothing is left
  bool is_above_ours = false;  // an entry of ours is left
  long ours = -1;              // the place of the topmost entry of ours, from the top

  CUcontext At(long i) const { return taken.FromTop(i).incarnation.context; }
  bool HasBeneath(const Beneath& beneath, long above) const {
    const auto count = static_cast<long>(beneath.count);
    if (above + count > taken.count()) return false;
    if (beneath.is_all && !(is_all && above + count == taken.count())) return false;
    for (long i = 0; i < count; ++i) {
      if (At(above + i) != beneath.entries[i]) return false;
    }
    return true;
  }
  Beneath From(long place) const {
    Beneath beneath = {};
    beneath.is_all = is_all;
    for (long i = place; i < taken.count(); ++i) {
      if (!taken.FromTop(i).is_dead) beneath.Add(At(i));
    }
    return beneath;
  }
};

// The driver's code where it refuses.
CUresult TakeDown(const Incarnation& ours, FoundStack* found) {
  RemovedEntries& taken = found->taken;
  const auto most = static_cast<long>(Beneath::kMost);
  while (taken.count() < RemovedEntries::kMax &&
         (found->ours < 0 || taken.count() <= found->ours + most)) {
    StackEntry top;
    const CUresult code = stack::Look(&top);
    found->is_all = code == CUDA_ERROR_INVALID_CONTEXT;
    if (code != CUDA_SUCCESS) return found->is_all ? CUDA_SUCCESS : code;
    const bool is_ours = found->ours < 0 && top.incarnation.context == ours.context;
    if (top.is_dead && (is_ours || found->ours >= 0)) {
      found->is_above_ours = is_ours;
      return CUDA_SUCCESS;
    }
    if (is_ours) found->ours = taken.count();
    CUcontext popped = nullptr;
    const CUresult pop = stack::Pop(&popped);
    if (pop != CUDA_SUCCESS) return pop;
    taken.Add(top);
  }
  CUcontext now = nullptr;
  found->is_all = stack::Current(&now) == CUDA_SUCCESS && now == nullptr;
  return CUDA_SUCCESS;
}

constexpr long kNotThere = -1;

// Whether the entries below the top and above `beneath` are what lies there once more: what the
// same fault leaves that was left the last time.
bool IsAgain(const Beneath& beneath, const FoundStack& found, long above) {
  for (long i = 1; i < above; ++i) {
    if (i > static_cast<long>(beneath.count) || found.At(i) != beneath.entries[i - 1]) return false;
  }
  return true;
}

// How many of the entries lie above `beneath`; kNotThere if it does not lie there. Where it can lie
// at two places the top was replaced, and not popped. What was remembered may have been of another
// place of the stack, with entries of the host's between.
enum class Evidence { kRecords, kMemory };
long AboveOf(const Beneath& beneath, const FoundStack& found, CUcontext ours, Evidence evidence) {
  if (beneath.count == 0 && !beneath.is_all) return kNotThere;
  long other = kNotThere;
  for (long above = 0; above <= found.taken.count(); ++above) {
    if (!found.HasBeneath(beneath, above)) continue;
    if (above > 1 && found.At(above - 1) == ours) return above;
    if (evidence == Evidence::kMemory && !IsAgain(beneath, found, above)) continue;
    if (other == kNotThere || above == 1) other = above;
  }
  return other;
}

// How many of the entries lie above what the caller's context lay on, and whether that is a guess.
struct Reading {
  long above;
  bool is_guess;
};
Reading Read(const FoundStack& found, const Incarnation& ours, const Beneath& known) {
  const long known_above = AboveOf(known, found, ours.context, Evidence::kRecords);
  if (known_above != kNotThere || found.taken.count() == 0) {
    return {std::max(known_above, 0L), false};
  }
  if (found.ours >= 0) return {found.ours + 1, false};
  for (const Left& left : t_left.lefts) {
    if (left.top != ours.context) continue;
    const long above = AboveOf(left.beneath, found, ours.context, Evidence::kMemory);
    if (above != kNotThere) return {above, false};
  }
  // The whole stack that another context's repair left: popped down to it, or replaced by that
  // context. Each second time the other, so that two wrong guesses take each other back.
  const Left& last = t_left.lefts[0];
  if (t_left.has_guessed && found.At(0) == last.top && last.beneath.is_all &&
      found.HasBeneath(last.beneath, 1)) {
    t_left.has_guessed = false;
    return {0, true};
  }
  for (const Left& left : t_left.lefts) {
    if (left.top == nullptr) break;
    const long above = AboveOf(left.beneath, found, ours.context, Evidence::kMemory);
    if (above == 0) return {above, false};
    if (above == 1) break;
  }
  t_left.has_guessed = true;
  return {1, true};
}

}  // namespace

[[gnu::cold]] Finding RepairElided(const Incarnation& ours, const Beneath& known) {
  CUcontext top = nullptr;
  const CUresult code = stack::Current(&top);
  if (code != CUDA_SUCCESS) return Finding::Failed(code, nullptr);
  if (top == ours.context) return {};
  FoundStack found;
  const CUresult taken = TakeDown(ours, &found);
  const long count = found.taken.count();
  if (taken != CUDA_SUCCESS) {
    static_cast<void>(stack::PutBack(found.taken));
    return Finding::Failed(taken, top);
  }
  if (found.is_above_ours) {
    return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kInferred, top);
  }
  if (found.ours < 0 && !stack::CanBePut(ours)) {
    static_cast<void>(stack::PutBack(found.taken));
    return Finding::NotPut(CUDA_ERROR_CONTEXT_IS_DESTROYED, Incident::Kind::kDestroyed, top);
  }
  const auto [above, is_guess] = Read(found, ours, known);
  const bool is_popped = above == 0 && !is_guess;
  const bool has_ours = above > 1 && found.At(above - 1) == ours.context;
  const Incident::Kind kind = has_ours    ? Incident::Kind::kLeakedPush
                              : is_popped ? Incident::Kind::kExtraPop
                                          : Incident::Kind::kReplaced;
  const long kept = count - above;
  const CUresult put_back = stack::PutBack(found.taken, has_ours ? kept + 1 : kept);
  Finding finding = Finding::Of(kind, Incident::Repair::kInferred, top);
  if (!has_ours) finding = PutOnTop(ours, kind, top);
  if (put_back != CUDA_SUCCESS) return Finding::Failed(put_back, top);
  for (long i = above; i < count; ++i) {
    if (found.taken.FromTop(i).is_dead) finding.repair = Incident::Repair::kUnrepaired;
  }
  if (finding.result == CUDA_SUCCESS) Remember(ours.context, found.From(above));
  return finding;
}

[[gnu::cold]] Finding RepairPushed(const Incarnation& ours, const Incarnation& caller,
                                   CUcontext popped) {
  CUcontext now = nullptr;
  const CUresult code = stack::Current(&now);
  if (code != CUDA_SUCCESS) return Finding::Failed(code, popped);
  if (popped == ours.context && now == caller.context) return {};
  if (caller.context == nullptr) return EmptyOut(ours, popped);
  if (popped == ours.context) return RepairBeneath(ours, caller, now);
  // A stranger was popped: look for our context and the caller's further down.
  const bool searches = popped != caller.context && popped != nullptr;
  RemovedEntries taken;
  if (searches) {
    const Incarnation stranger = Incarnation::Unknown(popped);
    taken.Add({stranger, !stack::IsAlive(stranger)});
  }
  while (searches && now != ours.context && now != caller.context && Remove(&taken)) {
    now = CurrentOf();
  }
  if (now == ours.context) {
    const Finding leaked = DropOurs(ours, caller, popped);
    if (leaked.happened) return leaked;
  }
  if (now == caller.context) {
    return Finding::Of(GoneBy(ours, Incident::Kind::kReplaced), Incident::Repair::kInferred,
                       popped);
  }
  const bool saw_all = !searches || (now == nullptr && !taken.HasDead());
  const CUresult put_back = stack::PutBack(taken);
  if (put_back != CUDA_SUCCESS) return Finding::Failed(put_back, popped);
  Finding finding = PutOnTop(caller, GoneBy(ours, Incident::Kind::kExtraPop), popped);
  if (!saw_all) finding.repair = Incident::Repair::kUnrepaired;
  return finding;
}

CUGUEST_END_INTERNAL_NAMESPACE
