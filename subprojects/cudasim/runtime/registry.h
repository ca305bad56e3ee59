// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What nvcc's host code registers while a program loads: fat binaries, and which of their
// functions each host function stands for. A fat binary becomes a library of the driver
// (which needs uncompressed PTX in it: nvcc --no-compress) when one of its functions is
// first asked for.

#ifndef CUDASIM_RUNTIME_REGISTRY_H_
#define CUDASIM_RUNTIME_REGISTRY_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace cudasim::runtime {

// Threads: any.
bool IsRegistered(const void* symbol);

// InvalidDeviceFunction unless the symbol is registered; what the driver says of the
// library and of the name.
cudaError_t FindKernel(const void* symbol, CUkernel* kernel);

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_REGISTRY_H_
