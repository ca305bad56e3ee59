// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library in C that compares pictures in device memory, in the manner of libvmaf: its host hands
// it a context, the functions of ffnvcodec's loader, and a logger.

#ifndef CUGUEST_EXAMPLES_GUEST_PICTURE_SCORE_H_
#define CUGUEST_EXAMPLES_GUEST_PICTURE_SCORE_H_

#include <ffnvcodec/dynlink_cuda.h>
#include <stddef.h>

struct CudaFunctions;

struct score_host {
  struct CudaFunctions* cuda;
  CUcontext context;  // the pictures'
  void (*log)(void* user, const char* text);
  // Device memory in the current context. Somebody else's code: it may do anything.
  CUresult (*allocate)(void* user, size_t bytes, CUdeviceptr* memory);
  void* user;
};

struct score;

// Each returns a CUresult as an int. The host's stack of contexts is what it was, on every thread.
int score_open(const struct score_host* host, size_t bytes, struct score** score);
int score_compare(struct score* score, CUdeviceptr reference, CUdeviceptr distorted,
                  double* mean_squared_error);
int score_close(struct score* score);

#endif  // CUGUEST_EXAMPLES_GUEST_PICTURE_SCORE_H_
