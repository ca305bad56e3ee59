// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sum = x + y over `n` floats, one thread each. The grid may be larger than n.

extern "C" __global__ void vector_add(unsigned n, const float* x, const float* y, float* sum) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = x[i] + y[i];
}
