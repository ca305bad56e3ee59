// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For concurrency.h alone: locks, threads and forks, where there is POSIX.            tier: 1

#ifndef CUGUEST_LIB_CORE_CONCURRENCY_POSIX_H_
#define CUGUEST_LIB_CORE_CONCURRENCY_POSIX_H_

#include <pthread.h>

#include <atomic>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A mutex whose layout is C, for memory that several copies of cuguest share, and for static
// storage: neither constructor nor destructor runs.
struct SharedMutex {
  void lock() noexcept { pthread_mutex_lock(&native); }
  void unlock() noexcept { pthread_mutex_unlock(&native); }
  pthread_mutex_t native = PTHREAD_MUTEX_INITIALIZER;
};

// The condition variable that goes with it; std::condition_variable has a constructor to run.
struct SharedConditionVariable {
  // With `mutex` locked by the caller.
  void wait(SharedMutex& mutex) noexcept { pthread_cond_wait(&native, &mutex.native); }
  void notify_all() noexcept { pthread_cond_broadcast(&native); }
  pthread_cond_t native = PTHREAD_COND_INITIALIZER;
};

using ThreadId = pthread_t;
inline ThreadId ThisThreadId() noexcept { return pthread_self(); }

// From here on the function is called in each child that this process forks, once or more often:
// each of the threads that come first sees to it by itself. So none waits for another, nor a child
// that was forked in its middle for a thread that it does not have. Where the C library has no
// memory for it, the next call tries again.
//
// There is nothing to be called before a fork() or in the parent: glibc calls such handlers without
// a lock, so that a library that another thread unloads meanwhile is gone when its own is called
// (glibc 2.36; test/process/fork_test.cc, libraries_that_go_while_others_fork). In a child there is
// no other thread.
template <void (*kInChild)()>
void WatchForks() noexcept {
  static std::atomic<bool> s_watches{false};
  if (s_watches.load(std::memory_order_acquire)) return;
  if (pthread_atfork(nullptr, nullptr, kInChild) == 0) {
    s_watches.store(true, std::memory_order_release);
  }
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_CONCURRENCY_POSIX_H_
