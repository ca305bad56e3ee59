// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Events: what other parts of the driver ask of them.

#ifndef CUDASIM_DRIVER_STREAM_EVENT_H_
#define CUDASIM_DRIVER_STREAM_EVENT_H_

#include <cuda.h>

#include <cstddef>

#include "driver/graph/graph.h"

namespace cudasim::driver {

size_t CountEvents();

// For an event that a launch records: INVALID_HANDLE for null, NOT_SUPPORTED for one with
// timing.
CUresult CheckUntimed(CUevent handle);

// What a graph does with an event, in no context unless one is given: each launch records it, or
// waits for what was recorded last before that launch. An event that is destroyed by then is left
// alone. INVALID_VALUE for null; NOT_SUPPORTED for a record of one of two processes, which is not
// modelled.
CUresult MakeRecordWork(CUevent handle, const Incarnation& incarnation, Work* work);
CUresult MakeWaitWork(CUevent handle, const Incarnation& incarnation, Work* work);

// False if the two are there, in two contexts.
bool AreOfOneContext(CUevent one, CUevent other);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_EVENT_H_
