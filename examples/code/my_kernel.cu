// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// data[i] *= 2 for i < n, one thread each. The build puts it beside the examples, as files.

#include <cstddef>

extern "C" __global__ void my_kernel(float* data, std::size_t n) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= 2;
}
