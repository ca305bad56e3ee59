// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program of two such libraries: the first one's callee leaves an entry too many, the second
// one's does not.

#include <dlfcn.h>
#include <stdio.h>
struct CUctx_st;
unsigned long long guest_alpha(struct CUctx_st*, int (*)(struct CUctx_st*));
unsigned long long guest_beta(struct CUctx_st*, int (*)(struct CUctx_st*));
static int nothing(struct CUctx_st* context) { return context == NULL; }
int main(void) {
  int (*init)(unsigned), (*retain)(struct CUctx_st**, int), (*push)(struct CUctx_st*);
  struct CUctx_st* context;
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == NULL) return 1;
  *(void**)&init = dlsym(cuda, "cuInit");
  *(void**)&retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
  *(void**)&push = dlsym(cuda, "cuCtxPushCurrent_v2");
  if (init(0) != 0 || retain(&context, 0) != 0) return 2;
  printf("alpha %llu\n", guest_alpha(context, push));
  printf("beta %llu\n", guest_beta(context, nothing));
  return 0;
}
