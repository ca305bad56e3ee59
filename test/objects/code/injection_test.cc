// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any driver call under a Module may fail at any point: it must come out as a status, with
// the caller's stack as it was, nothing leaked, and no crash; and what worked goes on to.

#include <functional>
#include <optional>
#include <string>

#include "cuguest/objects/kernel.h"
#include "cuguest/primary_context.h"
#include "test/objects/code/code.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(injection, *cuguest_test::OnlySim())

using namespace module_test;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::HasDriver;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;

namespace {

constexpr CUresult kInjected = CUDA_ERROR_OPERATING_SYSTEM;
constexpr unsigned kMostCalls = 40;

// Every entry that a Module or a Kernel calls.
constexpr const char* kEntries[] = {
    "cuCtxGetCurrent",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuCtxGetId",
    "cuCtxGetApiVersion",
    "cuCtxGetDevice",
    "cuDeviceGetAttribute",
    "cuThreadExchangeStreamCaptureMode",
    "cuLibraryLoadData",
    "cuLibraryUnload",
    "cuLibraryGetKernel",
    "cuLibraryGetKernelCount",
    "cuLibraryEnumerateKernels",
    "cuLibraryGetModule",
    "cuLibraryGetGlobal",
    "cuKernelGetFunction",
    "cuKernelGetName",
    "cuFuncGetAttribute",
    "cuFuncGetName",
    "cuFuncGetParamInfo",
    "cuFuncLoad",
    "cuFuncIsLoaded",
    "cuFuncSetAttribute",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal",
};

// The first failure of the steps, each of which goes on with what the one before made.
absl::Status UseCode(const ContextRef& context) {
  auto module = Module::LoadIn(context, Ptx());
  if (!module.ok()) return module.status();
  std::optional<Kernel> kernel;
  {
    const auto found = module->GetKernel("bounded");
    if (!found.ok()) return found.status();
    kernel = *found;
  }
  const auto function = kernel->FunctionIn(context);
  if (!function.ok()) return function.status();
  const auto borrowed = Kernel::Borrow(*function, context);
  if (!borrowed.ok()) return borrowed.status();
  for (const absl::Status& status :
       {module->Preload(context), kernel->Preload(context), borrowed->Preload(context),
        kernel->AttributesIn(context).status(), kernel->SetMaxDynamicSharedBytes(context, 4096),
        module->GetGlobal<unsigned>(context, "counters").status()}) {
    if (!status.ok()) return status;
  }
  if (HasDriver(12040)) {
    for (const absl::Status& status :
         {kernel->IsLoaded(context).status(), kernel->ParametersIn(context).status()}) {
      if (!status.ok()) return status;
    }
  }
  kernel.reset();
  return module->Release();
}

// A guard that is not told what is current at its end asks again.
bool IsAskedAgain(const std::string& entry) { return entry.compare(0, 5, "cuCtx") == 0; }

// What a refused unload leaves loaded is the driver's to say.
bool IsUnload(const std::string& entry) {
  return entry == "cuLibraryUnload" || entry == "cuModuleUnload" ||
         entry == "cuThreadExchangeStreamCaptureMode";
}

// The same below CUDA 12.0 of a context that cannot be entered to unload its module: that result is
// dropped.
bool MayLeaveCode(const std::string& entry, const absl::Status& status) {
  return IsUnload(entry) || (!HasDriver(12000) && IsAskedAgain(entry) && status.ok());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_call_may_fail) {
  const OwnContext caller;
  // A primary one, from which any driver's Module unloads itself.
  const PrimaryContext context = PrimaryContext::Retain(cuguest::Device::Borrow(0));
  const ContextRef here = context.context();
  unsigned seen = 0;
  for (const std::vector<CUcontext>& stack :
       {std::vector<CUcontext>{}, {caller.get()}, {context.get()}}) {
    for (const std::string entry : kEntries) {
      for (unsigned nth = 1; nth <= kMostCalls; ++nth) {
        BOOST_TEST_CONTEXT(entry << " fails at call " << nth) {
          SetStack(stack);
          const auto before = Sim::Live();
          Sim::ResetCalls();
          Sim::FailCall(entry.c_str(), nth, kInjected);
          const absl::Status status = UseCode(here);
          const bool failed = Sim::Calls(entry.c_str()) >= nth;
          Sim::ClearFaults();
          static_cast<void>(TakeIncidents());
          BOOST_TEST((CodeOf(status) == kInjected || status.ok()), status.ToString());
          if (failed) {
            ++seen;
            BOOST_TEST((!status.ok() || IsAskedAgain(entry) || IsUnload(entry)));
          }
          if (!MayLeaveCode(entry, status)) BOOST_TEST((Sim::Live() == before), "leaked");
          BOOST_TEST(GetStack() == stack);
          if (!failed) break;
        }
      }
    }
  }
  BOOST_TEST(seen > 100U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_unload_that_fails_can_be_tried_again) {
  const auto before = Sim::Live();
  Module module = Module::Load(Ptx()).value();
  for (const char* entry : {"cuThreadExchangeStreamCaptureMode", "cuLibraryUnload"}) {
    if (entry == std::string("cuLibraryUnload") && !HasDriver(12000)) continue;
    Sim::FailCall(entry, 1, kInjected);
    const absl::Status status = module.Release();
    BOOST_TEST((CodeOf(status) == kInjected), status.ToString());
    BOOST_TEST(static_cast<bool>(module));
    DONE(module.GetKernel("store").status());
  }
  DONE(module.Release());
  BOOST_TEST((Sim::Live() == before));
}

BOOST_AUTO_TEST_CASE(a_failed_first_use_is_tried_again) {
  const OwnContext context;
  const Module module = Module::Load(Ptx()).value();
  const Kernel store = module.GetKernel("store").value();
  const char* const find = HasDriver(12000) ? "cuKernelGetFunction" : "cuModuleGetFunction";
  for (const char* entry : {"cuDeviceGetAttribute", find, "cuFuncGetAttribute"}) {
    Sim::FailCall(entry, 1, kInjected);
    BOOST_TEST((CodeOf(store.FunctionIn(context.get()).status()) == kInjected));
  }
  DONE(store.FunctionIn(context.get()).status());
}

BOOST_AUTO_TEST_SUITE_END()
