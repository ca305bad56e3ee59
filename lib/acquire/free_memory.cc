// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/free_memory.h"

#include "lib/core/failure.h"
#include "lib/guard/inner_guard.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

CUresult ReadIn(const ContextRef& context, FreeMemory* memory) {
  const internal::InnerGuard guard(context);
  if (guard.result() != CUDA_SUCCESS) return guard.result();
  const DriverTable& driver = internal::ResolvedDriver();
  return driver.MemGetInfo != nullptr ? driver.MemGetInfo(&memory->free, &memory->total)
                                      : internal::kCallRequiresNewerDriver;
}

}  // namespace

ErrorOr<FreeMemory> GetFreeMemory(Device device, IfInactive if_inactive) noexcept {
  Acquired acquired = AcquireOn(device, if_inactive);
  if (!acquired.ok()) return acquired.error();
  FreeMemory memory = {};
  const CUresult code = ReadIn(acquired.context(), &memory);
  const Error released = acquired.Release();
  if (code != CUDA_SUCCESS) {
    return internal::OfDevice(internal::Failure(code, "ask how much memory is free"),
                              Error::Subject::kDevice, device.get());
  }
  if (!released.ok()) return released;
  return memory;
}

CUGUEST_END_NAMESPACE
