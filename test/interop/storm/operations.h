// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread of a storm can do in one step. Each takes the thread's stack as it finds it
// and leaves the model of it right. An operation checks what it computes by value.

#ifndef CUGUEST_TEST_INTEROP_STORM_OPERATIONS_H_
#define CUGUEST_TEST_INTEROP_STORM_OPERATIONS_H_

#include <vector>

#include "test/interop/storm/worker.h"

namespace storm {

struct Operation {
  const char* name;
  int weight;  // how often, against the others of its table
  void (*run)(Worker& worker);
};
using Operations = std::vector<Operation>;

Operations StackOperations();
Operations GuardOperations();
Operations HostileOperations();
Operations OwnershipOperations();
Operations WorkOperations();
Operations CaptureOperations();
Operations LibraryOperations();

// Those that take long: they make or end a context,
Operations HeavyOperations();
// or are of the whole process.
Operations ProcessOperations();

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_OPERATIONS_H_
