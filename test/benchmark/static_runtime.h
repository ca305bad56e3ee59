// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The static CUDA runtime of a library of its own, beside the shared one that the benchmark is
// linked with. What it calls is reached in the same way as what is shared: by a pointer.

#ifndef CUGUEST_TEST_BENCHMARK_STATIC_RUNTIME_H_
#define CUGUEST_TEST_BENCHMARK_STATIC_RUNTIME_H_

namespace cuguest_benchmark {

struct RuntimeCalls {
  int (*get_device)(int* device);
  int (*set_device)(int device);
};

}  // namespace cuguest_benchmark

[[gnu::visibility("default")]] cuguest_benchmark::RuntimeCalls cuguest_benchmark_static_runtime();

#endif  // CUGUEST_TEST_BENCHMARK_STATIC_RUNTIME_H_
