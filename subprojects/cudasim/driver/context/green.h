// SPDX-License-Identifier: Apache-2.0
//
// Green contexts: a part of a device's multiprocessors, current like a context. See
// Note [A green context is a place, its primary is the owner] in context.h.

#ifndef CUDASIM_DRIVER_CONTEXT_GREEN_H_
#define CUDASIM_DRIVER_CONTEXT_GREEN_H_

#include <cuda.h>

#include "driver/context/context.h"

namespace cudasim::driver {

// A living green context. INVALID_CONTEXT for null and for a context that is not
// green, CONTEXT_IS_DESTROYED for a dead one; panics for what never was a context.
CUresult FindGreenContext(CUgreenCtx green, Context** context);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_GREEN_H_
