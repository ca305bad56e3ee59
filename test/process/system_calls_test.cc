// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a library does in every call that it gets makes no system call, once it was done before. The
// kernel is asked: a filter stops the process at the first one. The simulated driver makes none.

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/thread_home.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"
#include "test/support/system_calls.h"

namespace {

using cuguest::Acquired;
using cuguest::AcquiredGuard;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::SharedContext;

const Device kDevice = Device::Borrow(0);

// What the operations are about, there for the whole process.
struct World {
  PrimaryContext primary = PrimaryContext::Retain(kDevice);
  SharedContext shared = SharedContext::Create(kDevice);
  ContextRef ref = shared.context();
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  cuguest::PerContext<int> values;
};
World* g_world = nullptr;

bool HasItsValue() {
  const auto value = g_world->values.GetOrMake(g_world->ref, [](const ContextRef&) { return 1; });
  return value.ok() && **value == 1;
}

struct Operation {
  const char* name;
  void (*run)();
};
const Operation kOperations[] = {
    {"is initialised", [] { CHECK(cuguest_is_initialized() == 1); }},
    {"query a primary context", [] { CHECK(PrimaryContext::Query(kDevice).active); }},
    {"retain it", [] { CHECK(PrimaryContext::Retain(kDevice).ok()); }},
    {"acquire on a device", [] { CHECK(cuguest::AcquireOn(kDevice).ok()); }},
    {"acquire any", [] { CHECK(cuguest::AcquireAny().ok()); }},
    {"acquire for a stream", [] { CHECK(cuguest::AcquireFromStream(g_world->stream).ok()); }},
    {"acquire for a pointer", [] { CHECK(cuguest::AcquireFromPointer(g_world->memory).ok()); }},
    {"acquire for a buffer", [] { CHECK(cuguest::AcquireFromBuffer(g_world->memory, 64).ok()); }},
    {"guard a device", [] { CHECK(AcquiredGuard(kDevice).ok()); }},
    {"guard a stream", [] { CHECK(AcquiredGuard(g_world->stream).ok()); }},
    {"guard a pointer", [] { CHECK(AcquiredGuard(g_world->memory).ok()); }},
    {"guard a handle", [] { CHECK(ContextGuard(g_world->ref.get()).ok()); }},
    {"guard a reference", [] { CHECK(ContextGuard(g_world->ref).ok()); }},
    {"guard exactly", [] { CHECK(cuguest::ExactGuard(g_world->ref).ok()); }},
    {"guard the current context",
     [] {
       const ContextGuard outer(g_world->ref);
       CHECK(ContextGuard(g_world->ref).ok() && AcquiredGuard(kDevice).ok());
     }},
    {"guard without a context", [] { CHECK(cuguest::NoContextGuard().ok()); }},
    {"a home", [] { CHECK(cuguest::ThreadHome(g_world->ref).ok()); }},
    {"a host's scope", [] { const cuguest::HostScope scope; }},
    {"push, pop", [] { CHECK(cuguest_push(g_world->ref.get()) == 0 && cuguest_pop() == 0); }},
    {"attach by handle", [] { CHECK(SharedContext::Attach(g_world->ref.get()).ok()); }},
    {"attach by reference", [] { CHECK(SharedContext::Attach(g_world->ref).ok()); }},
    {"share once more", [] { CHECK(SharedContext(g_world->shared).ok()); }},
    {"a value of a context", [] { CHECK(HasItsValue()); }},
};

void NoOperationCallsTheSystem() {
  World world;
  g_world = &world;
  CHECK(world.primary.ok() && world.shared.ok());
  {
    const ContextGuard guard(world.ref);
    CHECK(RAW(cuStreamCreate)(&world.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(RAW(cuMemAlloc)(&world.memory, 64) == CUDA_SUCCESS);
  }
  for (const Operation& operation : kOperations) operation.run();
  std::puts("each was made once");
  std::fflush(stdout);
  CHECK(cuguest_test::TrapSystemCalls());
  for (const Operation& operation : kOperations) {
    cuguest_test::t_system_calls_of = operation.name;
    for (int i = 0; i < 100; ++i) operation.run();
  }
  _exit(0);
}

// That the filter sees one.
void ASystemCallIsSeen() {
  CHECK(cuguest_test::TrapSystemCalls());
  cuguest_test::t_system_calls_of = "getppid";
  static_cast<void>(getppid());
  _exit(0);
}

std::string WhyNot() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "a sanitizer makes system calls of its own";
#else
  return cuguest_test::SkipWithoutFilters();
#endif
}

}  // namespace

int main(int argc, char** argv) {
  constexpr auto kOn = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"no_operation_calls_the_system",
           &NoOperationCallsTheSystem,
           {"each was made once"},
           0,
           kOn,
           {},
           &WhyNot},
          {"a_system_call_is_seen", &ASystemCallIsSeen, {"in getppid"}, 3, kOn, {}, &WhyNot},
      });
}
