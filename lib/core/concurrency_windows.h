// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For concurrency.h alone: what concurrency_posix.h has, on Windows.                  tier: 1

#ifndef CUGUEST_LIB_CORE_CONCURRENCY_WINDOWS_H_
#define CUGUEST_LIB_CORE_CONCURRENCY_WINDOWS_H_

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct SharedMutex {
  void lock() noexcept { AcquireSRWLockExclusive(&native); }
  void unlock() noexcept { ReleaseSRWLockExclusive(&native); }
  SRWLOCK native = SRWLOCK_INIT;
};

struct SharedConditionVariable {
  void wait(SharedMutex& mutex) noexcept {
    SleepConditionVariableSRW(&native, &mutex.native, INFINITE, 0);
  }
  void wait_a_while(SharedMutex& mutex) noexcept {
    SleepConditionVariableSRW(&native, &mutex.native, 10, 0);
  }
  void notify_all() noexcept { WakeAllConditionVariable(&native); }
  CONDITION_VARIABLE native = CONDITION_VARIABLE_INIT;
};

using ThreadId = DWORD;
inline ThreadId ThisThreadId() noexcept { return GetCurrentThreadId(); }

// There are no forks.
class Process {
 public:
  static unsigned Number() noexcept { return *NumberPlace(); }
  static const unsigned* NumberPlace() noexcept {
    static constexpr unsigned kNumber = 1;
    return &kNumber;
  }
};
template <void (*)()>
void WatchForks() noexcept {}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_CONCURRENCY_WINDOWS_H_
