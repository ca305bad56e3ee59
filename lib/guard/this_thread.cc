// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/internal/this_thread.h"

#include "lib/core/concurrency.h"
#include "lib/guard/records.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

Atomic<unsigned long long> g_threads{0};

}  // namespace

unsigned long long NumberOfThisThread() noexcept {
  unsigned long long& number = CallingThread()->number;
  if (number == 0) number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

bool IsThisThread(unsigned long long number) noexcept { return number == NumberOfThisThread(); }

CUGUEST_END_INTERNAL_NAMESPACE
