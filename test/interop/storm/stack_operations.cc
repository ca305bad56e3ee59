// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What hosts do to their stack between calls into guests.

#include "test/interop/storm/operations.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

void Pop(Worker& worker) {
  if (worker.stack.empty()) return;
  CUcontext popped = nullptr;
  REQUIRE_CALL(RAW(cuCtxPopCurrent)(&popped));
  Require(popped == worker.top(), "a pop gives what was current");
  worker.stack.pop_back();
}

void Push(Worker& worker) {
  if (worker.stack.size() == Worker::kMaxDepth) return Pop(worker);
  const cuguest::ContextRef& context = worker.PickContext();
  REQUIRE_CALL(RAW(cuCtxPushCurrent)(context.get()));
  worker.stack.push_back({context.get(), context.id()});
}

void Set(Worker& worker) {
  const cuguest::ContextRef& context = worker.PickContext();
  REQUIRE_CALL(RAW(cuCtxSetCurrent)(context.get()));
  if (!worker.stack.empty()) worker.stack.pop_back();
  worker.stack.push_back({context.get(), context.id()});
}

void SetNone(Worker& worker) {
  REQUIRE_CALL(RAW(cuCtxSetCurrent)(nullptr));
  if (!worker.stack.empty()) worker.stack.pop_back();
}

}  // namespace

Operations StackOperations() {
  return {{"push", 60, &Push}, {"pop", 40, &Pop}, {"set", 30, &Set}, {"set none", 10, &SetNone}};
}

}  // namespace storm
