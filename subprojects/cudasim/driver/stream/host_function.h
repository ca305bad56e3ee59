// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the user's in streams and graphs.

#ifndef CUDASIM_DRIVER_STREAM_HOST_FUNCTION_H_
#define CUDASIM_DRIVER_STREAM_HOST_FUNCTION_H_

#include <cuda.h>

#include "driver/graph/graph.h"

namespace cudasim::driver {

// Of a function that is called with that argument, in no context unless one is given. INVALID_VALUE
// without a function.
CUresult MakeHostWork(const CUDA_HOST_NODE_PARAMS& params, const Incarnation& incarnation,
                      Work* work);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_HOST_FUNCTION_H_
