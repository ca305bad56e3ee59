// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/device_guard.h"
#include "cuguest/devices.h"
#include "cuguest/status.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/runtime/device.h"
#include "test/runtime/runtime.h"

BOOST_AUTO_TEST_SUITE(device_guard)

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cuguest::Device;
using cuguest::IfInactive;
using cuguest::Incident;
using cuguest::runtime::DeviceGuard;
using cuguest_test::BeginCount;
using cuguest_test::HasDriver;
using cuguest_test::NeedsDevices;
using cuguest_test::OnlySim;
using cuguest_test::TakeIncidents;

int RuntimeDevice() {
  int device = -1;
  RT_OK(cudaGetDevice(&device));
  return device;
}

int DeviceOfAnAllocation() {
  void* pointer = nullptr;
  RT_OK(cudaMalloc(&pointer, 64));
  cudaPointerAttributes attributes = {};
  RT_OK(cudaPointerGetAttributes(&attributes, pointer));
  RT_OK(cudaFree(pointer));
  return attributes.device;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numbers)

BOOST_AUTO_TEST_CASE(numbers_go_there_and_back) {
  const auto count = cuguest::CountDevices();
  BOOST_TEST_REQUIRE(count.ok());
  int runtime_count = 0;
  RT_OK(cudaGetDeviceCount(&runtime_count));
  BOOST_TEST(*count == runtime_count);
  for (int number = 0; number < *count; ++number) {
    const auto device = cuguest::runtime::FromRuntime(number);
    BOOST_TEST_REQUIRE(device.ok(), device.status().ToString());
    BOOST_TEST(cuguest::runtime::ToRuntime(*device) == number);
    char runtime_id[32] = {};
    RT_OK(cudaDeviceGetPCIBusId(runtime_id, sizeof(runtime_id), number));
    BOOST_TEST(PciBusIdOf(*device).value_or("") == runtime_id);
  }
}

BOOST_AUTO_TEST_CASE(a_number_that_no_device_has_is_refused_and_leaves_no_error) {
  const Undisturbed undisturbed;
  for (const int number : {-1, 4711}) {
    const auto device = cuguest::runtime::FromRuntime(number);
    BOOST_TEST((device.status().code() == absl::StatusCode::kNotFound));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(the_runtime_works_on_the_device_and_the_stack_comes_back) {
  const OwnContext user;
  const auto primary = RetainPrimary();
  for (const auto& stack : {std::vector<CUcontext>{}, {user.get()}, {user.get(), primary.get()}}) {
    SetStack(stack);
    {
      const Undisturbed undisturbed;
      const DeviceGuard guard(First());
      BOOST_TEST_REQUIRE(guard.ok(), cuguest::ToStatus(guard).ToString());
      BOOST_TEST(RuntimeDevice() == 0);
      BOOST_TEST(DeviceOfAnAllocation() == 0);
      BOOST_TEST(guard.context().get() == (stack.empty() ? primary.get() : stack.back()));
    }
    BOOST_TEST(GetStack() == stack);
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(an_inactive_primary_is_created_only_if_that_was_asked_for) {
  EndPrimary();
  {
    const DeviceGuard guard(First());
    BOOST_TEST(!guard.ok());
    BOOST_TEST((cuguest::ToStatus(guard).code() == absl::StatusCode::kFailedPrecondition));
    BOOST_TEST(GetStack().empty());
    BOOST_TEST(!PrimaryIsActive());
  }
  {
    const DeviceGuard guard(First(), IfInactive::kCreate);
    BOOST_TEST(guard.ok());
    BOOST_TEST(PrimaryIsActive());
  }
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(guards_of_devices_end_in_any_order) {
  const OwnContext user;
  for (const bool has_other : {false, true}) {
    if (has_other && cuguest::CountDevices().value_or(0) < 2) continue;
    const Device devices[] = {First(), Device::Borrow(has_other ? 1 : 0), First()};
    std::vector<std::size_t> order = {0, 1, 2};
    do {
      SetStack({user.get()});
      {
        const Undisturbed undisturbed;
        std::optional<DeviceGuard> guards[3];
        for (std::size_t i = 0; i < 3; ++i) {
          guards[i].emplace(devices[i], IfInactive::kCreate, cuguest::Location::Here());
          BOOST_TEST(guards[i]->ok());
        }
        for (const std::size_t each : order) guards[each].reset();
      }
      for (const Incident& incident : TakeIncidents()) {
        BOOST_TEST((incident.kind == Incident::Kind::kOutOfTurn));
      }
      SetStack({});
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_refused) {
  const Undisturbed undisturbed;
  const DeviceGuard guard(Device::Borrow(4711));
  BOOST_TEST(!guard.ok());
  BOOST_TEST(!cuguest::ToStatus(guard).ok());
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_header, *OnlySim()) {
  const auto enter = [] {
    const DeviceGuard guard(First());
    BOOST_TEST(guard.ok());
  };
  const OwnContext user;
  const auto primary = RetainPrimary();
  for (const CUcontext current : {user.get(), primary.get()}) {
    SetStack({current});
    BeginCount();
    enter();
    BOOST_TEST(Sim::TotalCalls() == (HasDriver(12000) ? 4U : 6U));
    Sim::ResetCalls();
    enter();
    BOOST_TEST(Sim::TotalCalls() == (HasDriver(12000) ? 3U : 6U));
    BOOST_TEST(Sim::Calls("cuDevicePrimaryCtxGetState") == 0U);
    BOOST_TEST(Sim::Calls("cuDevicePrimaryCtxRetain") == 0U);
  }
  SetStack({});
}

// What the usual idiom does instead: cudasim/test/two_devices_facts_test.cc.
BOOST_AUTO_TEST_CASE(the_old_device_gets_no_primary_context, *NeedsDevices(2)) {
  EndPrimary();
  EndPrimary(Device::Borrow(1));
  {
    const DeviceGuard guard(Device::Borrow(1), IfInactive::kCreate);
    BOOST_TEST_REQUIRE(guard.ok(), cuguest::ToStatus(guard).ToString());
    BOOST_TEST(RuntimeDevice() == 1);
    BOOST_TEST(DeviceOfAnAllocation() == 1);
  }
  BOOST_TEST(RuntimeDevice() == 0);
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(!PrimaryIsActive());
}

BOOST_AUTO_TEST_CASE(a_users_context_of_another_device_is_back_afterwards, *NeedsDevices(2)) {
  const OwnContext user(1);
  SetStack({user.get()});
  {
    const DeviceGuard guard(First(), IfInactive::kCreate);
    BOOST_TEST_REQUIRE(guard.ok(), cuguest::ToStatus(guard).ToString());
    BOOST_TEST(RuntimeDevice() == 0);
  }
  BOOST_TEST(RuntimeDevice() == 1);
  BOOST_TEST(GetStack() == std::vector<CUcontext>{user.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_callee_that_sets_the_device_is_reported_and_undone, *NeedsDevices(2)) {
  const OwnContext user;
  SetStack({user.get()});
  {
    DeviceGuard guard(First());
    BOOST_TEST_REQUIRE(guard.ok(), cuguest::ToStatus(guard).ToString());
    RT_OK(cudaSetDevice(1));
    OK(guard.Reassert());
    BOOST_TEST(RuntimeDevice() == 0);
    RT_OK(cudaSetDevice(1));
  }
  BOOST_TEST(GetStack() == std::vector<CUcontext>{user.get()});
  BOOST_TEST(RuntimeDevice() == 0);
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 2U);
  for (const auto& incident : incidents) {
    BOOST_TEST((incident.kind == Incident::Kind::kReplaced));
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
