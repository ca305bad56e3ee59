// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/held_locks.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace cuguest_test {
namespace {

// The code of libcuguest.so.
std::uintptr_t g_begin = 0;
std::uintptr_t g_end = 0;
std::atomic<unsigned long> g_taken{0};
std::atomic<void (*)()> g_hook{nullptr};

struct Held {
  const void* lock;
  const void* taken_at;
};
constexpr int kMax = 16;
thread_local Held t_held[kMax];
thread_local int t_count = 0;

int FindLibrary(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libcuguest.so") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    g_begin = info->dlpi_addr + segment.p_vaddr;
    g_end = g_begin + segment.p_memsz;
  }
  return 1;
}

__attribute__((constructor)) void Find() { dl_iterate_phdr(&FindLibrary, nullptr); }

[[maybe_unused]] void Took(const void* lock, const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (address < g_begin || address >= g_end) return;
  g_taken.fetch_add(1, std::memory_order_relaxed);
  if (t_count < kMax) t_held[t_count] = {lock, caller};
  ++t_count;
  void (*const hook)() = g_hook;
  if (hook != nullptr) hook();
}

[[maybe_unused]] void Gave(const void* lock) {
  for (int i = t_count; i-- > 0;) {
    if (i >= kMax || t_held[i].lock != lock) continue;
    for (int next = i + 1; next < t_count && next < kMax; ++next) t_held[next - 1] = t_held[next];
    --t_count;
    return;
  }
}

}  // namespace

bool SeesLocks() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return g_end != 0;
#endif
}

unsigned long LocksTaken() { return g_taken; }

void OnLockTaken(void (*hook)()) { g_hook = hook; }

void RequireNoLock(const char* during) {
  if (t_count == 0) return;
  t_count = 0;  // what follows may allocate
  Dl_info place = {};
  dladdr(t_held[0].taken_at, &place);
  std::fprintf(stderr, "%s while libcuguest.so holds a lock that it took in %s, at 0x%lx\n", during,
               place.dli_sname == nullptr ? "a local function" : place.dli_sname,
               static_cast<unsigned long>(reinterpret_cast<std::uintptr_t>(t_held[0].taken_at) -
                                          reinterpret_cast<std::uintptr_t>(place.dli_fbase)));
  _exit(1);
}

}  // namespace cuguest_test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

using cuguest_test::Gave;
using cuguest_test::RequireNoLock;
using cuguest_test::Took;

// Not a static that is initialised once, which has a guard.
#define REAL_OF(function, symbol)            \
  static decltype(&function) real = nullptr; \
  if (real == nullptr) real = reinterpret_cast<decltype(real)>(dlsym(RTLD_NEXT, symbol))
#define REAL(function) REAL_OF(function, #function)
#define CALLER __builtin_return_address(0)

#pragma GCC diagnostic ignored "-Wmissing-declarations"

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
// By names of ours: g++ declares these itself, with a type of its own, where it compiles a static
// first.
int GuardAcquire(std::int64_t*) __asm__("__cxa_guard_acquire");
void GuardRelease(std::int64_t*) __asm__("__cxa_guard_release");
void GuardAbort(std::int64_t*) __asm__("__cxa_guard_abort");

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  REAL(pthread_mutex_lock);
  const int code = real(mutex);
  if (code == 0) Took(mutex, CALLER);
  return code;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  REAL(pthread_mutex_trylock);
  const int code = real(mutex);
  if (code == 0) Took(mutex, CALLER);
  return code;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  REAL(pthread_mutex_unlock);
  Gave(mutex);
  return real(mutex);
}

int pthread_once(pthread_once_t* once, void (*run)()) {
  REAL(pthread_once);
  Took(once, CALLER);
  const int code = real(once, run);
  Gave(once);
  return code;
}

int GuardAcquire(std::int64_t* guard) {
  REAL_OF(GuardAcquire, "__cxa_guard_acquire");
  const int must_run = real(guard);
  if (must_run != 0) Took(guard, CALLER);
  return must_run;
}

void GuardRelease(std::int64_t* guard) {
  REAL_OF(GuardRelease, "__cxa_guard_release");
  Gave(guard);
  real(guard);
}

void GuardAbort(std::int64_t* guard) {
  REAL_OF(GuardAbort, "__cxa_guard_abort");
  Gave(guard);
  real(guard);
}

void* malloc(std::size_t size) {
  RequireNoLock("an allocation");
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  RequireNoLock("an allocation");
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  RequireNoLock("an allocation");
  return __libc_realloc(memory, size);
}

void* dlopen(const char* name, int flags) {
  REAL(dlopen);
  RequireNoLock("a library is loaded");
  return real(name, flags);
}

}  // extern "C"

#endif
