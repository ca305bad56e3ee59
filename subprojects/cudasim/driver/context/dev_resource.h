// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUdevResource: multiprocessors that a device is split into, and the work queues of a context.
// What a driver of 13.0 or older has was measured on an H100, driver 580.159.04; the rest is as the
// <cuda.h> of 13.1 to 13.5 documents it.

#ifndef CUDASIM_DRIVER_CONTEXT_DEV_RESOURCE_H_
#define CUDASIM_DRIVER_CONTEXT_DEV_RESOURCE_H_

#include <cuda.h>

#include "driver/context/context.h"

namespace cudasim::driver {

// What `context`, which is alive, has of it.
CUresult GetResource(const Context& context, CUdevResource* resource, CUdevResourceType type);

// What a description is of; null means the whole device.
Partition PartitionOf(CUdevResourceDesc handle);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_DEV_RESOURCE_H_
