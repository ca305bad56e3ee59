// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel as the programs of the CUDA runtime have them: linked in with its symbol, and
// launched by <<<>>>.

#ifndef CUGUEST_EXAMPLES_BRIDGE_TRIPLE_H_
#define CUGUEST_EXAMPLES_BRIDGE_TRIPLE_H_

#include <cuda_runtime_api.h>

namespace host {

// values *= 3, on `stream`. Returns the runtime's last error, as is usual after <<<>>>: also one of
// an earlier call.
[[nodiscard]] cudaError_t Triple(float* values, unsigned count, cudaStream_t stream);

}  // namespace host

#endif  // CUGUEST_EXAMPLES_BRIDGE_TRIPLE_H_
