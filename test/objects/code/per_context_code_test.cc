// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code as a module for each context, which is what a Module is on a driver below CUDA 12.0:
// there (on the simulation), and by its parts on any driver.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "lib/objects/code/code.h"
#include "test/objects/code/code.h"
#include "test/support/scenario.h"

namespace {

using namespace module_test;
using cuguest::ContextGuard;
using cuguest::DeviceView;
using cuguest::Driver;
using cuguest::internal::MakeModules;
using cuguest::internal::ModuleAccess;
using cuguest_test::MakeContext;

Module PerContextModule(const CodeImage& image, const JitOptions& options = {}) {
  return ModuleAccess::Make(MakeModules(image, options));
}

bool IsRefused(const absl::Status& status, CUresult code, std::string_view words) {
  if (CodeOf(status) == code && Says(status, words)) return true;
  std::printf("%s\n", status.ToString().c_str());
  return false;
}

// What store() stores.
unsigned Stored(const Kernel& kernel, const ContextRef& context, unsigned value) {
  const ContextGuard guard(context);
  CUdeviceptr memory = 0;
  unsigned stored = 0;
  CHECK(RAW(cuMemAlloc)(&memory, sizeof(value)) == CUDA_SUCCESS);
  void* parameters[] = {&memory, &value};
  CHECK(RAW(cuLaunchKernel)(kernel.FunctionIn(context).value(), 1, 1, 1, 1, 1, 1, 0,
                            CU_STREAM_LEGACY, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(RAW(cuMemcpyDtoH)(&stored, memory, sizeof(stored)) == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  return stored;
}

void UseInTwoContexts(const Module& module) {
  Sim::RegisterKernel("store", &Store);
  const ContextRef a = Ref(MakeContext());
  const ContextRef b = Ref(MakeContext());
  const Kernel store = module.GetKernel("store").value();
  CHECK(Stored(store, a, 3) == 3);
  CHECK(Stored(store, b, 4) == 4);
  CHECK(*store.FunctionIn(a) != *store.FunctionIn(b));
  CHECK(*store.FunctionIn(a) == *store.FunctionIn(a));
  const DeviceView<unsigned> mine = module.GetGlobal<unsigned>(a, "counters").value();
  CHECK(mine.size() == 4);
  CHECK(mine.get() != module.GetGlobal<unsigned>(b, "counters")->get());
  CHECK(module.KernelNames()->size() == 3);
  CHECK(module.Preload(a).ok());
  CHECK(IsRefused(module.GetKernel("stone").status(), CUDA_ERROR_NOT_FOUND,
                  "the nearest is \"store\""));
  CUcontext current = nullptr;
  CHECK(RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current == nullptr);
}

void AModuleForEachContext() {
  const CUcontext first = MakeContext();
  const auto before = Sim::Live();
  {
    Module module = PerContextModule(Ptx());
    UseInTwoContexts(module);
    if (Sim::IsActive()) CHECK(Sim::Live().modules == before.modules + 2);
    CHECK(module.Release().ok());
  }
  CHECK(Sim::Live().modules == before.modules);
  CHECK(RAW(cuCtxDestroy)(first) == CUDA_SUCCESS);
  CHECK(cuguest::IncidentCount() == 0);
}

void BelowCuda12() {
  Sim::SetDriverVersion(11080);
  MakeContext();
  {
    Module module = Module::Load(Ptx()).value();
    UseInTwoContexts(module);
    CHECK(Sim::Calls("cuLibraryLoadData") == 0);
    CHECK(Sim::Live().modules == 2);
    CHECK(module.Release().ok());
    CHECK(Sim::Live().modules == 0);
  }
  const ContextRef here = Ref(MakeContext());
  const Module module = Module::LoadIn(here, Ptx()).value();
  CHECK(Sim::Live().modules == 1);
  const Kernel store = module.GetKernel("store").value();
  CHECK(store.Preload(here).ok());
  CHECK(store.IsLoaded(here).status().code() == absl::StatusCode::kUnimplemented);
  CHECK(store.ParametersIn(here).status().code() == absl::StatusCode::kUnimplemented);
  CHECK(Kernel::Borrow(reinterpret_cast<CUkernel>(std::uintptr_t{64})).status().code() ==
        absl::StatusCode::kUnimplemented);
}

// It has no record of what it loaded that outlives it.
void BelowCuda12InAHostFunction() {
  Sim::SetDriverVersion(11080);
  const CUcontext context = MakeContext();
  std::optional<Module> module = Module::LoadIn(Ref(context), Ptx()).value();
  {
    const ContextGuard guard(context);
    CHECK(RAW(cuLaunchHostFunc)(
              CU_STREAM_LEGACY,
              [](void* ending) { static_cast<std::optional<Module>*>(ending)->reset(); },
              &module) == CUDA_SUCCESS);
    CHECK(RAW(cuStreamSynchronize)(CU_STREAM_LEGACY) == CUDA_SUCCESS);
  }
  CHECK(!module.has_value());
  CHECK(cuguest::IncidentCount() == 0);
  CHECK(Module::Load(Ptx()).ok());
  CHECK(Sim::Live().modules == 1);
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  CHECK(Sim::Live().modules == 0);
}

void BelowCuda117() {
  Sim::SetDriverVersion(11000);
  MakeContext();
  const absl::Status status = cuguest::GetLoadingMode().status();
  CHECK(status.code() == absl::StatusCode::kUnimplemented);
  CHECK(Says(status, "515."));
}

void BadCodeShowsInUse() {
  const ContextRef here = Ref(MakeContext());
  const Module module = PerContextModule(Ptx(kBroken, "broken.ptx"));
  const Kernel broken = module.GetKernel("broken").value();
  for (const absl::Status& status :
       {broken.FunctionIn(here).status(), module.GetGlobal<int>(here, "any").status(),
        module.Preload(here)}) {
    CHECK(IsRefused(status, CUDA_ERROR_INVALID_PTX, "load PTX \"broken.ptx\", context 0x"));
    CHECK(IsRefused(status, CUDA_ERROR_INVALID_PTX, "line 7"));
  }
}

// From contexts that it cannot know to go on, the destructor unloads nothing; and of one that is
// gone it is told. What takes the handle of that one gets the code anew.
void AContextIsForgotten() {
  const CUcontext context = MakeContext();
  const CUcontext other = MakeContext();
  const ContextRef ref = Ref(context);
  CUcontext primary = nullptr;
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  const auto before = Sim::Live();
  const auto modules = [&] { return Sim::Live().modules - before.modules; };
  {
    const Module module = PerContextModule(Ptx());
    const Kernel store = module.GetKernel("store").value();
    for (const CUcontext each : {context, other, primary}) CHECK(store.FunctionIn(Ref(each)).ok());
    if (Sim::IsActive()) CHECK(modules() == 3);
    Sim::ResetCalls();
    module.ForgetDestroyed(ref);
    CHECK(Sim::TotalCalls() == 0);
    CHECK(store.FunctionIn(ref).ok());
    if (Sim::IsActive()) CHECK(modules() == 4);
    CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  }
  if (Sim::IsActive()) CHECK(modules() == 2);
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxDestroy)(other) == CUDA_SUCCESS);
  CHECK(modules() == 0);
  CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
}

// What lived in the context is gone with it, and nobody touches it again.
void AContextEnds() {
  const CUcontext context = MakeContext();
  const ContextRef ref = Ref(context);
  const auto before = Sim::Live();
  {
    const Module module = PerContextModule(Ptx());
    const Kernel store = module.GetKernel("store").value();
    CHECK(store.FunctionIn(ref).ok());
    CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
    CHECK(IsRefused(store.AttributesIn(ref).status(), CUDA_ERROR_CONTEXT_IS_DESTROYED,
                    "use kernel \"store\""));
  }
  CHECK(Sim::Live().modules == before.modules);
}

void ThreadsAtOnce() {
  const ContextRef here = Ref(MakeContext());
  const auto before = Sim::Live();
  const Module module = PerContextModule(Ptx());
  const Kernel store = module.GetKernel("store").value();
  std::vector<std::thread> threads;
  std::vector<CUfunction> found(8);
  for (CUfunction& function : found) {
    threads.emplace_back([&] { function = store.FunctionIn(here).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CUfunction function : found) CHECK(function == found.front());
  if (Sim::IsActive()) CHECK(Sim::Live().modules == before.modules + 1);
}

// In a primary context, from which the destructor unloads.
void EveryCallMayFail() {
  CUcontext context = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS);
  const ContextRef here = Ref(context);
  constexpr CUresult kInjected = CUDA_ERROR_OPERATING_SYSTEM;
  const auto before = Sim::Live();
  for (const char* entry :
       {"cuCtxGetId", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxGetDevice",
        "cuDeviceGetAttribute", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuModuleGetGlobal",
        "cuFuncGetAttribute", "cuFuncLoad", "cuThreadExchangeStreamCaptureMode"}) {
    for (unsigned nth = 1;; ++nth) {
      Sim::ResetCalls();
      Sim::FailCall(entry, nth, kInjected);
      absl::Status status;
      {
        const Module module = PerContextModule(Ptx());
        status = module.Preload(here);
        if (status.ok()) status = module.GetGlobal<unsigned>(here, "counters").status();
        Sim::ClearFaults();
      }
      CHECK(status.ok() || CodeOf(status) == kInjected);
      CHECK(Sim::Live() == before);
      if (Sim::Calls(entry) < nth) break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"a_module_for_each_context", &AModuleForEachContext},
          {"below_cuda_12", &BelowCuda12, {}, 0, cuguest_test::On::kSimulation},
          {"below_cuda_12_in_a_host_function",
           &BelowCuda12InAHostFunction,
           {},
           0,
           cuguest_test::On::kSimulation},
          {"below_cuda_11_7", &BelowCuda117, {}, 0, cuguest_test::On::kSimulation},
          {"bad_code_shows_in_use", &BadCodeShowsInUse},
          {"a_context_is_forgotten", &AContextIsForgotten},
          {"a_context_ends", &AContextEnds},
          {"threads_at_once", &ThreadsAtOnce},
          {"every_call_may_fail", &EveryCallMayFail, {}, 0, cuguest_test::On::kSimulation},
      });
}
