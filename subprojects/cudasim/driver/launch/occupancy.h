// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many blocks and clusters a device of 9.0 holds at a time.

#ifndef CUDASIM_DRIVER_LAUNCH_OCCUPANCY_H_
#define CUDASIM_DRIVER_LAUNCH_OCCUPANCY_H_

#include <cstddef>

#include "driver/code/module.h"

namespace cudasim::driver {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kPortableCluster = 8;
inline constexpr unsigned kLargestCluster = 16;

// That have room on a multiprocessor with so many registers per thread.
unsigned WarpsByRegisters(unsigned registers);

size_t MaxDynamicSharedOf(const Function& function);

// Whether its clusters may have more blocks than every device allows.
bool AllowsAnyCluster(const Function& function);

// On a multiprocessor; 0 when not even one fits. How many threads the function's blocks
// may have is not looked at, and a real driver does not, either.
unsigned ActiveBlocksOf(const Function& function, unsigned threads, size_t dynamic_shared);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_LAUNCH_OCCUPANCY_H_
