// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/concurrency.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

bool Membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

std::atomic<bool> AsymmetricFence::s_kernel_helps{false};

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
