// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/benchmark/static_runtime.h"

#include <cuda_runtime_api.h>

cuguest_benchmark::RuntimeCalls cuguest_benchmark_static_runtime() {
  return {reinterpret_cast<int (*)(int*)>(&cudaGetDevice),
          reinterpret_cast<int (*)(int)>(&cudaSetDevice)};
}
