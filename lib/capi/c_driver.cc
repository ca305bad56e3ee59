// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "lib/core/driver_access.h"

int cuguest_driver_adopt(cuguest_driver_lookup lookup, void* user) {
  if (lookup == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const cuguest::internal::DriverOutcome outcome =
      cuguest::internal::AdoptDriver(lookup, user, cuguest::internal::DriverNeeds::kGuards);
  return outcome.problem == cuguest::DriverTable::Problem::kInUse ? CUDA_ERROR_ILLEGAL_STATE
                                                                  : outcome.code;
}
