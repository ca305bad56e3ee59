// SPDX-License-Identifier: Apache-2.0
//
// The driver table as the guards read it: no status, no allocation, no cuInit.

#ifndef CUGUEST_LIB_CORE_DRIVER_ACCESS_H_
#define CUGUEST_LIB_CORE_DRIVER_ACCESS_H_

#include <atomic>

#include "cuguest/driver.h"
#include "lib/core/resolver.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// A `Driver` is a DriverTable with functions, and no more.
inline const Driver* AsDriver(const DriverTable* table) noexcept {
  static_assert(sizeof(Driver) == sizeof(DriverTable));
  return static_cast<const Driver*>(table);
}

// The process's table, after a call below has given it, or an answer of a guard's in-line calls
// has shown that there is one. If that was in another copy of cuguest, whose inline code has made
// the object that is at hand (export.h, Note [What two embedders share]), it is resolved here.
inline const Driver& ResolvedDriver() noexcept {
  const DriverTable* table = g_driver.load(std::memory_order_acquire);
  if (__builtin_expect(table == nullptr, 0)) table = &ProcessDriver().table;
  return *AsDriver(table);
}

// Resolves it on the first call. On failure returns nullptr and writes the code that
// stands for the problem to `code`.
const Driver* ResolveDriver(CUresult* code) noexcept;

inline const Driver* TryDriver(CUresult* code) noexcept {
  const DriverTable* table = g_driver.load(std::memory_order_acquire);
  if (__builtin_expect(table != nullptr, 1)) return AsDriver(table);
  return ResolveDriver(code);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CORE_DRIVER_ACCESS_H_
