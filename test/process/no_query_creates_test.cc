// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A question about a primary context creates none, also where the last holder lets go of it between
// two of our driver calls: before each of them in turn, once.

#include <cstdio>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::SharedContext;
using cuguest_test::On;

constexpr char kPtx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 a) { ret; }\n";

bool IsActive() {
  unsigned flags = 0;
  int active = 0;
  CHECK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

// The host, which lets go of the primary context at the entry of a driver call.
struct Host {
  int call = 0;  // that is awaited: 1 is the next one
  bool holds = false;
  bool is_inside = false;
  int created = 0;
} g_host;

void LetGo() {
  CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  g_host.holds = false;
}

void OnCall(const char*) {
  if (g_host.is_inside) return;
  g_host.is_inside = true;
  if (g_host.holds && --g_host.call == 0) {
    LetGo();
  } else if (!g_host.holds && IsActive()) {
    ++g_host.created;
  }
  g_host.is_inside = false;
}

// One operation, whole: what it makes, it makes anew.
struct Operation {
  const char* name;
  void (*run)(const ContextRef& context);
};

void AskRuntime(const ContextRef& context) {
  const ContextGuard guard(context);
  const auto next = cuguest::runtime::RuntimeContext::Query();
  CHECK(next.ok());
  CHECK(next->kind == cuguest::runtime::RuntimeContext::Kind::kUser);
}

void MakeValue(const ContextRef& context) {
  cuguest::PerContext<int> cache;
  CHECK(cache.GetOrMake(context, [](const ContextRef&) { return absl::StatusOr<int>(1); }).ok());
  CHECK(cache.DropDead() == 0);
}

void LaunchFirst(const ContextRef& context) {
  const auto image = cuguest::CodeImage::FromPtx(kPtx, "k.ptx");
  const auto module = cuguest::Module::Load(image.value());
  const auto stream = cuguest::Stream::Create(context);
  const auto kernel = module->GetKernel("k");
  CHECK(cuguest::Launch(*kernel, cuguest::LaunchShape({1}, {1}), stream->ref(), 1U).ok());
}

void EnterLibrary(const ContextRef& context) {
  cuguest::runtime::CublasHandles handles;
  const auto stream = cuguest::Stream::Create(context);
  const cuguest::runtime::CublasScope scope(handles, stream->ref());
  CHECK(scope.ok());
}

void AttachContext(const ContextRef& context) { CHECK(SharedContext::Attach(context.get()).ok()); }

// A callee pops the caller's context, and what is beneath is in its place. Nobody asks what it is.
void RepairElided(const ContextRef& context) {
  CUcontext const other = cuguest_test::MakeContext();
  CUcontext popped = nullptr;
  CHECK(RAW(cuCtxPushCurrent)(context.get()) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxPushCurrent)(other) == CUDA_SUCCESS);
  {
    const ContextGuard guard(other);
    CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  }
  CHECK(RAW(cuCtxGetCurrent)(&popped) == CUDA_SUCCESS);
  CHECK(popped == other);
  CHECK(RAW(cuCtxDestroy)(other) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxSetCurrent)(nullptr) == CUDA_SUCCESS);
}

const Operation kOperations[] = {
    {"RuntimeContext::Query", &AskRuntime}, {"the first value of a cache", &MakeValue},
    {"the first launch", &LaunchFirst},     {"the first scope of a library", &EnterLibrary},
    {"an attachment", &AttachContext},      {"the repair of an elided guard", &RepairElided},
};

// How many contexts were created, and whether one is left.
struct Outcome {
  int walked = 0;
  int created = 0;
  bool is_left = false;
};

Outcome Walk(const Operation& operation, const ContextRef& context) {
  Outcome outcome;
  for (bool let_go = true; let_go;) {
    CUcontext primary = nullptr;
    CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
    g_host = {++outcome.walked, true, false, 0};
    Sim::OnEveryCall(&OnCall);
    operation.run(context);
    Sim::OnEveryCall(nullptr);
    let_go = !g_host.holds;
    if (g_host.holds) LetGo();
    outcome.created += g_host.created;
    outcome.is_left = outcome.is_left || IsActive();
  }
  return outcome;
}

void Begin() {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  Sim::SkipUnknownKernels(true);
}

void NothingIsCreatedIn(const ContextRef& context) {
  for (const Operation& operation : kOperations) {
    const Outcome outcome = Walk(operation, context);
    std::printf("%s: %d driver calls, %d created\n", operation.name, outcome.walked,
                outcome.created);
    CHECK(outcome.walked > 1);
    CHECK(outcome.created == 0);
    CHECK(!outcome.is_left);
  }
}

// Of a context of its own nobody has to be asked.
void InAContextOfOurMaking() {
  Begin();
  const auto shared = SharedContext::Create(Device::Borrow(0));
  for (const Operation& operation : kOperations) {
    if (operation.run == &RepairElided) continue;  // which does not ask who made a context
    const Outcome outcome = Walk(operation, shared.context());
    CHECK(outcome.created == 0);
    CHECK(!outcome.is_left);
  }
}

// A reference tells the handle for good.
void WhereThePrimaryWasHeldBefore() {
  Begin();
  CHECK(cuguest::PrimaryContext::Retain(Device::Borrow(0)).ok());
  NothingIsCreatedIn(ContextRef::Borrow(cuguest_test::MakeContext()));
}

// Without either, a stranger's context is compared once for each device; nothing stays.
void InAStrangersContextOnce() {
  Begin();
  const ContextRef context = ContextRef::Borrow(cuguest_test::MakeContext());
  int created = 0;
  for (const Operation& operation : kOperations) {
    const Outcome outcome = Walk(operation, context);
    created += outcome.created;
    CHECK(!outcome.is_left);
  }
  CHECK(created <= 1);
}

// A release that failed may have taken the reference all the same; another would take somebody
// else's.
void AFailedReleaseIsNotRepeated() {
  Begin();
  CUcontext primary = nullptr;
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CUcontext const current = cuguest_test::MakeContext();
  CHECK(RAW(cuCtxPushCurrent)(current) == CUDA_SUCCESS);
  Sim::ResetCalls();
  Sim::FailCall("cuDevicePrimaryCtxRelease", 1, CUDA_ERROR_OPERATING_SYSTEM);
  static_cast<void>(cuguest::runtime::RuntimeContext::Query());
  Sim::ClearFaults();
  CHECK(Sim::Calls("cuDevicePrimaryCtxRelease") == 1);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"in_a_context_of_our_making", &InAContextOfOurMaking, {}, 0, On::kSimulation},
          {"where_the_primary_was_held_before",
           &WhereThePrimaryWasHeldBefore,
           {},
           0,
           On::kSimulation},
          {"a_failed_release_is_not_repeated",
           &AFailedReleaseIsNotRepeated,
           {},
           0,
           On::kSimulation},
          {"in_a_strangers_context_once", &InAStrangersContextOnce, {}, 0, On::kSimulation},
      });
}
