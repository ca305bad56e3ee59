// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulated runtime's own controls, and what only it can be made to show: drivers that
// are missing, too old, or without devices.

#include <dlfcn.h>

#include <set>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "cudasim/sim_runtime.h"
#include "test/runtime_facts.h"
#include "test/support/child.h"
#include "test/support/execution_context.h"

BOOST_AUTO_TEST_SUITE(sim_runtime)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLive;
using cudasim::SimRuntime;
using cudasim_test::OnlySim;

namespace {

struct NoFaultsLeft : Unused {
  ~NoFaultsLeft() {
    SimRuntime::ClearFaults();
    Sim::ClearFaults();
  }
};

// As in sim_control_test.cc: a fault returns before any argument is looked at.
cudaError_t CallWithZeros(const char* name) {
  using Z = std::uintptr_t;
  using AnyEntry = cudaError_t (*)(Z, Z, Z, Z, Z, Z, Z, Z);
  void* function = dlsym(RTLD_DEFAULT, name);
  BOOST_REQUIRE(function != nullptr);
  return reinterpret_cast<AnyEntry>(function)(0, 0, 0, 0, 0, 0, 0, 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_active_where_the_driver_is_simulated) {
  BOOST_TEST(SimRuntime::IsActive() == Sim::IsActive());
}

BOOST_AUTO_TEST_CASE(it_does_nothing_to_a_real_runtime, *cudasim_test::OnlyReal()) {
  SimRuntime::FailCall("cudaFree", 1, cudaErrorUnknown);
  RT_OK(cudaFree(nullptr));
  BOOST_TEST(SimRuntime::Calls("cudaFree") == 0u);
  BOOST_TEST(SimRuntime::TotalCalls() == 0u);
  BOOST_TEST(SimRuntime::EntryName(0) == nullptr);
  SimRuntime::ClearFaults();
  SimRuntime::ResetCalls();
  Unused::Restore();
}

BOOST_AUTO_TEST_CASE(entry_names_are_distinct, *OnlySim()) {
  std::set<std::string> names;
  size_t index = 0;
  for (; SimRuntime::EntryName(index) != nullptr; ++index) {
    names.insert(SimRuntime::EntryName(index));
  }
  BOOST_TEST(names.size() == index);
  BOOST_TEST(names.count("cudaMemcpyAsync") == 1u);
}

BOOST_AUTO_TEST_CASE(a_hook_is_told_every_call_in_order, *OnlySim()) {
  static auto& calls = *new std::vector<std::string>;
  const auto hook = [](const char* entry) {
    calls.emplace_back(entry);
    static_cast<void>(cudaPeekAtLastError());  // of the hook itself
  };
  SimRuntime::OnEveryCall(hook);
  int count = 0;
  RT_OK(cudaGetDeviceCount(&count));
  RT_OK(cudaGetLastError());
  SimRuntime::OnEveryCall(nullptr);
  RT_OK(cudaGetLastError());
  BOOST_TEST((calls == std::vector<std::string>{"cudaGetDeviceCount", "cudaGetLastError"}));
}

BOOST_AUTO_TEST_CASE(every_entry_fails_on_demand_and_does_nothing_else, *OnlySim()) {
  const NoFaultsLeft cleanup;
  const SimLive live = Sim::Live();
  for (size_t i = 0; SimRuntime::EntryName(i) != nullptr; ++i) {
    const std::string name = SimRuntime::EntryName(i);
    BOOST_TEST_CONTEXT(name) {
      const auto calls = SimRuntime::Calls(name.c_str());
      SimRuntime::FailCall(name.c_str(), 1, cudaErrorTimeout);
      BOOST_CHECK_EQUAL(CallWithZeros(name.c_str()), cudaErrorTimeout);
      BOOST_TEST(SimRuntime::Calls(name.c_str()) == calls + 1);
      BOOST_CHECK(Sim::Live() == live);
      BOOST_CHECK(GetStack().empty());
      const bool takes = name == "cudaGetLastError" || name == "cudaPeekAtLastError";
      BOOST_CHECK_EQUAL(cudaGetLastError(), takes ? cudaSuccess : cudaErrorTimeout);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_fault_hits_the_nth_call_once, *OnlySim()) {
  const NoFaultsLeft cleanup;
  int device = -1;
  SimRuntime::FailCall("cudaGetDevice", 2, cudaErrorUnknown);
  SimRuntime::FailCall("cudaGetDevice", 3, cudaErrorTimeout, /*from_any_thread=*/false);
  RT_OK(cudaGetDevice(&device));
  OnAnotherThread([&] { RT_IS(cudaGetDevice(&device), Unknown); });
  RT_OK(cudaGetDevice(&device));
  RT_IS(cudaGetDevice(&device), Timeout);
  RT_OK(cudaGetDevice(&device));
  SimRuntime::FailCall("cudaGetDevice", 1, cudaErrorUnknown);
  SimRuntime::ClearFaults();
  RT_OK(cudaGetDevice(&device));
}

BOOST_AUTO_TEST_CASE(calls_are_counted_from_every_thread, *OnlySim()) {
  const NoFaultsLeft cleanup;
  SimRuntime::ResetCalls();
  RT_OK(cudaFree(nullptr));
  OnAnotherThread([] { RT_IS(cudaSetDevice(99), InvalidDevice); });
  BOOST_TEST(SimRuntime::Calls("cudaFree") == 1u);
  BOOST_TEST(SimRuntime::Calls("cudaSetDevice") == 1u);
  BOOST_TEST(SimRuntime::TotalCalls() == 2u);
}

// The driver's failures come through with their numbers.
BOOST_AUTO_TEST_CASE(failures_of_the_driver_become_the_runtimes, *OnlySim()) {
  const NoFaultsLeft cleanup;
  void* pointer = nullptr;
  Sim::FailCall("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
  RT_IS(cudaMalloc(&pointer, 16), MemoryAllocation);
  RT_IS(cudaGetLastError(), MemoryAllocation);
  BOOST_TEST(pointer == nullptr);
  Sim::FailCall("cuStreamQuery", 1, CUDA_ERROR_NOT_READY);
  RT_IS(cudaStreamQuery(nullptr), NotReady);
  RT_OK(cudaPeekAtLastError());
  Sim::FailCall("cuStreamQuery", 1, CUDA_ERROR_CONTEXT_ALREADY_CURRENT);
  BOOST_TEST(int{cudaStreamQuery(nullptr)} == int{CUDA_ERROR_CONTEXT_ALREADY_CURRENT});
  SetStack({});
  Unused::Restore();
  int devices = 0;
  RT_OK(cudaGetDeviceCount(&devices));
  for (int nth = 1; nth <= devices; ++nth) {  // it tries one after the other
    Sim::FailCall("cuDevicePrimaryCtxRetain", static_cast<unsigned>(nth), CUDA_ERROR_OUT_OF_MEMORY);
  }
  RT_IS(cudaFree(nullptr), MemoryAllocation);
  Sim::FailCall("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_UNKNOWN);
  RT_IS(cudaSetDevice(0), DevicesUnavailable);
  BOOST_CHECK(GetStack().empty());
  Sim::FailCall("cuCtxGetCurrent", 1, CUDA_ERROR_DEINITIALIZED);
  RT_IS(cudaFree(nullptr), CudartUnloading);
}

CHILD(meets_an_older_driver) {
  Sim::SetDriverVersion((CUDART_VERSION / 1000 - 1) * 1000 + 40);
  int number = -1;
  CHECK(cudaGetDeviceCount(&number) == cudaErrorInsufficientDriver);
  CHECK(number == -1);
  CHECK(cudaFree(nullptr) == cudaErrorInsufficientDriver);
  CHECK(cudaGetLastError() == cudaErrorInsufficientDriver);
  CHECK(cudaDriverGetVersion(&number) == cudaSuccess);
  CHECK(number == (CUDART_VERSION / 1000 - 1) * 1000 + 40);
  return 0;
}

CHILD(has_no_execution_contexts) {
  setenv("CUDASIM_RUNTIME_VERSION", "13.0", 1);
  cudaExecutionContext_t context = nullptr;
  CHECK(cudaDeviceGetExecutionCtx(&context, 0) == cudaErrorNotSupported);
  CHECK(context == nullptr);
  return 0;
}

CHILD(finds_no_device) {
  Sim::SetDeviceCount(0);
  int number = -1;
  CHECK(cudaGetDeviceCount(&number) == cudaErrorNoDevice);
  CHECK(cudaSetDevice(0) == cudaErrorNoDevice);
  return 0;
}

CHILD(names_no_entry) {
  SimRuntime::FailCall("cudaNoSuchCall", 1, cudaErrorUnknown);
  return 0;
}

BOOST_AUTO_TEST_CASE(an_older_driver_is_insufficient, *OnlySim()) {
  REQUIRE_CHILD_PASSES("meets_an_older_driver");
}

BOOST_AUTO_TEST_CASE(an_older_runtime_has_no_execution_contexts, *OnlySim()) {
  REQUIRE_CHILD_PASSES("has_no_execution_contexts");
}

BOOST_AUTO_TEST_CASE(no_device_is_said_so, *OnlySim()) { REQUIRE_CHILD_PASSES("finds_no_device"); }

BOOST_AUTO_TEST_CASE(an_unknown_entry_is_a_mistake_of_the_test, *OnlySim()) {
  const cudasim_test::Ended ended = cudasim_test::RunChild("names_no_entry");
  BOOST_TEST(ended.code != 0);
  BOOST_TEST(ended.output.find("\"cudaNoSuchCall\" is no entry") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
