// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPUs that are modelled.

#ifndef CUDASIM_DRIVER_CONTEXT_GPU_H_
#define CUDASIM_DRIVER_CONTEXT_GPU_H_

#include <cuda.h>

#include <cstddef>

namespace cudasim::driver {

// All devices of a process are of one kind: that of the environment variable CUDASIM_GPU, "H100" or
// "H200"; H100 where it is not set. Another value ends the process with a message.
struct Gpu {
  const char* name;
  size_t memory;

  // 0 for what is not in the table.
  [[nodiscard]] int Attribute(CUdevice_attribute attribute) const;
};

const Gpu& ThisGpu();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_GPU_H_
