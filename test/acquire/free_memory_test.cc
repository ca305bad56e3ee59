// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/free_memory.h"

#include <cstddef>

#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/status.h"
#include "test/support/failed_calls.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(free_memory)

namespace {

using cudasim::Sim;
using cuguest::Device;
using cuguest::Error;
using cuguest::ErrorOr;
using cuguest::FreeMemory;
using cuguest::GetFreeMemory;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest_test::FailedCalls;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

size_t TotalOf(Device device) {
  size_t bytes = 0;
  BOOST_TEST(RAW(cuDeviceTotalMem)(&bytes, device.get()) == CUDA_SUCCESS);
  return bytes;
}

// What C says, and whether C++ says the same.
CUresult Ask(Device device, size_t* free, size_t* total, IfInactive if_inactive) {
  const int create = if_inactive == IfInactive::kCreate ? CUGUEST_CREATE : CUGUEST_REFUSE;
  const int code = cuguest_free_memory(device.get(), create, free, total);
  const ErrorOr<FreeMemory> memory = GetFreeMemory(device, if_inactive);
  BOOST_TEST(int{memory.error().code} == code);
  // Other processes may use a real device meanwhile.
  if (memory.ok() && free != nullptr) BOOST_TEST((memory->free == *free || !Sim::IsActive()));
  if (memory.ok() && total != nullptr) BOOST_TEST(memory->total == *total);
  return CUresult(code);
}

}  // namespace

BOOST_AUTO_TEST_CASE(nobody_uses_the_device) {
  size_t free = 7;
  BOOST_TEST(!IsActive());
  BOOST_TEST(Ask(kFirst, &free, nullptr, IfInactive::kRefuse) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST((GetFreeMemory(kFirst).error().reason == Error::Reason::kInactive));
  BOOST_TEST(free == 7U);
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(a_context_is_made_and_given_back) {
  size_t free = 0;
  size_t total = 0;
  BOOST_TEST(Ask(kFirst, &free, &total, IfInactive::kCreate) == CUDA_SUCCESS);
  BOOST_TEST(free > 0U);
  BOOST_TEST(free <= total);
  BOOST_TEST(total <= TotalOf(kFirst));
  BOOST_TEST(!IsActive());
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(the_active_primary_is_asked) {
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  size_t free = 0;
  BOOST_TEST(Ask(kFirst, &free, nullptr, IfInactive::kRefuse) == CUDA_SUCCESS);
  BOOST_TEST(free > 0U);
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(the_current_context_is_asked) {
  const OwnContext context;
  SetStack({context.get()});
  size_t before = 0;
  size_t after = 0;
  CUdeviceptr memory = 0;
  constexpr size_t kBytes = size_t{256} << 20;
  BOOST_TEST(Ask(kFirst, &before, nullptr, IfInactive::kCreate) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemAlloc)(&memory, kBytes) == CUDA_SUCCESS);
  BOOST_TEST(Ask(kFirst, &after, nullptr, IfInactive::kRefuse) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  BOOST_TEST(after < before);
  BOOST_TEST(!IsActive());
  BOOST_TEST((GetStack() == std::vector<CUcontext>{context.get()}));
  SetStack({});
}

// Not the one that happens to be current.
BOOST_AUTO_TEST_CASE(another_device_is_current, *cuguest_test::NeedsDevices(2)) {
  const OwnContext context(1);
  SetStack({context.get()});
  size_t free = 0;
  BOOST_TEST(Ask(kFirst, &free, nullptr, IfInactive::kRefuse) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(Ask(kFirst, &free, nullptr, IfInactive::kCreate) == CUDA_SUCCESS);
  BOOST_TEST(!IsActive());
  BOOST_TEST((GetStack() == std::vector<CUcontext>{context.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(no_device_and_nothing_to_write) {
  BOOST_TEST(Ask(Device::Borrow(99), nullptr, nullptr, IfInactive::kCreate) ==
             CUDA_ERROR_INVALID_DEVICE);
  BOOST_TEST(Ask(kFirst, nullptr, nullptr, IfInactive::kCreate) == CUDA_SUCCESS);
  BOOST_TEST(cuguest_free_memory(0, 3, nullptr, nullptr) == int{CUDA_ERROR_INVALID_VALUE});
}

BOOST_AUTO_TEST_CASE(cost,
                     *cuguest_test::OnlySim() * cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  const auto calls = [](IfInactive if_inactive) {
    Sim::ResetCalls();
    FailedCalls failed;
    BOOST_TEST(GetFreeMemory(kFirst, if_inactive).ok());
    BOOST_TEST(failed.Take().empty());
    return Sim::TotalCalls();
  };
  const OwnContext context;
  SetStack({context.get()});
  static_cast<void>(calls(IfInactive::kRefuse));  // sees it current
  BOOST_TEST(calls(IfInactive::kRefuse) == 2U + 4U);
  SetStack({});
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST(calls(IfInactive::kCreate) == 4U + 6U + 1U);
}

BOOST_AUTO_TEST_CASE(a_driver_that_fails, *cuguest_test::OnlySim()) {
  for (const char* entry : {"cuMemGetInfo", "cuDevicePrimaryCtxRelease"}) {
    size_t free = 7;
    Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
    const bool in_c = cuguest_free_memory(0, CUGUEST_CREATE, &free, nullptr) == CUDA_ERROR_UNKNOWN;
    if (IsActive()) BOOST_TEST(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
    Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
    const Error error = GetFreeMemory(kFirst, IfInactive::kCreate).error();
    Sim::ClearFaults();
    BOOST_TEST((in_c && error.code == CUDA_ERROR_UNKNOWN), entry);
    BOOST_TEST(free == 7U);
    if (IsActive()) BOOST_TEST(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
    BOOST_TEST(GetStack().empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
