// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/free_memory.h"

#include "lib/core/failure.h"
#include "lib/guard/inner_guard.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

CUresult ReadIn(const ContextRef& context, std::size_t* free, std::size_t* total) {
  const internal::InnerGuard guard(context);
  if (guard.result() != CUDA_SUCCESS) return guard.result();
  const DriverTable& driver = internal::ResolvedDriver();
  return driver.MemGetInfo != nullptr ? driver.MemGetInfo(free, total)
                                      : internal::kCallRequiresNewerDriver;
}

}  // namespace

Error GetFreeMemory(Device device, std::size_t* free, std::size_t* total,
                    IfInactive if_inactive) noexcept {
  Acquired acquired = AcquireOn(device, if_inactive);
  if (!acquired.ok()) return acquired.error();
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  const CUresult code = ReadIn(acquired.context(), &free_bytes, &all_bytes);
  const Error released = acquired.Release();
  if (code != CUDA_SUCCESS) {
    return internal::OfDevice(internal::Failure(code, "ask how much memory is free"),
                              Error::Subject::kDevice, device.get());
  }
  if (!released.ok()) return released;
  if (free != nullptr) *free = free_bytes;
  if (total != nullptr) *total = all_bytes;
  return {};
}

CUGUEST_END_NAMESPACE
