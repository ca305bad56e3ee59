// SPDX-License-Identifier: Apache-2.0
//
// Pools of stream-ordered memory. They belong to a device and to no context, and so
// does the memory: it outlives the context of the stream it was allocated on, a reset
// and the pool's own destruction (measured on an H100, driver 580.159.04).

#ifndef CUGUEST_LIB_SIM_POOL_H_
#define CUGUEST_LIB_SIM_POOL_H_

#include <cuda.h>

#include <cstddef>

namespace cuguest_sim {

// For an allocation of the pool that is freed.
void GiveBackToPool(CUmemoryPool pool, size_t bytes);

// Whether the device has access to what the living allocations of `pool` are in.
bool PoolReaches(CUmemoryPool pool, CUdevice device);

// Those that were made and not destroyed; not the devices' own.
size_t CountPools();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_POOL_H_
