// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is acquired, in C.

#ifndef CUGUEST_LIB_CAPI_C_ACQUIRED_H_
#define CUGUEST_LIB_CAPI_C_ACQUIRED_H_

#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

static_assert(CUGUEST_REFUSE == static_cast<int>(IfInactive::kRefuse));
static_assert(CUGUEST_CREATE == static_cast<int>(IfInactive::kCreate));
static_assert(CUGUEST_CREATE_AND_KEEP == static_cast<int>(IfInactive::kCreateAndKeep));

// Whether it is an IfInactive.
inline bool IsWhatIfInactive(int if_inactive) noexcept {
  return if_inactive >= CUGUEST_REFUSE && if_inactive <= CUGUEST_CREATE_AND_KEEP;
}

using AcquiredStorage = StorageOf<Acquired, cuguest_acquired>;
using ConstAcquiredStorage = StorageOf<const Acquired, const cuguest_acquired>;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CAPI_C_ACQUIRED_H_
