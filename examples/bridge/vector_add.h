// SPDX-License-Identifier: Apache-2.0
//
// kernels/vector_add.cu as the programs of the CUDA runtime have it: linked in with its
// symbol, and launched by <<<>>>.

#ifndef CUGUEST_EXAMPLES_BRIDGE_VECTOR_ADD_H_
#define CUGUEST_EXAMPLES_BRIDGE_VECTOR_ADD_H_

#include <cuda_runtime_api.h>

namespace support {

// sum = x + y, on `stream`. Returns the runtime's last error, as is usual after <<<>>>: also
// one that somebody else has left.
[[nodiscard]] cudaError_t VectorAdd(unsigned n, const float* x, const float* y, float* sum,
                                    cudaStream_t stream);

// For cudaGetKernel() and the like.
[[nodiscard]] const void* SymbolOfVectorAdd();

}  // namespace support

#endif  // CUGUEST_EXAMPLES_BRIDGE_VECTOR_ADD_H_
