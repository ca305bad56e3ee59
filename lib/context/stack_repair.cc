// SPDX-License-Identifier: Apache-2.0

#include "lib/context/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

Finding Found(IncidentKind kind, Repair repair, CUcontext found) {
  return {true, kind, repair, CUDA_SUCCESS, found};
}

Finding Failed(CUresult code, CUcontext found) {
  return {true, IncidentKind::kFailed, Repair::kUnrepaired, code, found};
}

// An entry could not be put on the stack.
Finding NotPut(CUresult code, IncidentKind kind, CUcontext found) {
  const bool died = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return {true, died ? IncidentKind::kDestroyed : kind, Repair::kUnrepaired, code, found};
}

// Ends a repair by making `entry` current on top of what is there.
Finding PutOnTop(const Incarnation& entry, IncidentKind kind, CUcontext found) {
  const CUresult code = stack::Push(entry);
  return code == CUDA_SUCCESS ? Found(kind, Repair::kInferred, found) : NotPut(code, kind, found);
}

CUcontext CurrentOf() {
  CUcontext current = nullptr;
  static_cast<void>(stack::Current(&current));
  return current;
}

// False if `taken` is full, the stack is empty, or the driver refuses.
bool Take(Taken* taken) {
  return taken->count() < Taken::kMax && stack::Take(taken) == CUDA_SUCCESS;
}

// Takes off the run of `same` on top; true if `wanted` is beneath it.
bool TakeRunDownTo(CUcontext same, CUcontext wanted, Taken* taken) {
  while (CurrentOf() == same) {
    if (!Take(taken)) return false;
  }
  return CurrentOf() == wanted;
}

// Our entry is no longer where it was: by what a callee did to the stack, or because our
// context was destroyed?
IncidentKind GoneBy(const Incarnation& ours, IncidentKind kind) {
  return stack::IsAlive(ours) ? kind : IncidentKind::kDestroyed;
}

// The caller had nothing current, so whatever is left belongs to a callee: the only repair
// outside of kExact that leaves nothing to be inferred.
Finding EmptyOut(const Incarnation& ours, CUcontext popped) {
  if (popped == nullptr) {
    return Found(GoneBy(ours, IncidentKind::kExtraPop), Repair::kRepaired, nullptr);
  }
  bool saw_ours = popped == ours.context;
  CUcontext entry = nullptr;
  CUresult code;
  while ((code = stack::Pop(&entry)) == CUDA_SUCCESS) saw_ours = saw_ours || entry == ours.context;
  if (code != CUDA_ERROR_INVALID_CONTEXT) return Failed(code, popped);
  if (saw_ours) return Found(IncidentKind::kLeakedPush, Repair::kRepaired, popped);
  return Found(GoneBy(ours, IncidentKind::kReplaced), Repair::kRepaired, popped);
}

// Our entry came off as it should, but the caller's context is not beneath it.
Finding RepairBeneath(const Incarnation& ours, const Incarnation& caller, CUcontext now) {
  if (now == ours.context) {
    Taken taken;
    if (TakeRunDownTo(ours.context, caller.context, &taken)) {
      return Found(IncidentKind::kLeakedPush, Repair::kInferred, now);
    }
    const CUresult code = stack::PutBack(taken);
    if (code != CUDA_SUCCESS) return Failed(code, now);
  }
  return PutOnTop(caller, IncidentKind::kExtraPop, now);
}

// Our context is current and something else was popped from above it: a leaked push, if the
// caller's context is beneath. Nothing is changed, and nothing found, if it is not.
Finding DropOurs(const Incarnation& caller, CUcontext popped) {
  Taken taken;
  if (!Take(&taken)) return {};
  if (CurrentOf() == caller.context) {
    return Found(IncidentKind::kLeakedPush, Repair::kInferred, popped);
  }
  const CUresult code = stack::PutBack(taken);
  return code == CUDA_SUCCESS ? Finding{} : Failed(code, popped);
}

}  // namespace

Finding RepairElided(const Incarnation& ours) {
  CUcontext top = nullptr;
  const CUresult code = stack::Current(&top);
  if (code != CUDA_SUCCESS) return Failed(code, nullptr);
  if (top == ours.context) return {};
  if (top == nullptr) return PutOnTop(ours, IncidentKind::kExtraPop, nullptr);
  Taken taken;
  if (TakeRunDownTo(top, ours.context, &taken)) {
    return Found(IncidentKind::kLeakedPush, Repair::kInferred, top);
  }
  const CUresult put_back = stack::PutBack(taken);
  if (put_back != CUDA_SUCCESS) return Failed(put_back, top);
  if (!stack::CurrentIsPrimary()) return PutOnTop(ours, IncidentKind::kExtraPop, top);
  const CUresult replaced = stack::Replace(ours);
  if (replaced == CUDA_SUCCESS) return Found(IncidentKind::kReplaced, Repair::kInferred, top);
  return NotPut(replaced, IncidentKind::kFailed, top);
}

Finding RepairPushed(const Incarnation& ours, const Incarnation& caller, CUcontext popped) {
  CUcontext now = nullptr;
  const CUresult code = stack::Current(&now);
  if (code != CUDA_SUCCESS) return Failed(code, popped);
  if (popped == ours.context && now == caller.context) return {};
  if (caller.context == nullptr) return EmptyOut(ours, popped);
  if (popped == ours.context) return RepairBeneath(ours, caller, now);
  // A stranger was popped: look for our context and the caller's further down.
  const bool searches = popped != caller.context && popped != nullptr;
  Taken taken;
  if (searches) taken.Add({Incarnation::Unknown(popped), false});
  while (searches && now != ours.context && now != caller.context && Take(&taken)) {
    now = CurrentOf();
  }
  if (now == ours.context) {
    const Finding leaked = DropOurs(caller, popped);
    if (leaked.happened) return leaked;
  }
  if (now == caller.context) {
    return Found(GoneBy(ours, IncidentKind::kReplaced), Repair::kInferred, popped);
  }
  const bool saw_all = !searches || (now == nullptr && !taken.HasDead());
  const CUresult put_back = stack::PutBack(taken);
  if (put_back != CUDA_SUCCESS) return Failed(put_back, popped);
  Finding finding = PutOnTop(caller, GoneBy(ours, IncidentKind::kExtraPop), popped);
  if (!saw_all) finding.repair = Repair::kUnrepaired;
  return finding;
}

CUresult TakeDown(Incarnation* entries, int max, int* depth, AndThen and_then) {
  Taken taken;
  StackEntry top;
  CUresult code;
  while ((code = stack::Look(&top)) == CUDA_SUCCESS) {
    CUcontext popped = nullptr;
    const bool can_be_put_back = taken.count() < max && !top.is_dead;
    code = can_be_put_back ? stack::Pop(&popped) : CUDA_ERROR_NOT_SUPPORTED;
    if (code != CUDA_SUCCESS) break;
    taken.Add(top);
  }
  const bool is_down = code == CUDA_ERROR_INVALID_CONTEXT;
  *depth = static_cast<int>(taken.count());
  for (int i = 0; i < *depth; ++i) entries[i] = taken.FromBottom(i).incarnation;
  if (is_down && and_then == AndThen::kLeaveEmpty) return CUDA_SUCCESS;
  const CUresult put_back = stack::PutBack(taken);
  if (put_back != CUDA_SUCCESS && *depth > 0) stack::MakeCurrent(entries[*depth - 1]);
  return is_down ? put_back : code;
}

namespace {

Finding Compare(const Incarnation* entries, int depth, const Incarnation& ours,
                const Taken& taken) {
  const long expected = depth + 1;
  long same = 0;
  while (same < expected && same < taken.count() &&
         stack::IsSame(same < depth ? entries[same] : ours, taken.FromBottom(same).incarnation)) {
    ++same;
  }
  if (same == expected && taken.count() == expected) return {};
  const bool is_kept = same < std::min(taken.count(), Taken::kMax);
  const CUcontext found = is_kept ? taken.FromBottom(same).incarnation.context : nullptr;
  if (same == expected) return Found(IncidentKind::kLeakedPush, Repair::kRepaired, found);
  const IncidentKind kind =
      taken.count() >= expected ? IncidentKind::kReplaced : IncidentKind::kExtraPop;
  return Found(GoneBy(ours, kind), Repair::kRepaired, found);
}

}  // namespace

Finding RestoreExactly(const Incarnation* entries, int depth, const Incarnation* ours) {
  Taken taken;
  CUresult code;
  while ((code = stack::Take(&taken)) == CUDA_SUCCESS) {
  }
  if (code != CUDA_ERROR_INVALID_CONTEXT) return Failed(code, nullptr);
  Finding finding{};
  if (ours != nullptr) {
    finding = Compare(entries, depth, *ours, taken);
  } else if (taken.count() > 0) {
    const StackEntry& top = taken.FromBottom(taken.count() - 1);
    finding = Found(IncidentKind::kLeakedPush, Repair::kRepaired, top.incarnation.context);
  }
  for (int i = 0; i < depth; ++i) {
    const bool died_there = ours != nullptr && i < taken.count() && taken.FromBottom(i).is_dead &&
                            taken.FromBottom(i).incarnation.context == entries[i].context;
    code = died_there ? CUDA_ERROR_CONTEXT_IS_DESTROYED : stack::Push(entries[i]);
    if (code != CUDA_SUCCESS) finding = NotPut(code, IncidentKind::kFailed, entries[i].context);
  }
  return finding;
}

CUGUEST_END_INTERNAL_NAMESPACE
