// SPDX-License-Identifier: Apache-2.0
//
// What must be given back when a context dies. (Streams, events and modules need no
// sweep: their life tells that they are orphans.)

#ifndef CUDASIM_DRIVER_CONTEXT_SWEEP_H_
#define CUDASIM_DRIVER_CONTEXT_SWEEP_H_

#include <cstdint>

namespace cudasim::driver {

// Call after the life is marked dead: a table refuses to add to a dead life while
// it holds its lock, so nothing is added behind the sweep.
void SweepEverythingIn(std::uint64_t context_id);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_SWEEP_H_
