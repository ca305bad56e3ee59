// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Some of everything that an image can hold: kernels with C and with C++ names, variables
// and constants of several types, shared memory, and a kernel that calls a function.

#include <cstdio>

__device__ int counter = 7;
__device__ float table[256];
__constant__ float weights[64] = {1, 2, 3};

struct Pair {
  int a;
  double b;
};

namespace {

__device__ __noinline__ float Weighted(float x, int i) {
  return x * weights[i % 64] + table[i % 256];
}

}  // namespace

extern "C" __global__ void weigh(float* values, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) values[i] = Weighted(values[i], i);
}

// One block of at most 128 threads.
extern "C" __global__ void mirror(Pair pair, int* to) {
  __shared__ int line[128];
  line[threadIdx.x] = pair.a + static_cast<int>(threadIdx.x);
  __syncthreads();
  to[threadIdx.x] = line[blockDim.x - 1 - threadIdx.x] + static_cast<int>(pair.b);
  atomicAdd(&counter, 1);
}

extern "C" __global__ void nothing() {}

__global__ void greet(int who) { std::printf("hello, %d\n", who); }

template <typename T>
__global__ void increment(T* value) {
  *value = *value + 1;
}
template __global__ void increment<int>(int*);
template __global__ void increment<double>(double*);
