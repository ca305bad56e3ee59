// SPDX-License-Identifier: Apache-2.0
//
// Events. Work is done when it is submitted, so a recorded event has happened.

#ifndef CUGUEST_LIB_SIM_EVENT_H_
#define CUGUEST_LIB_SIM_EVENT_H_

#include <cuda.h>

#include <cstddef>

namespace cuguest_sim {

size_t CountEvents();

// For an event that a launch records: INVALID_HANDLE for null, NOT_SUPPORTED for one with
// timing.
CUresult CheckUntimed(CUevent handle);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_EVENT_H_
