// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before a caller works: where its driver is, and what it asks about the process and about devices.

#include <algorithm>

#include "cuguest/c.h"
#include "cuguest/free_memory.h"
#include "lib/capi/c_acquired.h"
#include "lib/capi/c_storage.h"
#include "lib/core/driver_access.h"
#include "lib/core/failure.h"

int cuguest_driver_adopt(cuguest_driver_lookup lookup, void* user) {
  if (lookup == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const cuguest::internal::DriverOutcome outcome =
      cuguest::internal::AdoptDriver(lookup, user, cuguest::internal::DriverNeeds::kGuards);
  return outcome.problem == cuguest::DriverTable::Problem::kInUse ? CUDA_ERROR_ILLEGAL_STATE
                                                                  : outcome.code;
}

int cuguest_is_initialized(void) { return cuguest::internal::IsDriverInitialized() ? 1 : 0; }

int cuguest_free_memory(int device, int if_inactive, size_t* free, size_t* total) {
  if (!cuguest::internal::IsWhatIfInactive(if_inactive)) return CUDA_ERROR_INVALID_VALUE;
  const cuguest::ErrorOr<cuguest::FreeMemory> memory =
      GetFreeMemory(cuguest::Device::Borrow(device), static_cast<cuguest::IfInactive>(if_inactive));
  if (!memory.ok()) return memory.error().code;
  if (free != nullptr) *free = memory->free;
  if (total != nullptr) *total = memory->total;
  return CUDA_SUCCESS;
}

int cuguest_peer_access_check(int device, int peer) {
  const cuguest::DriverTable* driver = nullptr;
  const cuguest::Error found = cuguest::internal::GetInitializedDriver(&driver);
  if (!found.ok()) return found.code;
  int access = 0;
  const CUresult code = cuguest::internal::AskOf(
      std::min(device, peer), [&] { return driver->DeviceCanAccessPeer(&access, device, peer); });
  return code != CUDA_SUCCESS || access != 0 ? code : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}
