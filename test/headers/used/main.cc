// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host of the two parts of guards.cc: it has loaded the driver.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

using Get = CUresult (*)(CUcontext*);
int UseFirst(CUcontext mine, Get get);
int UseSecond(CUcontext mine, Get get);

int main() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return std::puts("no driver") < 0;
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(cuda, "cuInit"));
  const auto retain =
      reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(dlsym(cuda, "cuDevicePrimaryCtxRetain"));
  const auto get = reinterpret_cast<Get>(dlsym(cuda, "cuCtxGetCurrent"));
  CUcontext mine = nullptr;
  if (init(0) != CUDA_SUCCESS || retain(&mine, 0) != CUDA_SUCCESS) return std::puts("no GPU") < 0;
  const int first = UseFirst(mine, get);
  const int second = first == 0 ? UseSecond(mine, get) : 0;
  std::printf("used: %d %d\n", first, second);
}
