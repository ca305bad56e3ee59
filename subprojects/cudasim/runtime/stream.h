// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUDASIM_RUNTIME_STREAM_H_
#define CUDASIM_RUNTIME_STREAM_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace cudasim::runtime {

// The stream as the driver's plain entries understand it: they take 0 for the legacy
// stream, which in a twin it is not.
CUstream ToDriver(cudaStream_t stream);

// For the few calls that take a stream's own context: a stream of none, which means the
// current context's, needs one as any other call does.
cudaError_t BindForStream(cudaStream_t stream);

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_STREAM_H_
