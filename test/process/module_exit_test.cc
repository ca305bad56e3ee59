// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules where the driver cannot be called: at the end of the process (exit_order_test.cc
// has the order), in a forked child and in a stream callback. Statuses name what is wrong,
// and nothing crashes or hangs.

#include <cstdio>
#include <optional>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "lib/objects/code/code.h"
#include "test/objects/code/code.h"
#include "test/support/scenario.h"

namespace {

using namespace module_test;
using cuguest::Driver;
using cuguest::internal::MakeModules;
using cuguest::internal::ModuleAccess;
using cuguest_test::MakeContext;

// A library, or a module for each context.
Module LoadLibraryCode() { return Module::Load(Ptx()).value(); }
Module LoadModuleCode() { return ModuleAccess::Make(MakeModules(Ptx(), {})); }

bool g_in_scenario = false;
struct UnloadsWhenItEnds {
  const char* when;
  Module module;
  ~UnloadsWhenItEnds() {
    if (!g_in_scenario) return;
    const absl::Status status = module.Release();
    std::printf("%s: %s, %llu incidents\n", when, status.ToString().c_str(),
                cuguest::IncidentCount());
    std::fflush(stdout);
  }
};
// From before cuInit, so destroyed when the driver has ended.
UnloadsWhenItEnds g_early{"from before cuInit", {}};
Module g_early_in_contexts;
Module g_early_dropped;

void StaticModulesThroughTheEnd() {
  const CUcontext context = MakeContext();
  g_in_scenario = true;
  g_early.module = LoadLibraryCode();
  g_early_in_contexts = LoadModuleCode();
  g_early_dropped = LoadLibraryCode();
  static UnloadsWhenItEnds late{"from after cuInit", LoadLibraryCode()};
  static Module late_in_contexts = LoadModuleCode();
  for (const Module* module :
       {&g_early.module, &g_early_in_contexts, &g_early_dropped, &late.module, &late_in_contexts}) {
    CHECK(module->GetKernel("store")->FunctionIn(context).ok());
  }
  std::printf("main\n");
}

bool IsOf(CUresult code, const absl::Status& status) {
  if (CodeOf(status) == code) return true;
  std::printf("%s\n", status.ToString().c_str());
  return false;
}

void AForkedChild() {
  const CUcontext context = MakeContext();
  const ContextRef here = Ref(context);
  std::optional<Module> library = LoadLibraryCode();
  std::optional<Module> modules = LoadModuleCode();
  CHECK(library->GetKernel("store")->FunctionIn(here).ok());
  CHECK(modules->GetKernel("store")->FunctionIn(here).ok());
  cuguest_test::Fork([&] {
    CHECK(IsOf(CUDA_ERROR_NOT_INITIALIZED, Module::Load(Ptx()).status()));
    CHECK(IsOf(CUDA_ERROR_NOT_INITIALIZED, Module::LoadIn(here, Ptx()).status()));
    CHECK(IsOf(CUDA_ERROR_NOT_INITIALIZED, library->GetKernel("bounded").status()));
    for (std::optional<Module>* module : {&library, &modules}) {
      CHECK(IsOf(CUDA_ERROR_NOT_INITIALIZED, (*module)->GetGlobal<int>(here, "odd").status()));
      CHECK(IsOf(CUDA_ERROR_NOT_INITIALIZED, (*module)->Release()));
      module->reset();
    }
    std::printf("child: %llu incidents\n", cuguest::IncidentCount());
  });
  CHECK(library->Release().ok());
  CHECK(modules->Release().ok());
}

struct Callback {
  ContextRef known;
  ContextRef unknown;
  Module* module;
  Kernel* kernel;
  bool found;
  bool refused;
};

void CUDA_CB InHostFunction(void* data) {
  auto* seen = static_cast<Callback*>(data);
  seen->found = seen->kernel->FunctionIn(seen->known).ok();
  seen->refused = true;
  for (const absl::Status& status :
       {Module::LoadIn(seen->known, Ptx()).status(), seen->module->GetKernel("bounded").status(),
        seen->module->GetGlobal<int>(seen->known, "odd").status(),
        seen->kernel->FunctionIn(seen->unknown).status(),
        seen->kernel->AttributesIn(seen->known).status()}) {
    seen->refused = seen->refused && status.code() == absl::StatusCode::kPermissionDenied;
  }
}

void InAStreamCallback() {
  const CUcontext context = MakeContext();
  Module module = LoadLibraryCode();
  Kernel kernel = module.GetKernel("store").value();
  Callback seen{Ref(context), Ref(MakeContext()), &module, &kernel, false, false};
  CHECK(kernel.FunctionIn(seen.known).ok());
  const cuguest::ContextGuard guard(seen.known);
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuLaunchHostFunc)(stream, &InHostFunction, &seen) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(seen.found);
  CHECK(seen.refused);
}

void BeforeCuInit() {
  const absl::StatusOr<Module> module = Module::Load(Ptx());
  CHECK(module.ok());
  CHECK(module->GetKernel("store").ok());
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"static_modules_through_the_end",
           &StaticModulesThroughTheEnd,
           {"main", "from after cuInit: OK, 0 incidents", "from before cuInit: OK, 0 incidents"}},
          {"a_forked_child", &AForkedChild, {"child: 0 incidents"}},
          {"in_a_stream_callback", &InAStreamCallback},
          {"before_cuinit", &BeforeCuInit},
      });
}
