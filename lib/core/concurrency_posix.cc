// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/concurrency.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::atomic<pid_t> g_process{0};  // that which asked for a number first

}  // namespace

int KernelThread() noexcept {
  pid_t nobody = 0;
  g_process.compare_exchange_strong(nobody, getpid());
  return static_cast<int>(syscall(SYS_gettid));
}

bool HasEnded(int kernel_thread) noexcept {
  const pid_t self = getpid();
  if (g_process.load() != self) return false;
  const int saved = errno;
  const bool is_gone = syscall(SYS_tgkill, self, kernel_thread, 0) != 0 && errno == ESRCH;
  errno = saved;
  return is_gone;
}

CUGUEST_END_INTERNAL_NAMESPACE
