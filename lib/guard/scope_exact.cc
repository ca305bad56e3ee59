// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of ExactGuard and NoContextGuard, which know the whole stack.

#include "cuguest/internal/scope.h"

#include <algorithm>
#include <cstdlib>

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using nesting::IsOfNone;

constexpr int kMaxExactDepth = Scope::kMaxExactDepth;

// Takes the whole stack down into `entries` (bottom first, at most `max`), and with kPutBack puts
// it back.
//
// Errors: CUDA_ERROR_NOT_SUPPORTED  deeper than `max`, or an entry is dead: it could
//         not be put back. The stack is then as it was.
enum class AndThen { kPutBack, kLeaveEmpty };
CUresult TakeDown(Incarnation* entries, int max, int* depth, AndThen and_then) {
  RemovedEntries taken;
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
  if (put_back != CUDA_SUCCESS && *depth > 0) {
    static_cast<void>(stack::MakeCurrent(entries[*depth - 1]));
  }
  return is_down ? put_back : code;
}

Finding Compare(const Incarnation* entries, int depth, const Incarnation& ours,
                const RemovedEntries& taken) {
  const long expected = depth + 1;
  long same = 0;
  while (same < expected && same < taken.count() &&
         stack::IsSame(same < depth ? entries[same] : ours, taken.FromBottom(same).incarnation)) {
    ++same;
  }
  if (same == expected && taken.count() == expected) return {};
  const bool is_kept = same < std::min(taken.count(), RemovedEntries::kMax);
  const CUcontext found = is_kept ? taken.FromBottom(same).incarnation.context : nullptr;
  if (same == expected)
    return Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kRepaired, found);
  const Incident::Kind kind =
      taken.count() >= expected ? Incident::Kind::kReplaced : Incident::Kind::kExtraPop;
  return Finding::Of(GoneBy(ours, kind), Incident::Repair::kRepaired, found);
}

// `entries[0..depth)` is the caller's stack, bottom first. The guard pushed `ours` on it, or left
// an empty stack inside (nullptr). Takes everything off, compares, and puts the caller's back.
Finding RestoreExactly(const Incarnation* entries, int depth, const Incarnation* ours) {
  RemovedEntries taken;
  CUresult code;
  while ((code = stack::Remove(&taken)) == CUDA_SUCCESS) {
  }
  if (code != CUDA_ERROR_INVALID_CONTEXT) return Finding::Failed(code, nullptr);
  Finding finding{};
  if (ours != nullptr) {
    finding = Compare(entries, depth, *ours, taken);
  } else if (taken.count() > 0) {
    const StackEntry& top = taken.FromBottom(taken.count() - 1);
    finding = Finding::Of(Incident::Kind::kLeakedPush, Incident::Repair::kRepaired,
                          top.incarnation.context);
  }
  for (int i = 0; i < depth; ++i) {
    const bool died_there = ours != nullptr && i < taken.count() && taken.FromBottom(i).is_dead &&
                            taken.FromBottom(i).incarnation.context == entries[i].context;
    code = died_there ? CUDA_ERROR_CONTEXT_IS_DESTROYED : stack::Push(entries[i]);
    if (code != CUDA_SUCCESS)
      finding = Finding::NotPut(code, Incident::Kind::kFailed, entries[i].context);
  }
  return finding;
}

CUresult EnterExactly(Record* record) {
  Incarnation entries[kMaxExactDepth];
  int depth = 0;
  const AndThen and_then = IsOfNone(*record) ? AndThen::kLeaveEmpty : AndThen::kPutBack;
  CUresult code = TakeDown(entries, kMaxExactDepth, &depth, and_then);
  if (code != CUDA_SUCCESS) return code;
  Incarnation* kept = nullptr;
  if (depth > 0) {
    const std::size_t bytes = static_cast<std::size_t>(depth) * sizeof(Incarnation);
    kept = static_cast<Incarnation*>(std::malloc(bytes));
    if (kept == nullptr) code = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (code == CUDA_SUCCESS && !IsOfNone(*record)) code = EnterIncarnation(record->ours);
  if (code != CUDA_SUCCESS) {
    if (IsOfNone(*record)) static_cast<void>(RestoreExactly(entries, depth, nullptr));
    std::free(kept);
    return code;
  }
  for (int i = 0; i < depth; ++i) kept[i] = entries[i];
  record->entries = kept;
  record->entry_count = static_cast<unsigned>(depth);
  record->caller = depth > 0 ? entries[depth - 1].context : nullptr;
  return code;
}

Finding RepairExactly(const Record& record) {
  return RestoreExactly(record.entries, static_cast<int>(record.entry_count),
                        IsOfNone(record) ? nullptr : &record.ours);
}

// Whether the whole stack is what the record, whose context is current, left.
bool IsAllOnTop(const Record& record) {
  if (IsOfNone(record)) return true;
  Incarnation entries[kMaxExactDepth + 1];
  int depth = 0;
  const CUresult code = TakeDown(entries, kMaxExactDepth + 1, &depth, AndThen::kPutBack);
  const int known = static_cast<int>(record.entry_count);
  if (code != CUDA_SUCCESS || depth != known + 1) return false;
  for (int i = 0; i < known; ++i) {
    if (!stack::IsSame(record.entries[i], entries[i])) return false;
  }
  return stack::IsSame(record.ours, entries[known]);
}

constexpr nesting::KindCalls kExactCalls = {&EnterExactly, &RepairExactly, &IsAllOnTop, nullptr,
                                            nullptr};

}  // namespace

void Scope::EnterExactly(const Incarnation* ours, Location where) noexcept {
  const Incarnation entered = ours != nullptr ? *ours : Incarnation::Unknown(nullptr);
  const bool is_null = ours != nullptr && ours->context == nullptr;
  Prepare(entered.context, false, where);
  CUresult code = is_null ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  if (is_null || TryDriver(&code) == nullptr) return SetFailed(code);
  nesting::Register(Kind::kExact, kExactCalls);
  nesting::CloseEnded();
  Record* const record = Begin(entered.id);
  if (record == nullptr) return;
  record->kind = Kind::kExact;
  Conclude(nesting::Enter(record, nullptr));
}

CUGUEST_END_INTERNAL_NAMESPACE
