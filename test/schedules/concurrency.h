// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lib/core/concurrency.h offers, with schedules and memory orders chosen by the explorer.
// Operations that the library does not use are not there.

#ifndef CUGUEST_TEST_SCHEDULES_CONCURRENCY_H_
#define CUGUEST_TEST_SCHEDULES_CONCURRENCY_H_

#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "cuguest/export.h"
#include "test/schedules/explorer.h"

#define CUGUEST_THREAD_LOCAL(Type) ::schedules::PerThread<Type>

CUGUEST_BEGIN_NAMESPACE
namespace internal {

template <typename T>
class Atomic {
 public:
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

  // Implicit, as the standard library's.
  constexpr Atomic() : location_(0) {}
  constexpr Atomic(T value) : location_(Bits(value)) {}  // NOLINT(google-explicit-constructor)

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    return Value(location_.Load(order));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    location_.Store(Bits(value), order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    return Value(location_.Modify(order, [=](std::uint64_t) { return Bits(value); }));
  }
  T fetch_add(T change, std::memory_order order = std::memory_order_seq_cst) {
    return Value(location_.Modify(
        order, [=](std::uint64_t now) { return Bits(static_cast<T>(Value(now) + change)); }));
  }
  T fetch_sub(T change, std::memory_order order = std::memory_order_seq_cst) {
    return Value(location_.Modify(
        order, [=](std::uint64_t now) { return Bits(static_cast<T>(Value(now) - change)); }));
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure) {
    std::uint64_t bits = Bits(expected);
    const bool done = location_.CompareExchange(&bits, Bits(desired), success, failure);
    expected = Value(bits);
    return done;
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired, order, OrderOfFailure(order));
  }
  template <typename... Orders>
  bool compare_exchange_weak(T& expected, T desired, Orders... orders) {
    return compare_exchange_strong(expected, desired, orders...);
  }

 private:
  static std::memory_order OrderOfFailure(std::memory_order order) {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    return order == std::memory_order_release ? std::memory_order_relaxed : order;
  }
  static constexpr std::uint64_t Bits(T value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      return static_cast<std::uint64_t>(value);
    } else {
      return value == nullptr ? 0 : BitsOfPointer(value);
    }
  }
  static std::uint64_t BitsOfPointer(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(value));
    return bits;
  }
  static T Value(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

  schedules::Location location_;
};

class Mutex {
 public:
  void lock() noexcept { location_.Lock(); }
  bool try_lock() noexcept { return location_.TryLock(); }
  void unlock() noexcept { location_.Unlock(); }

 private:
  friend class ConditionVariable;
  schedules::Location location_{0};
};
using SharedMutex = Mutex;

class ConditionVariable {
 public:
  void wait(Mutex& mutex) {
    location_.Wait(&mutex.location_);
    mutex.lock();
  }
  void wait_a_while(Mutex& mutex) { wait(mutex); }
  void wait(std::unique_lock<Mutex>& lock) { wait(*lock.mutex()); }
  template <typename Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate is_met) {
    while (!is_met()) wait(lock);
  }
  void notify_all() noexcept { location_.NotifyAll(); }

 private:
  schedules::Location location_{0};
};
using SharedConditionVariable = ConditionVariable;

using ThreadId = int;
inline ThreadId ThisThreadId() noexcept { return schedules::ThisThread(); }

class Process {
 public:
  static unsigned Number() noexcept { return *NumberPlace(); }
  static const unsigned* NumberPlace() noexcept { return &schedules::ThisProcess(); }
};
template <void (*)()>
void WatchForks() noexcept {}

inline std::uint64_t ThreadNumber() noexcept {
  return static_cast<std::uint64_t>(schedules::ThisThread() + 1);
}

inline int KernelThread() noexcept { return schedules::ThisThread(); }
inline bool HasEnded(int /*kernel_thread*/) noexcept { return false; }

// Both are full fences, between the threads that use one object: changes of one location are in one
// order, and each sees what was done before the one that it follows.
class AsymmetricFence {
 public:
  static void Prepare() noexcept {}
  void Light() noexcept { order_.fetch_add(1, std::memory_order_acq_rel); }
  [[nodiscard]] bool Heavy() noexcept {
    order_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

 private:
  Atomic<unsigned> order_{0};
};

template <typename T>
constexpr T Spread(T /*size*/, T when_explored) noexcept {
  return when_explored;
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_TEST_SCHEDULES_CONCURRENCY_H_
