// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What device code can have in it, for device_code.py: every kind of variable, textures and
// surfaces, shared memory and variables of other sources, templates, recursion, calls by pointer,
// printf, a grid that waits for itself. It is never launched.

#include <cooperative_groups.h>

#include <cstdio>

#ifdef __CUDACC_RDC__
extern __device__ float factor;  // of another source
#else
__device__ float factor;
#endif
extern __shared__ float room[];
__constant__ float table[64];
__device__ int counter = 5;
__managed__ int of_both;

template <typename T>
__global__ void Increment(T* values) {
  values[threadIdx.x] += T(1);
}
template __global__ void Increment<double>(double*);

__device__ __noinline__ float Double(float x, int times) {
  return times == 0 ? x : Double(x * 2, times - 1);
}

extern "C" __global__ void __launch_bounds__(128, 2)
    Mix(float* values, cudaTextureObject_t texture, cudaSurfaceObject_t surface) {
  __shared__ float tile[128];
  room[threadIdx.x] = values[threadIdx.x] + tex2D<float>(texture, 1.0f, 2.0f);
  tile[threadIdx.x] = table[threadIdx.x & 63];
  __syncthreads();
  values[threadIdx.x] = factor * tile[threadIdx.x ^ 1] * room[blockDim.x - 1 - threadIdx.x];
  surf2Dwrite(Double(values[threadIdx.x], counter), surface, 4 * threadIdx.x, 0);
  if (values[0] < 0) printf("%f\n", values[0]);
  atomicAdd(&counter, of_both);
}

extern "C" __global__ void Together(int* values) {
  values[threadIdx.x] = 1;
  cooperative_groups::this_grid().sync();
  values[threadIdx.x] += 1;
}

__device__ float (*pointer)(float, int) = Double;
extern "C" __global__ void Call(float* values) { values[0] = pointer(values[1], 3); }

// Calls by pointers of several types with long lists of parameters: in a relocatable image their
// places among the names of symbols are greater than any symbol's number.
#define TEN(type) type, type, type, type, type, type, type, type, type, type
#define HUNDRED(type)                                                                     \
  TEN(type), TEN(type), TEN(type), TEN(type), TEN(type), TEN(type), TEN(type), TEN(type), \
      TEN(type), TEN(type)
struct Calls {
  void (*of_floats)(HUNDRED(float));
  void (*of_doubles)(HUNDRED(double));
  void (*of_ints)(HUNDRED(int));
};
extern "C" __global__ void CallMany(Calls calls) {
  calls.of_floats(HUNDRED(1.0f));
  calls.of_doubles(HUNDRED(2.0));
  calls.of_ints(HUNDRED(3));
}
