// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that show that they were launched, and how.

extern "C" __global__ void nothing() {}

// counts[i] += value for i < n, one thread each. The grid may be larger than n.
extern "C" __global__ void count_up(unsigned n, unsigned value, unsigned* counts) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) counts[i] += value;
}

// Whatever value this context's copy of the variable was given.
__device__ unsigned launch_mark;
extern "C" __global__ void set_mark(unsigned value) { launch_mark = value; }
extern "C" __global__ void get_mark(unsigned* value) { *value = launch_mark; }

// What the launch was given: the grid, the block, the cluster (1, 1, 1 where devices have
// none), bytes of dynamic shared memory.
extern "C" __global__ void get_shape(unsigned* shape) {
  unsigned cluster[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(cluster[0]));
  asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(cluster[1]));
  asm("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(cluster[2]));
#endif
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(shared_bytes));
  const unsigned values[] = {gridDim.x,  gridDim.y,  gridDim.z,  blockDim.x, blockDim.y,
                             blockDim.z, cluster[0], cluster[1], cluster[2], shared_bytes};
  for (unsigned i = 0; i < 10; ++i) shape[i] = values[i];
}

// Needs a block that is no larger, and shared memory of its own.
extern "C" __global__ void __launch_bounds__(128) small_blocks(unsigned* last) {
  __shared__ unsigned values[1024];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) *last = values[blockDim.x - 1];
}
