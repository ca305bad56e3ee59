// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_LIB_SIM_THREAD_NUMBER_H_
#define CUGUEST_LIB_SIM_THREAD_NUMBER_H_

#include <atomic>
#include <cstdint>

namespace cuguest_sim {

// The calling thread's own number, from 1. Not pthread_self(), which a later thread
// may get again.
inline std::uint64_t ThisThread() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_THREAD_NUMBER_H_
