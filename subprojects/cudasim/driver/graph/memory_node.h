// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that allocate and free memory.

#ifndef CUDASIM_DRIVER_GRAPH_MEMORY_NODE_H_
#define CUDASIM_DRIVER_GRAPH_MEMORY_NODE_H_

#include <cuda.h>

#include "driver/graph/graph.h"

namespace cudasim::driver {

// Of a node of `graph`, in no context unless one is given. `params->dptr` becomes the address.
CUresult MakeAllocationWork(CUgraph graph, const Incarnation& incarnation,
                            CUDA_MEM_ALLOC_NODE_PARAMS* params, Work* work);

// GraphAddMemAllocNode for the form of a node of any type.
CUresult AddAllocationOfAny(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, CUDA_MEM_ALLOC_NODE_PARAMS_v2* any);

// INVALID_VALUE for what is no graph's memory, and for a second node that would free it.
CUresult MakeFreeWork(CUgraph graph, const Incarnation& incarnation, CUdeviceptr address,
                      Work* work);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_MEMORY_NODE_H_
