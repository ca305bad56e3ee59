// SPDX-License-Identifier: Apache-2.0
//
// Fills the driver table, and keeps the process's. Speaks CUresult and fixed buffers: no Abseil,
// no std::string. driver.cc makes statuses of what it says.                          tier: 1

#ifndef CUGUEST_LIB_CORE_RESOLVER_H_
#define CUGUEST_LIB_CORE_RESOLVER_H_

#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "cuguest/driver_table.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// A row of the table.
struct DriverEntry {
  const char* name;    // "cuMemAlloc"
  int version;         // 3020
  const char* symbol;  // "cuMemAlloc_v2"
  std::size_t offset;  // in DriverTable
};

// nullptr if no entry is at `offset`.
const DriverEntry* EntryAt(std::size_t offset) noexcept;

// The table, or why there is none.
struct DriverOutcome {
  DriverTable table;
  DriverProblem problem = DriverProblem::kNone;
  CUresult code = CUDA_SUCCESS;
  const DriverEntry* missing = nullptr;  // kTooOld: the first required entry that it lacks
  char text[400] = {};                   // kNoLibrary: the loader's words; else the library's name
  pid_t process = 0;                     // that resolved it

  bool ok() const noexcept { return problem == DriverProblem::kNone; }
};

// The library at `path`. The process's table is not touched.
DriverOutcome LoadDriver(const char* path) noexcept;

// The process's driver, from "libcuda.so.1" on the first call. What the first call comes to is
// kept, unless it had no memory (kOther, CUDA_ERROR_OUT_OF_MEMORY).
//
// Threads: any; see Note [No lock while a library is loaded].
const DriverOutcome& ProcessDriver() noexcept;

// Makes `lookup` the process's driver. On failure nothing has changed: kInUse if the outcome was
// decided before, kTooOld if a required entry is missing, kStub, or kOther without memory.
DriverOutcome AdoptDriver(DriverLookup lookup, void* user) noexcept;

// cuInit(0), once per process: a forked child calls it again.
CUresult InitializeDriver(const DriverTable& driver) noexcept;

// Whether this process was forked from the one that resolved the table.
bool IsForkedChild() noexcept;

// The table of ProcessDriver() once that is called; nullptr before, and for good where there is
// no usable driver.
extern std::atomic<const DriverTable*> g_driver;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CORE_RESOLVER_H_
