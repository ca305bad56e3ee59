// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every copy and fill checks.

#ifndef CUDASIM_DRIVER_MEMORY_COPY_H_
#define CUDASIM_DRIVER_MEMORY_COPY_H_

#include <cuda.h>

#include <cstddef>

#include "driver/graph/graph.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {

// What must lie at one end of a copy.
enum class End {
  kDevice,  // an allocation of this driver
  kHost,    // anything but null
  kEither,  // an allocation, or memory that the driver does not know
};

// The whole of a range in one allocation, or INVALID_VALUE: a byte more is refused,
// however far the device's page goes (measured on an H100, driver 580.159.04).
// Of memory that is not the driver's: whether the devices reach it all the same.
bool IsReachedPlain(CUdeviceptr address, size_t bytes);

bool IsRange(CUdeviceptr address, size_t bytes, End end, unsigned access);

// For work that is done, which may be long after it was checked.
void PanicUnless(bool valid);

// The two forms of an entry.
enum class Form { kBlocking, kAsync };

// Where memory lies: what a copy's call waits for depends on it.
enum class Location { kDevice, kPinned, kPageable };
Location LocationOf(CUdeviceptr address);

// Whether a copy's call returns only once it is done (CUDA's "API synchronization behavior"). A
// blocking copy between places of the device does not; a blocking one from pageable memory does
// here, where a real driver may still be about to write the device's memory.
bool Waits(Form form, Location to, Location from);

// What a call that waits for `task` returns.
CUresult WaitFor(const TaskPointer& task);

// What a node of a graph does that names that context, or none. INVALID_VALUE: nothing could be
// copied, or filled, so; or a fill is in no context: it works in that of the memory, and of memory
// that has none, as a pool's, in the one that is named. Source:
// test/graph_node_context_facts_test.cc.
CUresult MakeCopyWork(const CUDA_MEMCPY3D& copy, const Incarnation& named, Work* work);
CUresult MakeFillWork(const CUDA_MEMSET_NODE_PARAMS& fill, const Incarnation& named, Work* work);

// The bytes of `rows` rows of `width` bytes, each `pitch` behind the one before: the
// last row ends where its own bytes do. False if they are more than can be.
bool AreaBytes(size_t width, size_t rows, size_t pitch, size_t* bytes);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_COPY_H_
