// SPDX-License-Identifier: Apache-2.0
//
// The driver table as the guards read it: no status, no allocation, no cuInit.

#ifndef CUGUEST_LIB_CORE_DRIVER_ACCESS_H_
#define CUGUEST_LIB_CORE_DRIVER_ACCESS_H_

#include <atomic>

#include "cuguest/driver.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The process's table once it is resolved; nullptr before, and for good where there is
// no usable driver.
extern std::atomic<const Driver*> g_driver;

// Resolves it on the first call. On failure returns nullptr and writes the code that
// stands for the problem to `code`.
const Driver* ResolveDriver(CUresult* code) noexcept;

inline const Driver* TryDriver(CUresult* code) noexcept {
  const Driver* driver = g_driver.load(std::memory_order_acquire);
  if (__builtin_expect(driver != nullptr, 1)) return driver;
  return ResolveDriver(code);
}

// Whether this process was forked from the one that resolved the table.
bool IsForkedChild() noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CORE_DRIVER_ACCESS_H_
