// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The right to let the driver switch something, and to keep the record of it, which one thread has
// at a time; the others wait for it, with no lock held. Its thread cannot have it twice: in a
// tool's callback, say. No forked child comes here: there is no driver for one.        tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_ONE_AT_A_TIME_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_ONE_AT_A_TIME_H_

#include <mutex>

#include "lib/core/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// `Of` says of what; a type of its own for each.
template <typename Of>
class OneAtATime {
 public:
  OneAtATime() noexcept {
    const Lock lock(s_mutex);
    if (s_is_taken && s_thread == ThisThreadId()) return;
    while (s_is_taken) s_changed.wait(s_mutex);
    s_is_taken = true;
    s_thread = ThisThreadId();
    is_ours_ = true;
  }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;
  ~OneAtATime() {
    if (!is_ours_) return;
    const Lock lock(s_mutex);
    s_is_taken = false;
    s_changed.notify_all();
  }
  [[nodiscard]] bool ok() const noexcept { return is_ours_; }

 private:
  using Lock = std::lock_guard<SharedMutex>;

  static inline SharedMutex s_mutex;
  static inline SharedConditionVariable s_changed;
  static inline bool s_is_taken = false;
  static inline ThreadId s_thread;
  bool is_ours_ = false;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_ONE_AT_A_TIME_H_
