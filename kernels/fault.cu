// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes through a null pointer: the launch ends in CUDA_ERROR_ILLEGAL_ADDRESS, a
// sticky error, after which every context of the process on that device is lost. For
// tests of what can still be restored then.
//
// volatile, because a compiler may do as it likes with a plain store through null: it
// would emit a trap, which is a different error.

extern "C" __global__ void fault() {
  volatile int* const nowhere = nullptr;
  *nowhere = 1;
}
