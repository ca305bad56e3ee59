// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/primary_keeper.h"
#include "lib/capi/c_acquired.h"
#include "lib/capi/c_storage.h"

namespace c = cuguest::internal;

int cuguest_release_kept_primary(int device) {
  if (device == CUGUEST_NO_DEVICE) return cuguest::ReleaseKeptPrimaries().code;
  return cuguest::ReleaseKeptPrimary(cuguest::Device::Borrow(device)).code;
}

int cuguest_primary_keeper_keep(cuguest_primary_keeper* keeper, const cuguest_acquired* acquired) {
  const c::ConstAcquiredStorage kept(acquired);
  CUresult code = kept.HasBegun();
  if (code != CUDA_SUCCESS) return code;
  const c::StorageOf<cuguest::PrimaryKeeper, cuguest_primary_keeper> storage(keeper);
  code = storage.HasBegun();
  if (code == CUDA_ERROR_ILLEGAL_STATE) {
    storage.Begin();
    code = CUDA_SUCCESS;
  }
  return code == CUDA_SUCCESS ? storage->Keep(*kept).code : code;
}

int cuguest_primary_keeper_release(cuguest_primary_keeper* keeper, int device) {
  const c::StorageOf<cuguest::PrimaryKeeper, cuguest_primary_keeper> storage(keeper);
  const CUresult code = storage.HasBegun();
  if (code != CUDA_SUCCESS) return code;
  if (device != CUGUEST_NO_DEVICE) {
    return storage->Release(cuguest::Device::Borrow(device)).code;
  }
  const CUresult released = storage->ReleaseAll().code;
  if (!c::IsStillHeld(released)) storage.End();
  return released;
}

void cuguest_primary_keeper_cleanup(cuguest_primary_keeper* keeper) {
  c::CleanUpObject<cuguest::PrimaryKeeper>(keeper);
}
