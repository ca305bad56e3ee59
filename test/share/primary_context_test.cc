// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/primary_context.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(primary_context)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::PrimaryContext;

const Device kFirst = Device::Borrow(0);

bool IsActive(Device device) { return PrimaryContext::Query(device).active; }

static_assert(!std::is_copy_constructible_v<PrimaryContext>);
static_assert(std::is_nothrow_move_constructible_v<PrimaryContext>);
static_assert(std::is_nothrow_move_assignable_v<PrimaryContext>);

}  // namespace

BOOST_AUTO_TEST_CASE(asking_creates_no_primary_context) {
  const cuguest::testing::UndisturbedScope scope(
      [](const std::string& difference) { BOOST_ERROR(difference); });
  BOOST_TEST(!IsActive(kFirst));
  const absl::Status status = ToStatus(PrimaryContext::RetainIfActive(kFirst));
  BOOST_TEST((status.code() == absl::StatusCode::kFailedPrecondition));
  BOOST_TEST(absl::StrContains(std::string(status.message()), "device 0"));
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(retain_creates_last_release_destroys) {
  PrimaryContext first = PrimaryContext::Retain(kFirst);
  BOOST_TEST(IsActive(kFirst));
  BOOST_TEST(first.get() != nullptr);
  BOOST_TEST((first.device() == kFirst));
  PrimaryContext second = PrimaryContext::RetainIfActive(kFirst);
  BOOST_TEST(second.get() == first.get());
  BOOST_TEST((second.context() == first.context()));
  BOOST_TEST(first.Release().ok());
  BOOST_TEST(first.get() == nullptr);
  BOOST_TEST(IsActive(kFirst));
  BOOST_TEST(second.Release().ok());
  BOOST_TEST(!IsActive(kFirst));
  BOOST_TEST(second.Release().ok(), "an empty object releases nothing");
}

BOOST_AUTO_TEST_CASE(retain_makes_nothing_current) {
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST(cuguest_test::GetStack().empty());
}

BOOST_AUTO_TEST_CASE(destruction_and_moves_keep_the_count) {
  {
    PrimaryContext a = PrimaryContext::Retain(kFirst);
    PrimaryContext b = std::move(a);
    BOOST_TEST(a.get() == nullptr);
    PrimaryContext c;
    c = std::move(b);
    PrimaryContext d = PrimaryContext::Retain(kFirst);
    c = std::move(d);  // releases c's old reference
    PrimaryContext& same = c;
    c = std::move(same);
    BOOST_TEST(c.get() != nullptr);
    BOOST_TEST(IsActive(kFirst));
  }
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(leak_gives_up_without_a_call) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const CUcontext context = primary.Leak();
  BOOST_TEST(context != nullptr);
  BOOST_TEST(primary.get() == nullptr);
  BOOST_TEST(primary.Release().ok());
  BOOST_TEST(IsActive(kFirst));
  BOOST_TEST((*ObjectDriver::Get())->DevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(work_in_the_primary) {
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const ContextGuard guard(primary.context());
  BOOST_TEST(guard.ok());
  CUdeviceptr pointer = 0;
  BOOST_TEST((*ObjectDriver::Get())->MemAlloc(&pointer, 64) == CUDA_SUCCESS);
  BOOST_TEST((*ObjectDriver::Get())->MemFree(pointer) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(
    release_after_reset_keeps_others_references,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST(!primary.WasReset());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(primary.WasReset());
  {
    const ContextGuard refused(primary.context());
    BOOST_TEST(refused.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  // Somebody else retains it again: still not ours.
  PrimaryContext theirs = PrimaryContext::Retain(kFirst);
  BOOST_TEST(theirs.get() == primary.get());
  BOOST_TEST((theirs.context() != primary.context()));
  BOOST_TEST(primary.WasReset());
  BOOST_TEST(!theirs.WasReset());
  // And giving ours back takes nothing of theirs.
  BOOST_TEST(primary.Release().ok());
  BOOST_TEST(IsActive(kFirst));
  BOOST_TEST(!theirs.WasReset());
  BOOST_TEST(theirs.Release().ok());
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(a_stolen_reference_is_reported) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST((*ObjectDriver::Get())->DevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  BOOST_TEST(primary.WasReset());
  const absl::Status status = ToStatus(primary.Release());
  BOOST_TEST((status.code() == absl::StatusCode::kFailedPrecondition), status);
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_INVALID_CONTEXT));
  BOOST_TEST(primary.get() == nullptr);
}

// The driver refuses every such call there, whatever object holds the reference.
BOOST_AUTO_TEST_CASE(release_in_host_function_is_refused) {
  struct Held {
    PrimaryContext primary;
    cuguest_primary of_c = CUGUEST_INIT(cuguest_primary);
    cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
    absl::Status refused;
    int codes[2] = {};
  } held;
  held.primary = PrimaryContext::Retain(kFirst);
  BOOST_TEST(cuguest_primary_retain(&held.of_c, 0) == 0);
  BOOST_TEST(cuguest_acquire_on(&held.acquired, 0, CUGUEST_REFUSE) == 0);
  {
    const ContextGuard guard(held.primary.context());
    CUstream stream = nullptr;
    BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    const auto release = [](void* data) {
      auto* const refused = static_cast<Held*>(data);
      refused->refused = ToStatus(refused->primary.Release());
      refused->codes[0] = cuguest_primary_release(&refused->of_c);
      refused->codes[1] = cuguest_acquired_release(&refused->acquired);
    };
    BOOST_TEST(RAW(cuLaunchHostFunc)(stream, release, &held) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  }
  BOOST_TEST((held.refused.code() == absl::StatusCode::kPermissionDenied), held.refused);
  for (const int code : held.codes) BOOST_TEST(code == CUDA_ERROR_NOT_PERMITTED);
  BOOST_TEST(held.primary.get() != nullptr);
  BOOST_TEST(held.primary.Release().ok());
  BOOST_TEST(cuguest_primary_release(&held.of_c) == 0);
  BOOST_TEST(IsActive(kFirst));
  BOOST_TEST(cuguest_acquired_release(&held.acquired) == 0);
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there) {
  const Device nobody = Device::Borrow(99);
  for (const absl::Status& status :
       {ToStatus(PrimaryContext::Retain(nobody)), ToStatus(PrimaryContext::RetainIfActive(nobody)),
        ToStatus(PrimaryContext::Query(nobody))}) {
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_INVALID_DEVICE));
    BOOST_TEST(absl::StrContains(std::string(status.message()), "device 99"));
  }
}

BOOST_AUTO_TEST_CASE(many_threads_share_one_count) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 5; ++round) {
        PrimaryContext primary = PrimaryContext::Retain(kFirst);
        const ContextGuard guard(primary.get());
        if (!guard.ok()) std::abort();
      }
    });
  }
  PrimaryContext anchor = PrimaryContext::Retain(kFirst);
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(IsActive(kFirst));
  BOOST_TEST(anchor.Release().ok());
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(the_other_devices_primary_stays_away, *cuguest_test::NeedsDevices(2)) {
  const PrimaryContext second = PrimaryContext::Retain(Device::Borrow(1));
  const ContextGuard guard(second.context());
  BOOST_TEST(IsActive(Device::Borrow(1)));
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_CASE(failing_driver_calls_leak_nothing, *cuguest_test::OnlySim()) {
  const auto before = Sim::Live();
  for (const char* entry :
       {"cuDevicePrimaryCtxRetain", "cuCtxGetId", "cuDevicePrimaryCtxGetState"}) {
    if (!cuguest_test::HasDriver(12000) && std::string(entry) == "cuCtxGetId") continue;
    Sim::FailCall(entry, 1, CUDA_ERROR_OUT_OF_MEMORY);
    const bool state = std::string(entry) == "cuDevicePrimaryCtxGetState";
    const absl::Status status =
        state ? ToStatus(PrimaryContext::Query(kFirst)) : ToStatus(PrimaryContext::Retain(kFirst));
    Sim::ClearFaults();
    BOOST_TEST((status.code() == absl::StatusCode::kResourceExhausted), entry);
    BOOST_TEST((Sim::Live() == before), entry);
  }
}

// A repair asks whether a context is the primary one, whose handle a reference has told.
// (For the first time: test/process/no_query_creates_test.cc.)
BOOST_AUTO_TEST_CASE(a_repair_retains_no_known_primary, *cuguest_test::OnlySim()) {
  const cuguest_test::OwnContext current;
  PrimaryContext theirs = PrimaryContext::Retain(kFirst);
  cuguest_test::SetStack({current.get()});
  Sim::ResetCalls();
  {
    const ContextGuard guard(current.get());
    BOOST_TEST(RAW(cuCtxSetCurrent)(theirs.get()) == CUDA_SUCCESS);
  }
  BOOST_TEST(Sim::Calls("cuDevicePrimaryCtxRetain") == 0u);
  BOOST_TEST(Sim::Calls("cuDevicePrimaryCtxRelease") == 0u);
  BOOST_TEST(cuguest_test::TakeIncidents().size() == 1u);
  cuguest_test::SetStack({});
  BOOST_TEST(theirs.Release().ok());
  BOOST_TEST(!IsActive(kFirst));
}

BOOST_AUTO_TEST_SUITE_END()
