// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What NVIDIA's library exports and the simulated one does not model. Compiled once for each
// library, with CUDASIM_NAMES its list of names.
//
// Each name has a weak definition here, and what is modelled has another, which the linker takes.
// So no list says what is not modelled, and to model a function is to define it. A stub has no
// parameters: the calling conventions of x86-64 and AArch64 let it be called with any. What returns
// no code, as cuBLAS's functions of before CUDA 4.0 do, returns no value that means anything.

#include "runtime/not_modelled.h"

#define X(name)                                                                                    \
  extern "C" __attribute__((weak, visibility("default"))) int NotModelled_##name() __asm__(#name); \
  int NotModelled_##name() { return cudasim::runtime::NotModelled(#name); }
#include CUDASIM_NAMES
