// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
//
// Not for embedders. What protocols without locks are written with: the standard library's, unless
// cuguest's own tests compile them with replacements that explore every schedule
// (test/schedules).

#ifndef CUGUEST_INTERNAL_CONCURRENCY_H_
#define CUGUEST_INTERNAL_CONCURRENCY_H_

#ifdef CUGUEST_SCHEDULED_CONCURRENCY
#include CUGUEST_SCHEDULED_CONCURRENCY
#else

#include <atomic>
// The core needs neither, and on Windows, where there is no more than the core, GCC may have
// neither.
#ifndef _WIN32
#include <condition_variable>
#include <mutex>
#endif

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

template <typename T>
using Atomic = std::atomic<T>;
#ifndef _WIN32
using Mutex = std::mutex;
using ConditionVariable = std::condition_variable;
#endif

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_SCHEDULED_CONCURRENCY

#endif  // CUGUEST_INTERNAL_CONCURRENCY_H_
