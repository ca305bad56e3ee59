// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/bridge/vector_add.h"

#include "kernels/vector_add.cu"

cudaError_t VectorAdd(unsigned n, const float* x, const float* y, float* sum, cudaStream_t stream) {
  constexpr unsigned kBlock = 256;
  vector_add<<<(n + kBlock - 1) / kBlock, kBlock, 0, stream>>>(n, x, y, sum);
  return cudaGetLastError();
}

const void* SymbolOfVectorAdd() { return reinterpret_cast<const void*>(&vector_add); }
