// SPDX-License-Identifier: Apache-2.0
//
// The primary contexts: one per device, counted, shared by the whole process.

#ifndef CUGUEST_LIB_SIM_PRIMARY_H_
#define CUGUEST_LIB_SIM_PRIMARY_H_

#include <cuda.h>

#include <cstddef>

#include "lib/sim/context.h"

namespace cuguest_sim {

// Retains without a release, over all devices.
size_t CountPrimaryReferences();

// A green context of the device, which retains the primary until it is destroyed.
CUresult CreateGreenContext(CUdevice device, unsigned multiprocessors, Context** context);

// CONTEXT_IS_DESTROYED if another call destroyed it before.
CUresult DestroyGreenContext(Context* context);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_PRIMARY_H_
