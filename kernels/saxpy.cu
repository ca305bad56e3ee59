// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// y = a * x + y over `n` floats, one thread each. The grid may be larger than n.
//
// extern "C", so that the name a program asks cuModuleGetFunction for is the name
// written here.

extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
