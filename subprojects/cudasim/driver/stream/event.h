// SPDX-License-Identifier: Apache-2.0
//
// Events. Work is done when it is submitted, so a recorded event has happened.

#ifndef CUDASIM_DRIVER_STREAM_EVENT_H_
#define CUDASIM_DRIVER_STREAM_EVENT_H_

#include <cuda.h>

#include <cstddef>

namespace cudasim::driver {

size_t CountEvents();

// For an event that a launch records: INVALID_HANDLE for null, NOT_SUPPORTED for one with
// timing.
CUresult CheckUntimed(CUevent handle);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_EVENT_H_
