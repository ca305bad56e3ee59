// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel for one size of blocks alone, which compute capability 9.0 has.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((64, 1, 1)) blocks_of_64() {}
#endif
