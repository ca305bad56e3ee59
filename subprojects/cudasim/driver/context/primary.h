// SPDX-License-Identifier: Apache-2.0
//
// The primary contexts: one per device, counted, shared by the whole process.

#ifndef CUDASIM_DRIVER_CONTEXT_PRIMARY_H_
#define CUDASIM_DRIVER_CONTEXT_PRIMARY_H_

#include <cuda.h>

#include <cstddef>

#include "driver/context/context.h"

namespace cudasim::driver {

// Retains without a release, over all devices.
size_t CountPrimaryReferences();

// A green context of the device, which retains the primary until it is destroyed.
CUresult CreateGreenContext(CUdevice device, unsigned multiprocessors, Context** context);

// CONTEXT_IS_DESTROYED if another call destroyed it before.
CUresult DestroyGreenContext(Context* context);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_PRIMARY_H_
