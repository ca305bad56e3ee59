// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library for CUDA_INJECTION64_PATH: says that it was called, and what the driver answers then.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  const auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"));
  std::printf("injected: cuInit is %d\n", init(0));
  std::fflush(stdout);
  return 1;
}
