// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which memory is found from where: of another device, and what was lent to a device or was not.
//
// Source: test/reach_facts_test.cc.

#ifndef CUDASIM_DRIVER_MEMORY_REACH_H_
#define CUDASIM_DRIVER_MEMORY_REACH_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "driver/context/context.h"

namespace cudasim::driver {

// What touches memory. Of a peer copy nothing is asked: it finds all.
enum class Touch { kCopy, kFill, kKernel };

// Whether what works in `place` finds the range, to do with it what `access` (a bit of
// CUmemAccess_flags) says:
// - memory of the host and managed memory: always;
// - a pool's: where the pool's device is, or was given access;
// - mapped memory: where the mapping's access says so, also on its own device;
// - what is allocated in a context: on its device, and from another one by copies, by the rest with
//   peer access to that context.
// Memory that the driver does not know counts as found.
bool IsWithinReach(Touch touch, CUdeviceptr address, size_t bytes, unsigned access,
                   const Incarnation& place);

// The devices that have access to memory of a pool, of a graph or of a mapping, a bit for each, and
// bit 31. 0: what is there is in a context, or is plain memory.
std::uint32_t DevicesWithAccess(CUdeviceptr address);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_REACH_H_
