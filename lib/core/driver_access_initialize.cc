// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::atomic<pid_t> g_initialized_in{0};

}  // namespace

CUresult InitializeDriver(const DriverTable& driver) noexcept {
  const pid_t self = getpid();
  if (g_initialized_in.load(std::memory_order_acquire) == self) return CUDA_SUCCESS;
  const CUresult code = driver.Init(0);
  if (code == CUDA_SUCCESS) g_initialized_in.store(self, std::memory_order_release);
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE
