// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/driver_access.h"

#include <cstddef>

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// In place of a required entry that is missing. Its parameters are the caller's to clean up,
// whatever they are.
CUresult CUDAAPI NotInTable() { return kCallRequiresNewerDriver; }

// Ids, or what tells a destroyed context without them: without either a repair could push a context
// that is gone, which corrupts the driver's heap.
bool NoGuardDoesWithout(const DriverSource& source, const DriverEntry& entry) {
  if (entry.offset == offsetof(DriverTable, CtxGetApiVersion)) {
    const DriverEntry id = kDriverEntries.At(offsetof(DriverTable, CtxGetId));
    return source.lookup(id.name, id.version, source.user) == nullptr;
  }
  return entry.offset == offsetof(DriverTable, CtxPushCurrent) ||
         entry.offset == offsetof(DriverTable, CtxPopCurrent) ||
         entry.offset == offsetof(DriverTable, CtxGetCurrent);
}

// What is in the place of a required entry that is missing where guards are all that is needed, or
// null.
void* InsteadOf(const DriverSource& source, const DriverEntry& entry) {
  if (NoGuardDoesWithout(source, entry)) return nullptr;
  if (entry.offset == offsetof(DriverTable, DevicePrimaryCtxRelease)) {
    constexpr int kFirst = 7000;  // with the same signature, see CUGUEST_REQUIRED_ENTRIES
    if (void* const first = source.lookup(entry.name, kFirst, source.user)) return first;
  }
  return reinterpret_cast<void*>(&NotInTable);
}

}  // namespace

DriverOutcome AdoptDriver(DriverLookup lookup, void* user, DriverNeeds needs) noexcept {
  DriverOutcome in_use;
  in_use.problem = DriverTable::Problem::kInUse;
  if (DecidedDriver() != nullptr) return in_use;
  const DriverOutcome outcome = ReadDriver({lookup, user}, "the lookup",
                                           needs == DriverNeeds::kGuards ? &InsteadOf : nullptr);
  if (!outcome.ok()) return outcome;
  bool won = false;
  if (KeepDriver(outcome, &won) == nullptr) {
    DriverOutcome no_memory;
    no_memory.problem = DriverTable::Problem::kOther;
    no_memory.code = CUDA_ERROR_OUT_OF_MEMORY;
    return no_memory;
  }
  return won ? outcome : in_use;
}

CUGUEST_END_INTERNAL_NAMESPACE
