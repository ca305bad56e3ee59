// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/bridge/triple.h"

// extern "C", so that the simulation knows it by its plain name.
extern "C" __global__ void triple(float* values, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= 3.0F;
}

namespace host {

cudaError_t Triple(float* values, unsigned count, cudaStream_t stream) {
  constexpr unsigned kBlock = 128;
  triple<<<(count + kBlock - 1) / kBlock, kBlock, 0, stream>>>(values, count);
  return cudaGetLastError();
}

}  // namespace host
