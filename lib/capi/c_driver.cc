// SPDX-License-Identifier: Apache-2.0

#include "cuguest/c.h"
#include "cuguest/error_text.h"
#include "lib/context/thread_guards.h"
#include "lib/core/driver_access.h"

int cuguest_driver_adopt(cuguest_driver_lookup lookup, void* user) {
  if (lookup == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const cuguest::internal::DriverOutcome outcome = cuguest::internal::AdoptDriver(lookup, user);
  return outcome.problem == cuguest::DriverProblem::kInUse ? CUDA_ERROR_ILLEGAL_STATE
                                                           : outcome.code;
}

const char* cuguest_error_name(int code) { return cuguest::ErrorName(static_cast<CUresult>(code)); }

const char* cuguest_error_text(int code) { return cuguest::ErrorText(static_cast<CUresult>(code)); }

const char* cuguest_error_advice(int code) {
  return cuguest::internal::Advice(static_cast<CUresult>(code));
}
