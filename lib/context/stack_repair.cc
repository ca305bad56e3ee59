// SPDX-License-Identifier: Apache-2.0

#include "lib/context/stack_repair.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

Finding Found(IncidentKind kind, Repair repair, CUcontext found) {
  return {true, kind, repair, CUDA_SUCCESS, found};
}

Finding Failed(CUresult code, CUcontext found) {
  return {true, IncidentKind::kFailed, Repair::kUnrepaired, code, found};
}

// Ends a repair by making `entry` current on top of what is there.
Finding PutOnTop(const ThreadStack& stack, const Incarnation& entry, IncidentKind kind,
                 CUcontext found) {
  const CUresult code = stack.Push(entry);
  if (code == CUDA_SUCCESS) return Found(kind, Repair::kInferred, found);
  const bool died = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return {true, died ? IncidentKind::kDestroyed : kind, Repair::kUnrepaired, code, found};
}

CUcontext CurrentOf(const ThreadStack& stack) {
  CUcontext current = nullptr;
  static_cast<void>(stack.Current(&current));
  return current;
}

// Takes off the run of `same` on top; true if `wanted` is beneath it.
bool TakeRunDownTo(const ThreadStack& stack, CUcontext same, CUcontext wanted, Taken* taken) {
  while (CurrentOf(stack) == same) {
    if (!stack.Take(taken)) return false;
  }
  return CurrentOf(stack) == wanted;
}

// Our entry is no longer where it was: by what a callee did to the stack, or because our
// context was destroyed?
IncidentKind GoneBy(const ThreadStack& stack, const Incarnation& ours, IncidentKind kind) {
  return stack.IsAlive(ours) ? kind : IncidentKind::kDestroyed;
}

// The caller had nothing current, so whatever is left belongs to a callee: the only repair
// outside of kExact that leaves nothing to be inferred.
Finding EmptyOut(const ThreadStack& stack, const Incarnation& ours, CUcontext popped) {
  if (popped == nullptr) {
    return Found(GoneBy(stack, ours, IncidentKind::kExtraPop), Repair::kRepaired, nullptr);
  }
  bool saw_ours = popped == ours.context;
  CUcontext entry = nullptr;
  CUresult code;
  while ((code = stack.Pop(&entry)) == CUDA_SUCCESS) saw_ours = saw_ours || entry == ours.context;
  if (code != CUDA_ERROR_INVALID_CONTEXT) return Failed(code, popped);
  if (saw_ours) return Found(IncidentKind::kLeakedPush, Repair::kRepaired, popped);
  return Found(GoneBy(stack, ours, IncidentKind::kReplaced), Repair::kRepaired, popped);
}

// Our entry came off as it should, but the caller's context is not beneath it.
Finding RepairBeneath(const ThreadStack& stack, const Incarnation& ours, const Incarnation& caller,
                      CUcontext now) {
  if (now == ours.context) {
    Taken taken;
    if (TakeRunDownTo(stack, ours.context, caller.context, &taken)) {
      return Found(IncidentKind::kLeakedPush, Repair::kInferred, now);
    }
    const CUresult code = stack.PutBack(taken);
    if (code != CUDA_SUCCESS) return Failed(code, now);
  }
  return PutOnTop(stack, caller, IncidentKind::kExtraPop, now);
}

// Our context is current and something else was popped from above it: a leaked push, if the
// caller's context is beneath. Nothing is changed, and nothing found, if it is not.
Finding DropOurs(const ThreadStack& stack, const Incarnation& caller, CUcontext popped) {
  Taken taken;
  if (!stack.Take(&taken)) return {};
  if (CurrentOf(stack) == caller.context) {
    return Found(IncidentKind::kLeakedPush, Repair::kInferred, popped);
  }
  const CUresult code = stack.PutBack(taken);
  return code == CUDA_SUCCESS ? Finding{} : Failed(code, popped);
}

// Neither our context nor the caller's is near the top.
Finding Search(const ThreadStack& stack, const Incarnation& ours, const Incarnation& caller,
               CUcontext popped) {
  Taken taken;
  taken.entries[taken.count++] = Incarnation::Unknown(popped);
  CUcontext now;
  while ((now = CurrentOf(stack)) != ours.context && now != caller.context) {
    if (!stack.Take(&taken)) break;
  }
  if (now == ours.context) {
    const Finding leaked = DropOurs(stack, caller, popped);
    if (leaked.happened) return leaked;
  }
  if (now == caller.context) {
    return Found(GoneBy(stack, ours, IncidentKind::kReplaced), Repair::kInferred, popped);
  }
  const bool saw_all = now == nullptr && !taken.HasDead();
  const CUresult code = stack.PutBack(taken);
  if (code != CUDA_SUCCESS) return Failed(code, popped);
  Finding finding = PutOnTop(stack, caller, GoneBy(stack, ours, IncidentKind::kExtraPop), popped);
  if (!saw_all) finding.repair = Repair::kUnrepaired;
  return finding;
}

}  // namespace

Finding RepairElided(const ThreadStack& stack, const Incarnation& ours) {
  CUcontext top = nullptr;
  const CUresult code = stack.Current(&top);
  if (code != CUDA_SUCCESS) return Failed(code, nullptr);
  if (top == ours.context) return {};
  if (top == nullptr) return PutOnTop(stack, ours, IncidentKind::kExtraPop, nullptr);
  Taken taken;
  if (TakeRunDownTo(stack, top, ours.context, &taken)) {
    return Found(IncidentKind::kLeakedPush, Repair::kInferred, top);
  }
  const CUresult put_back = stack.PutBack(taken);
  if (put_back != CUDA_SUCCESS) return Failed(put_back, top);
  if (!stack.CurrentIsPrimary()) return PutOnTop(stack, ours, IncidentKind::kExtraPop, top);
  const CUresult replaced = stack.Replace(ours);
  if (replaced == CUDA_SUCCESS) return Found(IncidentKind::kReplaced, Repair::kInferred, top);
  if (replaced != CUDA_ERROR_CONTEXT_IS_DESTROYED) return Failed(replaced, top);
  return {true, IncidentKind::kDestroyed, Repair::kUnrepaired, replaced, top};
}

Finding RepairPushed(const ThreadStack& stack, const Incarnation& ours, const Incarnation& caller,
                     CUcontext popped) {
  CUcontext now = nullptr;
  const CUresult code = stack.Current(&now);
  if (code != CUDA_SUCCESS) return Failed(code, popped);
  if (popped == ours.context && now == caller.context) return {};
  if (caller.context == nullptr) return EmptyOut(stack, ours, popped);
  if (popped == ours.context) return RepairBeneath(stack, ours, caller, now);
  if (now == ours.context) {
    const Finding leaked = DropOurs(stack, caller, popped);
    if (leaked.happened) return leaked;
  }
  if (now == caller.context) {
    return Found(GoneBy(stack, ours, IncidentKind::kReplaced), Repair::kInferred, popped);
  }
  if (popped == caller.context || popped == nullptr) {
    return PutOnTop(stack, caller, GoneBy(stack, ours, IncidentKind::kExtraPop), popped);
  }
  return Search(stack, ours, caller, popped);
}

CUresult Snapshot(const ThreadStack& stack, Incarnation* entries, int max, int* depth) {
  Taken taken;
  CUresult code = CUDA_SUCCESS;
  CUcontext current = nullptr;
  while ((code = stack.Current(&current)) == CUDA_SUCCESS && current != nullptr) {
    const Incarnation entry =
        taken.count == max ? Incarnation::Unknown(nullptr) : stack.Look(current);
    if (entry.context == nullptr) {
      code = CUDA_ERROR_NOT_SUPPORTED;
      break;
    }
    code = stack.Pop(&current);
    if (code != CUDA_SUCCESS) break;
    taken.entries[taken.count++] = entry;
  }
  const CUresult put_back = stack.PutBack(taken);
  if (put_back != CUDA_SUCCESS && taken.count > 0) stack.MakeCurrent(taken.entries[0]);
  if (code != CUDA_SUCCESS) return code;
  if (put_back != CUDA_SUCCESS) return put_back;
  for (int i = 0; i < taken.count; ++i) entries[i] = taken.entries[taken.count - 1 - i];
  *depth = taken.count;
  return CUDA_SUCCESS;
}

namespace {

// The bottom of a stack while it is taken off from the top: of however many entries
// came, the last `kMax` are kept.
class Bottom {
 public:
  static constexpr long kMax = Taken::kMax;
  // `found` as ThreadStack::Look gave it, of the entry `context`.
  void Add(CUcontext context, const Incarnation& found) {
    entries_[count_ % kMax] = {{context, found.id}, found.context == nullptr};
    ++count_;
  }
  long count() const { return count_; }
  // Entry `i` from the bottom, which must be below both count() and kMax.
  const Incarnation& At(long i) const { return entries_[(count_ - 1 - i) % kMax].found; }
  bool IsDead(long i) const { return entries_[(count_ - 1 - i) % kMax].dead; }

 private:
  struct Entry {
    Incarnation found;
    bool dead;
  };
  Entry entries_[kMax];
  long count_ = 0;
};

CUresult TakeAll(const ThreadStack& stack, Bottom* bottom) {
  CUcontext current = nullptr;
  CUresult code;
  while ((code = stack.Current(&current)) == CUDA_SUCCESS && current != nullptr) {
    const Incarnation found = stack.Look(current);
    code = stack.Pop(&current);
    if (code != CUDA_SUCCESS) return code;
    bottom->Add(current, found);
  }
  return code;
}

Finding Compare(const ThreadStack& stack, const Incarnation* entries, int depth,
                const Incarnation& ours, const Bottom& bottom) {
  const long expected = depth + 1;
  long same = 0;
  while (same < expected && same < bottom.count() &&
         stack.IsSame(same < depth ? entries[same] : ours, bottom.At(same))) {
    ++same;
  }
  if (same == expected && bottom.count() == expected) return {};
  const CUcontext found =
      bottom.count() > same && same < Bottom::kMax ? bottom.At(same).context : nullptr;
  if (same == expected) return Found(IncidentKind::kLeakedPush, Repair::kRepaired, found);
  const IncidentKind kind =
      bottom.count() >= expected ? IncidentKind::kReplaced : IncidentKind::kExtraPop;
  return Found(GoneBy(stack, ours, kind), Repair::kRepaired, found);
}

// Pushes the caller's entries on an empty stack, but for those that died; `bottom` is
// what was taken off where they were.
void PushBack(const ThreadStack& stack, const Incarnation* entries, int depth, const Bottom& bottom,
              Finding* finding) {
  for (int i = 0; i < depth; ++i) {
    const bool in_place = i < bottom.count() && bottom.At(i).context == entries[i].context;
    const CUresult code =
        in_place && bottom.IsDead(i) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : stack.Push(entries[i]);
    if (code == CUDA_SUCCESS) continue;
    const bool died = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *finding = {true, died ? IncidentKind::kDestroyed : IncidentKind::kFailed, Repair::kUnrepaired,
                code, entries[i].context};
  }
}

}  // namespace

Finding RestoreExactly(const ThreadStack& stack, const Incarnation* entries, int depth,
                       const Incarnation& ours) {
  Bottom bottom;
  const CUresult code = TakeAll(stack, &bottom);
  if (code != CUDA_SUCCESS) return Failed(code, nullptr);
  Finding finding = Compare(stack, entries, depth, ours, bottom);
  PushBack(stack, entries, depth, bottom, &finding);
  return finding;
}

Finding RestoreAfterNone(const ThreadStack& stack, const Incarnation* entries, int depth) {
  Bottom left;
  const CUresult code = TakeAll(stack, &left);
  if (code != CUDA_SUCCESS) return Failed(code, nullptr);
  Finding finding{};
  if (left.count() != 0) {
    finding =
        Found(IncidentKind::kLeakedPush, Repair::kRepaired, left.At(left.count() - 1).context);
  }
  PushBack(stack, entries, depth, Bottom(), &finding);
  return finding;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
