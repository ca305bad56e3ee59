// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernels/vector_add.cu as programs of the CUDA runtime have it: linked with its
// symbol, and launched by <<<>>>.

#ifndef CUGUEST_EXAMPLES_BRIDGE_VECTOR_ADD_H_
#define CUGUEST_EXAMPLES_BRIDGE_VECTOR_ADD_H_

#include <cuda_runtime_api.h>

// sum = x + y, on `stream`. Returns the runtime's last error, as is usual after <<<>>>: also
// one of an earlier call.
[[nodiscard]] cudaError_t VectorAdd(unsigned n, const float* x, const float* y, float* sum,
                                    cudaStream_t stream);

// For cudaGetKernel() and the like.
[[nodiscard]] const void* SymbolOfVectorAdd();

#endif  // CUGUEST_EXAMPLES_BRIDGE_VECTOR_ADD_H_
