// SPDX-License-Identifier: Apache-2.0

#ifndef CUDASIM_DRIVER_CONTEXT_THREAD_NUMBER_H_
#define CUDASIM_DRIVER_CONTEXT_THREAD_NUMBER_H_

#include <atomic>
#include <cstdint>

namespace cudasim::driver {

// The calling thread's own number, from 1. Not pthread_self(), which a later thread
// may get again.
inline std::uint64_t ThisThread() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_THREAD_NUMBER_H_
