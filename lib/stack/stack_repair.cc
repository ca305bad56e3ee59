// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/stack/stack_repair.h"

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
    Taken taken;
    if (TakeRunDownTo(ours.context, caller.context, &taken)) {
      return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kInferred, now);
    }
    const CUresult code = stack::PutBack(taken);
    if (code != CUDA_SUCCESS) return Finding::Failed(code, now);
  }
  return PutOnTop(caller, Incident::Kind::kExtraPop, now);
}

// Our context is current and something else was popped from above it: a leaked push, if the
// caller's context is beneath. Nothing is changed, and nothing found, if it is not.
Finding DropOurs(const Incarnation& caller, CUcontext popped) {
  Taken taken;
  if (!Take(&taken)) return {};
  if (CurrentOf() == caller.context) {
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

Finding RepairElided(const Incarnation& ours) {
  CUcontext top = nullptr;
  const CUresult code = stack::Current(&top);
  if (code != CUDA_SUCCESS) return Finding::Failed(code, nullptr);
  if (top == ours.context) return {};
  if (top == nullptr) return PutOnTop(ours, Incident::Kind::kExtraPop, nullptr);
  Taken taken;
  if (TakeRunDownTo(top, ours.context, &taken)) {
    return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kInferred, top);
  }
  const CUresult put_back = stack::PutBack(taken);
  if (put_back != CUDA_SUCCESS) return Finding::Failed(put_back, top);
  if (!stack::CurrentIsPrimary()) return PutOnTop(ours, Incident::Kind::kExtraPop, top);
  const CUresult replaced = stack::Replace(ours);
  if (replaced == CUDA_SUCCESS)
    return Finding::Of(Incident::Kind::kReplaced, Incident::Repair::kInferred, top);
  return Finding::NotPut(replaced, Incident::Kind::kFailed, top);
}

Finding RepairPushed(const Incarnation& ours, const Incarnation& caller, CUcontext popped) {
  CUcontext now = nullptr;
  const CUresult code = stack::Current(&now);
  if (code != CUDA_SUCCESS) return Finding::Failed(code, popped);
  if (popped == ours.context && now == caller.context) return {};
  if (caller.context == nullptr) return EmptyOut(ours, popped);
  if (popped == ours.context) return RepairBeneath(ours, caller, now);
  // A stranger was popped: look for our context and the caller's further down.
  const bool searches = popped != caller.context && popped != nullptr;
  Taken taken;
  if (searches) {
    const Incarnation stranger = Incarnation::Unknown(popped);
    taken.Add({stranger, !stack::IsAlive(stranger)});
  }
  while (searches && now != ours.context && now != caller.context && Take(&taken)) {
    now = CurrentOf();
  }
  if (now == ours.context) {
    const Finding leaked = DropOurs(caller, popped);
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
