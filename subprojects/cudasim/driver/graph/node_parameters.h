// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forms in which nodes' parameters are given.

#ifndef CUDASIM_DRIVER_GRAPH_NODE_PARAMETERS_H_
#define CUDASIM_DRIVER_GRAPH_NODE_PARAMETERS_H_

#include <cuda.h>

namespace cudasim::driver {

// Of a kernel, from its first form and from that of a node of any type.
CUDA_KERNEL_NODE_PARAMS_v2 ToKernelParams(const CUDA_KERNEL_NODE_PARAMS_v1& first);
CUDA_KERNEL_NODE_PARAMS_v2 ToKernelParams(const CUDA_KERNEL_NODE_PARAMS_v3& any);

CUDA_MEMSET_NODE_PARAMS ToFillParams(const CUDA_MEMSET_NODE_PARAMS_v2& any);
CUDA_HOST_NODE_PARAMS ToHostParams(const CUDA_HOST_NODE_PARAMS_v2& any);
CUDA_MEM_ALLOC_NODE_PARAMS ToAllocationParams(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& any);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_NODE_PARAMETERS_H_
