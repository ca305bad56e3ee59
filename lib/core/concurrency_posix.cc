// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/concurrency.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <new>

#ifndef MADV_WIPEONFORK  // of the C library before glibc 2.26
#define MADV_WIPEONFORK 18
#endif

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// No smaller than a page of the kernel. x86 has one size, which is also the alignment that a
// segment has at least; elsewhere that is the largest one.
#if defined(__x86_64__) || defined(__i386__)
constexpr std::size_t kPage = 4096;
#else
constexpr std::size_t kPage = 65536;
#endif

// Zeros alone, also the free lock: it is initialised without code, where no page of a file is.
struct alignas(kPage) ProcessPage {
  std::atomic<unsigned> number;
  SharedMutex mutex;
};
static_assert(sizeof(ProcessPage) == kPage);
ProcessPage g_page = {};

unsigned g_last_number = 0;  // of this process and its ancestors; written with the lock held
std::atomic<bool> g_is_watched{false};

bool Advise(int advice) noexcept { return madvise(&g_page, sizeof(g_page), advice) == 0; }

void ClearInChild() { new (&g_page) ProcessPage{}; }

// Where the C library has no memory for a handler, the next call tries again. An emulator that
// knows not the advice may accept any (QEMU before 8.0).
[[gnu::cold, gnu::noinline]] void WatchPage() noexcept {
  constexpr int kNoAdvice = -1;
  const int saved = errno;
  if ((!Advise(kNoAdvice) && Advise(MADV_WIPEONFORK)) ||
      pthread_atfork(nullptr, nullptr, &ClearInChild) == 0) {
    g_is_watched.store(true, std::memory_order_release);
  }
  errno = saved;
}

}  // namespace

unsigned Process::Number() noexcept {
  const bool is_watched = g_is_watched.load(std::memory_order_acquire);
  unsigned number = g_page.number.load(std::memory_order_acquire);
  if (CUGUEST_INTERNAL_LIKELY(is_watched && number != 0)) return number;
  if (!is_watched) WatchPage();
  const std::lock_guard<SharedMutex> lock(g_page.mutex);
  number = g_page.number.load(std::memory_order_relaxed);
  if (number == 0) {
    number = ++g_last_number;
    g_page.number.store(number, std::memory_order_release);
  }
  return number;
}

const unsigned* Process::NumberPlace() noexcept {
  static_assert(sizeof(g_page.number) == sizeof(unsigned));
  return reinterpret_cast<const unsigned*>(&g_page.number);
}

void Process::Enter(std::atomic<unsigned>* valid_for, void (*in_child)()) noexcept {
  const unsigned number = Number();
  if (valid_for->load(std::memory_order_acquire) == number) return;
  const std::lock_guard<SharedMutex> lock(g_page.mutex);
  const unsigned before = valid_for->load(std::memory_order_relaxed);
  if (before == number) return;
  if (before != 0) in_child();
  valid_for->store(number, std::memory_order_release);
}

int KernelThread() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

bool HasEnded(int kernel_thread) noexcept {
  const int saved = errno;
  const bool is_gone = syscall(SYS_tgkill, getpid(), kernel_thread, 0) != 0 && errno == ESRCH;
  errno = saved;
  return is_gone;
}

CUGUEST_END_INTERNAL_NAMESPACE
