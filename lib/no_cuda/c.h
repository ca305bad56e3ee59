// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the declarations of cuguest/c.h are made of without CUDA: each function is defined inline,
// in C++ with a symbol, since a template of cxx.h takes its address. Any pointer is a context.
// tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_C_H_
#define CUGUEST_LIB_NO_CUDA_C_H_

#include <stdio.h>
#include <string.h>

#undef CUGUEST_C_API
#ifdef __cplusplus
#define CUGUEST_C_API inline
#else
#define CUGUEST_C_API static inline
#endif
#define CUGUEST_C_CONTEXT void*
#define CUGUEST_C_STREAM void*

#endif  // CUGUEST_LIB_NO_CUDA_C_H_
