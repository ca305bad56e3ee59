// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What linked.cu lacks.

__device__ float Twist(float value) { return 2 * value + 1; }
