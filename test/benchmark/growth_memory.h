// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of the process that a context, a thread and a copy of cuguest take.

#ifndef CUGUEST_TEST_BENCHMARK_GROWTH_MEMORY_H_
#define CUGUEST_TEST_BENCHMARK_GROWTH_MEMORY_H_

#include "test/benchmark/growth_contexts.h"

namespace cuguest_benchmark {

// False if something stays behind. Before anything else is kept.
bool PrintMemory(Contexts* contexts, bool smoke, bool is_real);

}  // namespace cuguest_benchmark

#endif  // CUGUEST_TEST_BENCHMARK_GROWTH_MEMORY_H_
