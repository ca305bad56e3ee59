// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The primary contexts: one per device, counted, shared by the whole process. And the green ones,
// which retain them: a part of a device's multiprocessors, current like a context. See Note [A
// green context is a place, its primary is the owner] in context.h.

#ifndef CUDASIM_DRIVER_CONTEXT_PRIMARY_H_
#define CUDASIM_DRIVER_CONTEXT_PRIMARY_H_

#include <cuda.h>

#include <cstddef>

#include "driver/context/context.h"

namespace cudasim::driver {

// Retains without a release, over all devices.
size_t CountPrimaryReferences();

// Of the flags of cuCtxSetFlags the primary's state shows CU_CTX_SYNC_MEMOPS alone (measured on an
// H100, driver 580.159.04).
void ShowSyncMemops(CUdevice device, bool syncs);

// A green context of the device, which retains the primary until it is destroyed.
CUresult CreateGreenContext(CUdevice device, const Partition& partition, Context** context);

// CONTEXT_IS_DESTROYED if another call destroyed it before.
CUresult DestroyGreenContext(Context* context);

// A living green context. INVALID_CONTEXT for null and for a context that is not
// green, CONTEXT_IS_DESTROYED for a dead one; panics for what never was a context.
CUresult FindGreenContext(CUgreenCtx green, Context** context);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_PRIMARY_H_
