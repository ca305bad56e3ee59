// SPDX-License-Identifier: Apache-2.0

#include "lib/core/concurrency.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::atomic<pid_t> g_process{0};  // that which asked for a number first

bool Membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

std::atomic<bool> AsymmetricFence::s_kernel_helps{false};

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

void AsymmetricFence::Prepare() noexcept {
  if (s_kernel_helps.load(std::memory_order_relaxed)) return;
  const int saved = errno;
  if (Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
    s_kernel_helps.store(true, std::memory_order_relaxed);
  }
  errno = saved;
}

bool AsymmetricFence::Heavy() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!s_kernel_helps.load(std::memory_order_relaxed)) return true;
  const int saved = errno;
  // A forked child may have to register again.
  const bool is_made = Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
                       (Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                        Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
  errno = saved;
  return is_made;
}

CUGUEST_END_INTERNAL_NAMESPACE
