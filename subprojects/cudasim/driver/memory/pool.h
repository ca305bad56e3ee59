// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools of stream-ordered memory. They belong to a device and to no context, and so
// does the memory: it outlives the context of the stream it was allocated on, a reset
// and the pool's own destruction (measured on an H100, driver 580.159.04).

#ifndef CUDASIM_DRIVER_MEMORY_POOL_H_
#define CUDASIM_DRIVER_MEMORY_POOL_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "driver/memory/pool_file.h"

namespace cudasim::driver {

// For an allocation of the pool that is freed.
void GiveBackToPool(CUmemoryPool pool, size_t bytes);

// Whether the device has access to what the living allocations of `pool` are in.
bool PoolReaches(CUmemoryPool pool, CUdevice device);

// What the pool's memory is in, if other processes may map that; nullptr if not, and for null.
std::shared_ptr<PoolFile> FileOfPool(CUmemoryPool pool);

// A pool of another process: nothing can be allocated from it here.
CUmemoryPool ImportPool(std::shared_ptr<PoolFile> file);
// What that process allocated from it, and keeps. INVALID_VALUE for a pool that is this process's,
// or if there is nothing.
CUresult ImportAllocation(CUmemoryPool pool, std::uint64_t offset, size_t bytes,
                          CUdeviceptr* address);

// Those that were made or imported, and not destroyed; not the devices' own.
size_t CountPools();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_POOL_H_
