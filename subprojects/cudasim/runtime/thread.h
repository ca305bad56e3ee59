// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime remembers per thread.

#ifndef CUDASIM_RUNTIME_THREAD_H_
#define CUDASIM_RUNTIME_THREAD_H_

#include <cuda_runtime_api.h>

#include <vector>

namespace cudasim::runtime {

// What <<<...>>> pushed, for the stub that pops it.
struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

struct ThreadState {
  cudaError_t last_error = cudaSuccess;
  bool per_thread = false;  // of the call that the thread is in
  // What cudaGetDevice says where no context is current: the last cudaSetDevice, or -1
  // for the first valid device. A call that then needs a context does not ask it.
  int chosen_device = -1;
  // cudaSetValidDevices, before any cudaSetDevice of the thread; empty: all, in order
  std::vector<int> valid_devices;
  std::vector<CallConfiguration> configurations;
};

inline ThreadState& ThisThreadState() {
  thread_local ThreadState state;
  return state;
}

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_THREAD_H_
