// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For concurrency.h alone: locks, threads and forks, where there is POSIX.            tier: 1
//
// Note [What a child of a fork knows]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A child has its parent's variables, and one of its parent's threads. It notices by a page that
// the kernel fills with zeros in every child (MADV_WIPEONFORK, Linux 4.14), whichever call made the
// child and whatever was called in it before. Nothing of cuguest runs at the fork itself.
//
// The page holds the number of the process, which costs no system call to read, and a lock, which
// is free in a child whatever the parent's threads were doing. A variable that is of the process
// has beside it the number that it is valid for (WatchForks, ThisThread::process), and begins anew
// in a process that has another one.
//
// Where the kernel has no such pages, a handler of pthread_atfork() clears the page. There a child
// is not noticed that a bare system call made, nor in a handler that the host registered before.

#ifndef CUGUEST_LIB_CORE_CONCURRENCY_POSIX_H_
#define CUGUEST_LIB_CORE_CONCURRENCY_POSIX_H_

#include <pthread.h>
#include <time.h>

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
  // The same, for 10 ms at most: for what nobody notifies.
  void wait_a_while(SharedMutex& mutex) noexcept {
    constexpr long kSecond = 1000000000;
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += kSecond / 100;
    until.tv_sec += until.tv_nsec / kSecond;
    until.tv_nsec %= kSecond;
    pthread_cond_timedwait(&native, &mutex.native, &until);
  }
  void notify_all() noexcept { pthread_cond_broadcast(&native); }
  pthread_cond_t native = PTHREAD_COND_INITIALIZER;
};

using ThreadId = pthread_t;
inline ThreadId ThisThreadId() noexcept { return pthread_self(); }

// Which process this is: see Note [What a child of a fork knows].
class Process {
 public:
  // No ancestor of this process has had it; never 0. A system call the first time in a process.
  static unsigned Number() noexcept;
  // Where Number() is once it was called; 0 in a child in which it was not.
  static const unsigned* NumberPlace() noexcept;
  // `*valid_for` is the number of a process, or 0 for none yet. Makes it that of this one; in a
  // child of that one it calls `in_child` first. Once, whichever thread comes first; the others
  // wait for it.
  static void Enter(std::atomic<unsigned>* valid_for, void (*in_child)()) noexcept;
};

// Called before each use of what `kInChild` makes anew in a child. From the first call on that is
// called once in each child, before a call there returns. It locks nothing and calls no WatchForks.
template <void (*kInChild)()>
void WatchForks() noexcept {
  static std::atomic<unsigned> s_valid_for{0};
  Process::Enter(&s_valid_for, kInChild);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_CONCURRENCY_POSIX_H_
