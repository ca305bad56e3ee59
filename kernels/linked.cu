// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// values[i] = Twist(values[i]), one thread each. Twist is in linked_part.cu: neither can be
// loaded without a linker.

extern __device__ float Twist(float value);

extern "C" __global__ void twist(unsigned n, float* values) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = Twist(values[i]);
}
