// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
//
// Not for embedders. What the core needs of a compiler beside the language: hints, atomic access to
// variables that are no std::atomic, and more. GCC and clang have the first branch; the second is
// for those without GNU's extensions, and for clang-cl. Visibility and names: export.h. Attributes
// that only make code faster stand where they belong, as [[gnu::...]], which others ignore.

#ifndef CUGUEST_INTERNAL_COMPILER_H_
#define CUGUEST_INTERNAL_COMPILER_H_

#include <stddef.h>

#include "cuguest/export.h"

#ifdef __GNUC__

// What the compiler is to lay out first, and last. Macros: clang forgets the hint of a function.
#define CUGUEST_INTERNAL_LIKELY(is_so) __builtin_expect(is_so, 1)
#define CUGUEST_INTERNAL_UNLIKELY(is_so) __builtin_expect(is_so, 0)
// A variable that each thread has, of zeros or constants and without a destructor: an
// `extern thread_local` costs a call of a wrapper besides.
#define CUGUEST_INTERNAL_THREAD __thread
// The pointer is whatever it is: what gave it is not asked again at each use.
#define CUGUEST_INTERNAL_KEEP(pointer) __asm__("" : "+r"(pointer))

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Of the function that calls it.
[[gnu::always_inline]] CUGUEST_HIDE inline void* FrameAddress() noexcept {
  return __builtin_frame_address(0);
}

// memcpy(), without its header.
CUGUEST_HIDE inline void CopyBytes(void* to, const void* from, size_t bytes) noexcept {
  __builtin_memcpy(to, from, bytes);
}

[[noreturn]] CUGUEST_HIDE inline void Trap() noexcept { __builtin_trap(); }

// constexpr for GCC, which lays out a guard in line as with the built-in function itself.
template <typename T>
CUGUEST_HIDE constexpr T LoadRelaxed(const T* from) noexcept {
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}
template <typename T>
CUGUEST_HIDE constexpr T LoadAcquire(const T* from) noexcept {
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
template <typename T>
CUGUEST_HIDE inline void StoreRelaxed(T* to, T value) noexcept {
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
}
template <typename T>
CUGUEST_HIDE inline void StoreRelease(T* to, T value) noexcept {
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

// These return what was there before.
template <typename T>
CUGUEST_HIDE inline T AddRelaxed(T* to, T value) noexcept {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
template <typename T>
CUGUEST_HIDE inline T SetBits(T* in, T bits) noexcept {
  return __atomic_fetch_or(in, bits, __ATOMIC_ACQ_REL);
}
template <typename T>
CUGUEST_HIDE inline T ClearBits(T* in, T bits) noexcept {
  return __atomic_fetch_and(in, ~bits, __ATOMIC_ACQ_REL);
}
// Whether `from` was there, and is `to` now.
template <typename T>
CUGUEST_HIDE inline bool Replace(T* in, T from, T to) noexcept {
  return __atomic_compare_exchange_n(in, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

CUGUEST_END_INTERNAL_NAMESPACE

#else  // __GNUC__

#include <string.h>

#include <atomic>

// Of <intrin.h>, which has a thousand more.
extern "C" void* _AddressOfReturnAddress(void);
extern "C" __declspec(noreturn) void __fastfail(unsigned code);
#pragma intrinsic(_AddressOfReturnAddress)

#define CUGUEST_INTERNAL_LIKELY(is_so) (is_so)
#define CUGUEST_INTERNAL_UNLIKELY(is_so) (is_so)
#define CUGUEST_INTERNAL_THREAD __declspec(thread)
#define CUGUEST_INTERNAL_KEEP(pointer) static_cast<void>(pointer)

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUGUEST_HIDE __forceinline void* FrameAddress() noexcept { return _AddressOfReturnAddress(); }

CUGUEST_HIDE inline void CopyBytes(void* to, const void* from, size_t bytes) noexcept {
  memcpy(to, from, bytes);
}

[[noreturn]] CUGUEST_HIDE inline void Trap() noexcept { __fastfail(7); }

// The variable as what it is for the compiler that has no atomic access to others.
template <typename T>
CUGUEST_HIDE inline std::atomic<T>& AtomicAt(const T* place) noexcept {
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
  return *reinterpret_cast<std::atomic<T>*>(const_cast<T*>(place));
}
template <typename T>
CUGUEST_HIDE inline T LoadRelaxed(const T* from) noexcept {
  return AtomicAt(from).load(std::memory_order_relaxed);
}
template <typename T>
CUGUEST_HIDE inline T LoadAcquire(const T* from) noexcept {
  return AtomicAt(from).load(std::memory_order_acquire);
}
template <typename T>
CUGUEST_HIDE inline void StoreRelaxed(T* to, T value) noexcept {
  AtomicAt(to).store(value, std::memory_order_relaxed);
}
template <typename T>
CUGUEST_HIDE inline void StoreRelease(T* to, T value) noexcept {
  AtomicAt(to).store(value, std::memory_order_release);
}
template <typename T>
CUGUEST_HIDE inline T AddRelaxed(T* to, T value) noexcept {
  return AtomicAt(to).fetch_add(value, std::memory_order_relaxed);
}
template <typename T>
CUGUEST_HIDE inline T SetBits(T* in, T bits) noexcept {
  return AtomicAt(in).fetch_or(bits, std::memory_order_acq_rel);
}
template <typename T>
CUGUEST_HIDE inline T ClearBits(T* in, T bits) noexcept {
  return AtomicAt(in).fetch_and(~bits, std::memory_order_acq_rel);
}
template <typename T>
CUGUEST_HIDE inline bool Replace(T* in, T from, T to) noexcept {
  return AtomicAt(in).compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                              std::memory_order_relaxed);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // __GNUC__

#endif  // CUGUEST_INTERNAL_COMPILER_H_
