// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value that the first caller makes and everybody keeps, without a lock.           tier: 0

#ifndef CUGUEST_LIB_CORE_PUBLISH_ONCE_H_
#define CUGUEST_LIB_CORE_PUBLISH_ONCE_H_

#include <cstdlib>
#include <new>
#include <type_traits>

#include "cuguest/export.h"
#include "cuguest/internal/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Note [No lock while a library is loaded]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// dlopen() takes the dynamic linker's lock, and runs constructors of other people with that lock
// held. A thread that waited for a lock of ours (call_once and the guard of a function-local static
// are such locks) in one of these constructors, while the lock's owner waited in dlopen(), would
// never go on. So threads that need the same library at the same time each load it, which the
// linker counts, and the first one to offer its result wins:
//
//   const T* kept = g_once.Get();
//   if (kept == nullptr) kept = g_once.Offer(Make());   // Make() with no lock held
//
// PublishOnce
//
// Constant-initialised and trivially destroyed, for static storage: it works before main() and
// after the last static destructor. The value is kept in the object itself, so that nothing is lost
// when an embedder is unloaded. Only a thread that offers at the same moment as the first one uses
// the heap, and that copy is freed unless it wins; then it is lost when the embedder is unloaded.
//
// Threads: any. No function waits for another thread, so that a child forked in the middle of
//          another thread's Offer() is served, too.
template <typename T>
class PublishOnce {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  constexpr PublishOnce() = default;
  PublishOnce(const PublishOnce&) = delete;
  PublishOnce& operator=(const PublishOnce&) = delete;

  // nullptr before the first Offer().
  const T* Get() const noexcept { return kept_.load(std::memory_order_acquire); }

  // Keeps a copy of `value` unless a value is kept already; returns the kept one, and whether that
  // is this call's in `won` unless null. nullptr without memory: nothing is kept then.
  const T* Offer(const T& value, bool* won = nullptr) noexcept {
    if (won != nullptr) *won = false;
    if (const T* const kept = Get()) return kept;
    const bool has_own = !own_is_taken_.exchange(true, std::memory_order_relaxed);
    void* const place = has_own ? own_ : std::malloc(sizeof(T));
    if (place == nullptr) return nullptr;
    const T* const copy = new (place) T(value);
    const T* kept = nullptr;
    if (kept_.compare_exchange_strong(kept, copy, std::memory_order_release,
                                      std::memory_order_acquire)) {
      if (won != nullptr) *won = true;
      return copy;
    }
    if (!has_own) std::free(place);
    return kept;
  }

 private:
  Atomic<const T*> kept_{nullptr};
  Atomic<bool> own_is_taken_{false};
  alignas(T) unsigned char own_[sizeof(T)] = {};
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_PUBLISH_ONCE_H_
