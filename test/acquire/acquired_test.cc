// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What was acquired: copied, held, and whatever there is.

#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/c.h"
#include "cuguest/status.h"
#include "test/acquire/acquired.h"
#include "test/objects/memory/memories.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(acquired)

namespace {

using cudasim::Sim;
using cuguest::AcquireAny;
using cuguest::AcquireCurrent;
using cuguest::Acquired;
using cuguest::AcquiredGuard;
using cuguest::AcquireFromStream;
using cuguest::AcquireOn;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Error;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest_test::DeviceOf;
using cuguest_test::GetStack;
using cuguest_test::NeedsDevices;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::Result;
using cuguest_test::SetStack;
using cuguest_test::Source;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);
const Device kSecond = Device::Borrow(1);

bool IsActive(Device device = kFirst) { return PrimaryContext::Query(device).active; }

}  // namespace

// Each task has one; the last that ends gives the context back.
BOOST_AUTO_TEST_CASE(a_copy_holds_its_own_reference) {
  if (IsActive()) return;
  Acquired copied;
  BOOST_TEST(!copied.holds());
  {
    const Acquired made = AcquireOn(kFirst, IfInactive::kCreate);
    BOOST_TEST_REQUIRE(made.ok());
    BOOST_TEST(made.holds());
    copied = made;
    const Acquired other(copied);
    BOOST_TEST(other.holds());
  }
  BOOST_TEST(IsActive());
  ACQUIRES(copied, copied.get(), Source::kCreated);
  BOOST_TEST(DeviceOf(copied) == 0);
  std::thread([task = copied] {
    const AcquiredGuard guard(task);
    BOOST_TEST(guard.ok());
    BOOST_TEST(guard.acquired().holds());
  }).join();
  BOOST_TEST(IsActive());
  copied = Acquired();
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(a_copy_of_none_holds_none) {
  const OwnContext own;
  SetStack({own.get()});
  const Acquired current = AcquireCurrent(kFirst);
  const Acquired copied(current);
  ACQUIRES(copied, own.get(), Source::kCurrent);
  BOOST_TEST(!copied.holds());
  const Acquired refused = AcquireOn(Device::Borrow(99));
  const Acquired again(refused);
  BOOST_TEST(!again.ok());
  BOOST_TEST((ToStatus(again) == ToStatus(refused)));
  BOOST_TEST(!IsActive());
  SetStack({});
}

// What was reset is not created again by copying what held it.
BOOST_AUTO_TEST_CASE(a_copy_creates_nothing, *NeedsDriver(12000, "cuCtxGetId")) {
  if (IsActive()) return;
  const Acquired made = AcquireOn(kFirst, IfInactive::kCreate);
  BOOST_TEST_REQUIRE(made.ok());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  const Acquired copied(made);
  BOOST_TEST(!copied.ok());
  BOOST_TEST(copied.error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(!IsActive());
  {
    const PrimaryContext renewed = PrimaryContext::Retain(kFirst);
    const Acquired late(made);
    BOOST_TEST(late.error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
}

BOOST_AUTO_TEST_CASE(a_primary_is_held_on_request) {
  if (IsActive()) return;
  Result acquired;
  {
    PrimaryContext hosts = PrimaryContext::Retain(kFirst);
    SetStack({hosts.get()});
    acquired = AcquireOn(kFirst);
    ACQUIRES(acquired, hosts.get(), Source::kCurrent);
    BOOST_TEST(!acquired.holds());
    BOOST_TEST(acquired.Hold().ok());
    BOOST_TEST(acquired.holds());
    BOOST_TEST(acquired.Hold().ok());  // no more than one
    SetStack({});
    BOOST_TEST(hosts.Release().ok());
  }
  BOOST_TEST(IsActive());
  BOOST_TEST(acquired.context().IsAlive());
  BOOST_TEST(acquired.Release().ok());
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(a_streams_primary_is_held) {
  if (IsActive()) return;
  PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  SetStack({hosts.get()});
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  SetStack({});
  Result acquired = AcquireFromStream(stream);
  BOOST_TEST(acquired.Hold().ok());
  BOOST_TEST(DeviceOf(acquired) == 0);
  BOOST_TEST(hosts.Release().ok());
  BOOST_TEST(IsActive());
  SetStack({acquired.get()});
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  SetStack({});
  acquired = Acquired();
  BOOST_TEST(!IsActive());
}

// Its owner keeps it; nobody else can.
BOOST_AUTO_TEST_CASE(what_somebody_created_is_not_held) {
  const OwnContext own;
  for (const bool has_primary : {false, true}) {
    const PrimaryContext primary = has_primary ? PrimaryContext::Retain(kFirst) : PrimaryContext();
    SetStack({own.get()});
    Result acquired = AcquireCurrent(kFirst);
    BOOST_TEST(acquired.Hold().code == CUDA_ERROR_NOT_SUPPORTED);
    ACQUIRES(acquired, own.get(), Source::kCurrent);
    BOOST_TEST(!acquired.holds());
    BOOST_TEST(IsActive() == has_primary);
    BOOST_TEST(GetStack() == Stack{own.get()});
    SetStack({});
  }
  Result empty;
  BOOST_TEST(empty.Hold().code == CUDA_ERROR_INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(what_is_over_is_not_held, *NeedsDriver(12000, "cuCtxGetId")) {
  if (IsActive()) return;
  PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  SetStack({hosts.get()});
  Result acquired = AcquireCurrent(kFirst);
  SetStack({});
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(acquired.Hold().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(!acquired.holds());
  BOOST_TEST(!IsActive());
  BOOST_TEST(hosts.Release().ok());
}

BOOST_AUTO_TEST_CASE(any_is_what_is_current) {
  const OwnContext own;
  SetStack({own.get()});
  ACQUIRES(AcquireAny(), own.get(), Source::kCurrent);
  BOOST_TEST(GetStack() == Stack{own.get()});
  SetStack({});
  const Result none = AcquireAny();
  BOOST_TEST((none.error().code == CUDA_ERROR_INVALID_CONTEXT || IsActive()));
}

BOOST_AUTO_TEST_CASE(any_is_an_active_primary_else) {
  if (IsActive()) return;
  REFUSES(ToStatus(AcquireAny()), kFailedPrecondition, "acquire any context", "INVALID_CONTEXT");
  BOOST_TEST(!IsActive());
  {
    const PrimaryContext primary = PrimaryContext::Retain(kFirst);
    const Result any = AcquireAny();
    ACQUIRES(any, primary.get(), Source::kPrimary);
    BOOST_TEST(DeviceOf(any) == 0);
    cuguest_acquired in_c = CUGUEST_INIT(cuguest_acquired);
    BOOST_TEST(cuguest_acquire_any(&in_c) == 0);
    int device = -1;
    BOOST_TEST(cuguest_acquired_device(&in_c, &device) == 0);
    BOOST_TEST(device == 0);
    BOOST_TEST(cuguest_acquired_source(&in_c) == CUGUEST_FROM_PRIMARY);
    BOOST_TEST(cuguest_acquired_hold(&in_c) == 0);
    BOOST_TEST(cuguest_acquired_release(&in_c) == 0);
  }
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(any_says_which_device, *NeedsDevices(2)) {
  if (IsActive() || IsActive(kSecond)) return;
  const PrimaryContext primary = PrimaryContext::Retain(kSecond);
  const Result any = AcquireAny();
  ACQUIRES(any, primary.get(), Source::kPrimary);
  BOOST_TEST(DeviceOf(any) == 1);
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(in_c_only_if_active) {
  if (IsActive()) return;
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  BOOST_TEST(cuguest_primary_retain_if_active(&primary, 0) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(!IsActive());
  BOOST_TEST(cuguest_primary_release(&primary) == CUDA_ERROR_ILLEGAL_STATE);
  const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  BOOST_TEST(cuguest_primary_retain_if_active(&primary, 0) == 0);
  cuguest_ref ref = CUGUEST_REF_INIT;
  BOOST_TEST(cuguest_primary_ref(&primary, &ref) == 0);
  BOOST_TEST(ref.context == hosts.get());
  BOOST_TEST(cuguest_primary_release(&primary) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
