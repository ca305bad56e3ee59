// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the driver table is filled and kept, and how guards read it: by CUresult and fixed buffers,
// no status, no allocation, no cuInit. driver.cc makes statuses of what it says.      tier: 1

#ifndef CUGUEST_LIB_CORE_DRIVER_ACCESS_H_
#define CUGUEST_LIB_CORE_DRIVER_ACCESS_H_

#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuguest/driver_table.h"
#include "cuguest/internal/compiler.h"
#include "lib/core/driver_entries.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

extern const DriverEntries kDriverEntries;

// The table, or why there is none.
struct DriverOutcome {
  DriverTable table;
  DriverTable::Problem problem = DriverTable::Problem::kNone;
  CUresult code = CUDA_SUCCESS;
  DriverEntry missing = {};  // kTooOld: the first required entry that it lacks
  char text[400] = {};       // kNoLibrary: the loader's words; else the library's name
  pid_t process = 0;         // that resolved it

  bool ok() const noexcept { return problem == DriverTable::Problem::kNone; }
};

// The library at `path`. The process's table is not touched.
DriverOutcome LoadDriver(const char* path) noexcept;

struct DriverSource {
  DriverLookup lookup;
  void* user;
};
// What `source` gives, which messages call `name`; of a required entry that it lacks, what
// `instead_of` gives, unless that is null.
DriverOutcome ReadDriver(const DriverSource& source, const char* name,
                         void* (*instead_of)(const DriverSource&, const DriverEntry&)) noexcept;

// Of an entry that need not be in `driver`: its function, nullptr if there is none. By the lookup
// of `driver`; of a library that cannot be asked for a version, by the symbol.
void* FindEntry(const DriverTable& driver, const DriverEntry& entry) noexcept;

// The process's driver, from kDriverFile (library.h) on the first call that can load it. What the
// library is, usable or not, is kept. nullptr, and nothing is decided, where there is none, or no
// memory to keep it: `refused` says why, and the next call looks again.
//
// Threads: any; see Note [No lock while a library is loaded].
const DriverOutcome* ProcessDriver(DriverOutcome* refused) noexcept;

// What is kept; nullptr before.
const DriverOutcome* DecidedDriver() noexcept;
// Makes `outcome` the process's, unless that is decided, and gives the one that is kept; nullptr,
// and nothing is decided, without memory. `won`, unless null: whether that is this call's.
const DriverOutcome* KeepDriver(const DriverOutcome& outcome, bool* won) noexcept;

// What a driver must have: every required entry; or those that no guard does without, and in place
// of each other required one that is missing is a function that gives kCallRequiresNewerDriver.
enum class DriverNeeds { kEveryRequired, kGuards };

// Makes `lookup` the process's driver. On failure nothing has changed: kInUse if the outcome was
// decided before, kTooOld if an entry that it `needs` is missing, kStub, or kOther without memory.
DriverOutcome AdoptDriver(DriverLookup lookup, void* user,
                          DriverNeeds needs = DriverNeeds::kEveryRequired) noexcept;

// cuInit(0), once per process: a forked child calls it again.
CUresult InitializeDriver(const DriverTable& driver) noexcept;

// Whether somebody in this process has called cuInit, which is not called here; nor is the driver
// loaded. A call of the driver that fails where the answer is no.
bool IsDriverInitialized() noexcept;

// Whether this process was forked from the one that resolved the table.
inline bool IsForkedChild() noexcept {
  const DriverOutcome* const outcome = DecidedDriver();
  return outcome != nullptr && outcome->process != getpid();
}

// The table of ProcessDriver() once there is one; nullptr before, and for good where the driver is
// not usable.
extern std::atomic<const DriverTable*> g_driver;

// Makes the table of ProcessDriver() what TryDriver() gives and what guards call, where nothing is
// that yet: a thread that comes late with it takes nothing from CallThrough(). Threads: any.
void CallFirstThrough(const DriverTable* table) noexcept;

// Makes `table`, which is there for good, that instead of what is: one that hands each call on to
// the first (objects/driver_log.cc), or the first again. The caller has had ProcessDriver().
// Threads: one at a time; a call that is in progress ends as it began.
void CallThrough(const DriverTable* table) noexcept;

// The table of ProcessDriver(). On failure returns nullptr and writes the code that stands for the
// problem to `code`; what was not there is looked for again as Note [A driver that comes later]
// says.
const DriverTable* ResolveDriver(CUresult* code) noexcept;

// The process's table, after TryDriver() has given it, or an answer of a guard's in-line calls
// has shown that there is one. If that was in another copy of cuguest, whose inline code has made
// the object that is at hand (export.h, Note [What two embedders share]), it is resolved here.
inline const DriverTable& ResolvedDriver() noexcept {
  const DriverTable* table = g_driver.load(std::memory_order_acquire);
  CUresult code = CUDA_SUCCESS;
  if (CUGUEST_INTERNAL_UNLIKELY(table == nullptr)) table = ResolveDriver(&code);
  return *table;
}

inline const DriverTable* TryDriver(CUresult* code) noexcept {
  const DriverTable* table = g_driver.load(std::memory_order_acquire);
  if (CUGUEST_INTERNAL_LIKELY(table != nullptr)) return table;
  return ResolveDriver(code);
}

// The id of `context`, or of the current one for nullptr; CUDA_ERROR_CONTEXT_IS_DESTROYED if it
// was destroyed. Below CUDA 12.0 the id is 0 and the answer comes from cuCtxGetApiVersion, which
// gives CUDA_ERROR_INVALID_CONTEXT for a destroyed handle (cudasim/test/destroyed_facts_test.cc).
inline CUresult ReadId(const DriverTable& driver, CUcontext context,
                       unsigned long long* id) noexcept {
  if (driver.CtxGetId != nullptr) return driver.CtxGetId(context, id);
  unsigned version = 0;
  *id = 0;
  const CUresult code = driver.CtxGetApiVersion(context, &version);
  return code == CUDA_ERROR_INVALID_CONTEXT && context != nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                  : code;
}

// What `call` says of `device`. No device has a number below 0 (CU_DEVICE_INVALID, -1 for none), so
// that the driver need not be asked, whose refusal would be a line in the host's log of errors.
template <typename Call>
CUresult AskOf(CUdevice device, const Call& call) {
  return device < 0 ? CUDA_ERROR_INVALID_DEVICE : call();
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_DRIVER_ACCESS_H_
