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
// when an embedder is unloaded. Each thread that offers before a value is kept writes to a place of
// its own there; the heap is for a fifth at the same moment, whose copy is freed unless it wins.
// Then it is lost when the embedder is unloaded.
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
    const unsigned taken = taken_.fetch_add(1, std::memory_order_relaxed);
    const bool is_own = taken < kPlaces;
    void* const place = is_own ? places_[taken] : std::malloc(sizeof(T));
    if (place == nullptr) return nullptr;
    const T* const copy = new (place) T(value);
    const T* kept = nullptr;
    if (kept_.compare_exchange_strong(kept, copy, std::memory_order_release,
                                      std::memory_order_acquire)) {
      if (won != nullptr) *won = true;
      return copy;
    }
    if (!is_own) std::free(place);
    return kept;
  }

 private:
  static constexpr unsigned kPlaces = 4;

  Atomic<const T*> kept_{nullptr};
  Atomic<unsigned> taken_{0};
  alignas(T) unsigned char places_[kPlaces][sizeof(T)] = {};
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_PUBLISH_ONCE_H_
