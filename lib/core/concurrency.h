// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the protocols without locks are written with. test/schedules compiles the same sources
// with replacements whose schedule and memory order it chooses, and explores every schedule up to
// a bound; so a protocol that is to be explored uses these names and no others.

#ifndef CUGUEST_LIB_CORE_CONCURRENCY_H_
#define CUGUEST_LIB_CORE_CONCURRENCY_H_

#include "cuguest/export.h"
#include "cuguest/internal/compiler.h"
#include "cuguest/internal/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The address of a thread's variable. In a library it costs a call, which the compiler would make
// at each use.
template <typename T>
T* AddressOnce(T* address) noexcept {
  CUGUEST_INTERNAL_KEEP(address);
  return address;
}

CUGUEST_END_INTERNAL_NAMESPACE

#ifndef CUGUEST_SCHEDULED_CONCURRENCY

#include <atomic>
#include <cstdint>
#include <mutex>

#ifdef _WIN32
#include "lib/core/concurrency_windows.h"
#else
#include "lib/core/concurrency_posix.h"
#endif

// A variable that each thread has.
#define CUGUEST_THREAD_LOCAL(Type) thread_local Type

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A number of the calling thread, which no other one has had: 0 for the first one that asked, and
// counted up. With 32 bits a host that starts a thread for each request would begin again within
// weeks.
inline std::uint64_t ThreadNumber() noexcept {
  static std::atomic<std::uint64_t> s_next{0};
  thread_local std::uint64_t s_one_more = 0;  // begun by hand: a guard would be looked up, too
  std::uint64_t& one_more = *AddressOnce(&s_one_more);
  if (one_more == 0) one_more = s_next.fetch_add(1, std::memory_order_relaxed) + 1;
  return one_more - 1;
}

// The kernel's number of the calling thread, which it gives to another when this one has ended.
int KernelThread() noexcept;
// Whether no thread of this process has this number, for certain. What a thread of the process that
// had it wrote last can then be read. In a forked child this is so of each thread of the parent,
// also of the one that forked, which goes on in the child with a new number.
bool HasEnded(int kernel_thread) noexcept;

// Of two threads that write one thing each and then read what the other has written, at least one
// reads the new value if each makes a full fence between the two. Where one of them has to be fast,
// it makes a Light() one, which keeps the compiler from reordering and costs no instruction, and
// the other a Heavy() one, for which the kernel lets every running thread of the process make a
// full fence: membarrier(2), "MEMBARRIER_CMD_PRIVATE_EXPEDITED". Where the kernel has no such
// thing, both are full ones.
class AsymmetricFence {
 public:
  // Before it, or where it fails, Light() is a full fence. A system call the first time.
  static void Prepare() noexcept;

  static void Light() noexcept {
    if (CUGUEST_INTERNAL_LIKELY(s_kernel_helps.load(std::memory_order_relaxed))) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  // False if the kernel, which has helped before, refuses: then nothing is known.
  [[nodiscard]] static bool Heavy() noexcept;

 private:
  static std::atomic<bool> s_kernel_helps;
};

// The size of what only spreads contention: `size`, and the least that is of interest where
// every schedule is explored.
template <typename T>
constexpr T Spread(T size, T /*when_explored*/) noexcept {
  return size;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_SCHEDULED_CONCURRENCY

#endif  // CUGUEST_LIB_CORE_CONCURRENCY_H_
