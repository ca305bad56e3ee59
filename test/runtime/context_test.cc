// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/context.h"

#include "cudasim/sim.h"
#include "test/runtime/runtime.h"

BOOST_AUTO_TEST_SUITE(context)

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cuguest::runtime::RuntimeContext;
using cuguest_test::NeedsDevices;
using cuguest_test::OnlySim;
using Kind = RuntimeContext::Kind;

RuntimeContext Query() {
  const Undisturbed undisturbed;
  const auto context = RuntimeContext::Query();
  BOOST_TEST_REQUIRE(context.ok(), context.status().ToString());
  BOOST_TEST(!context->ToString().empty());
  return *context;
}

// What the runtime then does.
CUcontext ContextAfterAnAllocation() {
  void* pointer = nullptr;
  RT_OK(cudaMalloc(&pointer, 64));
  CUcontext owner = nullptr;
  OK(RAW(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT,
                                reinterpret_cast<CUdeviceptr>(pointer)));
  CUcontext current = nullptr;
  OK(RAW(cuCtxGetCurrent)(&current));
  BOOST_TEST(owner == current);
  RT_OK(cudaFree(pointer));
  return owner;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_users_context_is_worked_in) {
  const OwnContext user;
  SetStack({user.get()});
  const RuntimeContext context = Query();
  BOOST_TEST((context.kind == Kind::kUser));
  BOOST_TEST(!context.is_primary());
  BOOST_TEST(context.context.get() == user.get());
  BOOST_TEST((context.device == First()));
  BOOST_TEST(ContextAfterAnAllocation() == user.get());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_users_context_beside_an_active_primary) {
  const OwnContext user;
  const auto primary = RetainPrimary();
  SetStack({user.get()});
  BOOST_TEST((Query().kind == Kind::kUser));
  BOOST_TEST(ContextAfterAnAllocation() == user.get());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_primary_is_told_from_a_users_context) {
  const auto primary = RetainPrimary();
  SetStack({primary.get()});
  const RuntimeContext context = Query();
  BOOST_TEST((context.kind == Kind::kPrimary));
  BOOST_TEST(context.is_primary());
  BOOST_TEST((context.context == primary.context()));
  BOOST_TEST(ContextAfterAnAllocation() == primary.get());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(with_nothing_current_an_active_primary_is_made_current) {
  const auto primary = RetainPrimary();
  const RuntimeContext context = Query();
  BOOST_TEST((context.kind == Kind::kBinds));
  BOOST_TEST(context.is_primary());
  BOOST_TEST(context.context.get() == nullptr);
  BOOST_TEST(ContextAfterAnAllocation() == primary.get());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(with_nothing_current_and_no_primary_one_is_created) {
  EndPrimary();
  BOOST_TEST((Query().kind == Kind::kCreates));
  BOOST_TEST(!PrimaryIsActive());
  BOOST_TEST(ContextAfterAnAllocation() != nullptr);
  BOOST_TEST(PrimaryIsActive());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_is_seen) {
  OwnContext user;
  SetStack({user.get()});
  OnAnotherThread([dead = user.release()] { OK(RAW(cuCtxDestroy)(dead)); });
  const auto context = RuntimeContext::Query();
  BOOST_TEST_REQUIRE(context.ok(), context.status().ToString());
  BOOST_TEST((context->kind == Kind::kDestroyed));
  BOOST_TEST(context->context.get() == nullptr);
  BOOST_TEST(context->ToString() == "finds the current context, on device 0, destroyed");
  void* pointer = nullptr;
  BOOST_CHECK_EQUAL(cudaMalloc(&pointer, 64), cudaErrorDeviceUninitialized);
  BOOST_CHECK_EQUAL(cudaGetLastError(), cudaErrorDeviceUninitialized);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_reset_primary_is_destroyed_and_comes_back) {
  const auto primary = RetainPrimary();
  SetStack({primary.get()});
  EndPrimary();
  const auto context = RuntimeContext::Query();
  BOOST_TEST_REQUIRE(context.ok(), context.status().ToString());
  BOOST_TEST((context->kind == Kind::kDestroyed));
  BOOST_TEST(!PrimaryIsActive());
  BOOST_TEST(ContextAfterAnAllocation() == primary.get());
  BOOST_TEST((Query().kind == Kind::kPrimary));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(it_speaks_of_the_second_device, *NeedsDevices(2)) {
  const OwnContext user(1);
  SetStack({user.get()});
  BOOST_TEST((Query().device == Device::Borrow(1)));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(with_nothing_current_it_is_device_0_whatever_the_runtime_says,
                     *NeedsDevices(2)) {
  RT_OK(cudaSetDevice(1));
  SetStack({});
  int said = -1;
  RT_OK(cudaGetDevice(&said));
  BOOST_TEST(said == 1);
  BOOST_TEST((Query().device == First()));
  ContextAfterAnAllocation();
  RT_OK(cudaGetDevice(&said));
  BOOST_TEST(said == 0);
  SetStack({});
}

// Both threads look the same to Query(), which is right about the first only.
BOOST_AUTO_TEST_CASE(no_call_reports_valid_devices, *NeedsDevices(2)) {
  const auto active = RetainPrimary(Device::Borrow(1));
  const auto binds = [](const auto& choose, Device bound) {
    OnAnotherThread([&] {
      choose();
      SetStack({});
      int said = -1;
      RT_OK(cudaGetDevice(&said));
      BOOST_TEST(said == 1);
      BOOST_TEST((Query().device == First()));
      ContextAfterAnAllocation();
      const auto current = cuguest::CurrentDevice();
      BOOST_TEST_REQUIRE(current.ok(), current.status().ToString());
      BOOST_TEST((*current == bound));
      SetStack({});
    });
  };
  binds([] { RT_OK(cudaSetDevice(1)); }, First());
  const auto set_valid_devices = [] {
    int valid[] = {1, 0};
    RT_OK(cudaSetValidDevices(valid, 2));
  };
  binds(set_valid_devices, Device::Borrow(1));
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_header, *OnlySim()) {
  const OwnContext user;
  const auto calls_of_a_query = [] {
    Sim::ResetCalls();
    BOOST_TEST(RuntimeContext::Query().ok());
    return Sim::TotalCalls();
  };
  EndPrimary();
  BOOST_TEST(calls_of_a_query() == 3U);
  const auto primary = RetainPrimary();  // which is known from here on
  SetStack({user.get()});
  BOOST_TEST(calls_of_a_query() == 4U);
  SetStack({primary.get()});
  BOOST_TEST(calls_of_a_query() == 4U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(every_failing_call_is_a_status, *OnlySim()) {
  const OwnContext user;
  const auto primary = RetainPrimary();
  const std::vector<std::vector<CUcontext>> stacks = {{}, {user.get()}, {primary.get()}};
  for (const auto& stack : stacks) {
    SetStack(stack);
    for (const char* entry : {"cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxGetId",
                              "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain"}) {
      BOOST_TEST_CONTEXT(entry << " with " << stack.size() << " contexts") {
        const auto before = Sim::Live();
        Sim::ResetCalls();
        BOOST_TEST(RuntimeContext::Query().ok());
        if (Sim::Calls(entry) == 0) continue;
        Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
        const auto context = RuntimeContext::Query();
        Sim::ClearFaults();
        BOOST_TEST(!context.ok());
        BOOST_TEST((cuguest::CodeOf(context.status()) == CUDA_ERROR_UNKNOWN));
        BOOST_TEST((Sim::Live() == before));
      }
    }
    BOOST_TEST(GetStack() == stack);
    SetStack({});
  }
}

BOOST_AUTO_TEST_SUITE_END()
