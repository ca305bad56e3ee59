// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/primary_keeper.h"

#include <thread>
#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(primary_keeper)

namespace {

using cuguest::Acquired;
using cuguest::AcquireOn;
using cuguest::Device;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest::PrimaryKeeper;
using cuguest::ReleaseKeptPrimaries;
using cuguest::ReleaseKeptPrimary;
using cuguest_test::NeedsDevices;
using cuguest_test::NeedsDriver;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Source = Acquired::Source;

const Device kFirst = Device::Borrow(0);
const Device kSecond = Device::Borrow(1);

bool IsActive(Device device = kFirst) { return PrimaryContext::Query(device).active; }

Acquired CreateAndKeep(Device device = kFirst) {
  return AcquireOn(device, IfInactive::kCreateAndKeep);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_process_keeps_what_it_created) {
  if (IsActive()) return;
  CUcontext created = nullptr;
  {
    const Acquired acquired = CreateAndKeep();
    BOOST_TEST_REQUIRE(acquired.ok());
    BOOST_TEST((acquired.source() == Source::kCreated));
    created = acquired.get();
  }
  BOOST_TEST(IsActive());
  for (int call = 0; call < 3; ++call) {
    const Acquired again = CreateAndKeep();
    BOOST_TEST((again.source() == Source::kPrimary));
    BOOST_TEST(again.get() == created);
  }
  BOOST_TEST(ReleaseKeptPrimary(kSecond).ok());  // another's name
  BOOST_TEST(IsActive());
  BOOST_TEST(ReleaseKeptPrimary(kFirst).ok());
  BOOST_TEST(!IsActive());
  BOOST_TEST(ReleaseKeptPrimary(kFirst).ok());
  BOOST_TEST(ReleaseKeptPrimaries().ok());
  BOOST_TEST(ReleaseKeptPrimary(Device::Borrow(-3)).ok());
}

// What the host has made active is the host's to keep.
BOOST_AUTO_TEST_CASE(what_was_active_is_not_kept) {
  if (IsActive()) return;
  {
    const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
    const Acquired acquired = CreateAndKeep();
    BOOST_TEST((acquired.source() == Source::kPrimary));
  }
  BOOST_TEST(!IsActive());
}

// A reset takes no reference away: the next call creates it again, and one is kept, not two.
BOOST_AUTO_TEST_CASE(a_reset_keeps_the_one_reference, *NeedsDriver(12000, "cuCtxGetId")) {
  if (IsActive()) return;
  BOOST_TEST(CreateAndKeep().ok());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(!IsActive());
  {
    const Acquired again = CreateAndKeep();
    BOOST_TEST((again.source() == Source::kCreated));
  }
  BOOST_TEST(IsActive());
  BOOST_TEST(ReleaseKeptPrimary(kFirst).ok());
  BOOST_TEST(!IsActive());
}

// Given back after a reset, it is nobody else's reference that goes.
BOOST_AUTO_TEST_CASE(given_back_after_a_reset) {
  if (IsActive()) return;
  BOOST_TEST(CreateAndKeep().ok());
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  BOOST_TEST(ReleaseKeptPrimary(kFirst).ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(hosts.context().IsAlive());
}

BOOST_AUTO_TEST_CASE(an_object_keeps_until_it_ends) {
  if (IsActive()) return;
  {
    PrimaryKeeper keeper;
    BOOST_TEST(!keeper.Keeps(kFirst));
    for (int call = 0; call < 2; ++call) {
      const Acquired acquired = AcquireOn(kFirst, IfInactive::kCreate);
      BOOST_TEST(keeper.Keep(acquired).ok());
    }
    BOOST_TEST(keeper.Keeps(kFirst));
    BOOST_TEST(IsActive());
    BOOST_TEST(keeper.Release(kFirst).ok());
    BOOST_TEST(!IsActive());
    BOOST_TEST(keeper.Keep(AcquireOn(kFirst, IfInactive::kCreate)).ok());
    BOOST_TEST(IsActive());
  }
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(nothing_held_is_nothing_kept) {
  if (IsActive()) return;
  const OwnContext own;
  PrimaryKeeper keeper;
  SetStack({own.get()});
  BOOST_TEST(keeper.Keep(AcquireOn(kFirst)).ok());
  BOOST_TEST(!keeper.Keeps(kFirst));
  SetStack({});
  BOOST_TEST(keeper.Keep(Acquired()).code == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(!keeper.Keeps(Device::Borrow(64)));
  BOOST_TEST(keeper.Release(Device::Borrow(64)).ok());
  BOOST_TEST(keeper.ReleaseAll().ok());
  BOOST_TEST(!IsActive());
}

BOOST_AUTO_TEST_CASE(each_device_has_its_own, *NeedsDevices(2)) {
  if (IsActive() || IsActive(kSecond)) return;
  BOOST_TEST(CreateAndKeep(kFirst).ok());
  BOOST_TEST(CreateAndKeep(kSecond).ok());
  BOOST_TEST(ReleaseKeptPrimary(kFirst).ok());
  BOOST_TEST(!IsActive());
  BOOST_TEST(IsActive(kSecond));
  BOOST_TEST(ReleaseKeptPrimaries().ok());
  BOOST_TEST(!IsActive(kSecond));
}

// However many create it at once, one reference is kept.
BOOST_AUTO_TEST_CASE(threads_keep_one_reference) {
  if (IsActive()) return;
  for (int round = 0; round < 20; ++round) {
    bool is_ok[4] = {};
    std::vector<std::thread> threads;
    for (bool& each : is_ok) {
      threads.emplace_back([&each] { each = CreateAndKeep().ok(); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const bool each : is_ok) BOOST_TEST(each);
    BOOST_TEST(IsActive());
    BOOST_TEST(ReleaseKeptPrimary(kFirst).ok());
    BOOST_TEST(!IsActive());
  }
}

BOOST_AUTO_TEST_CASE(the_same_in_c) {
  if (IsActive()) return;
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  BOOST_TEST(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE_AND_KEEP) == 0);
  BOOST_TEST(cuguest_acquired_release(&acquired) == 0);
  BOOST_TEST(IsActive());
  BOOST_TEST(cuguest_release_kept_primary(CUGUEST_NO_DEVICE) == 0);
  BOOST_TEST(!IsActive());
  cuguest_primary_keeper keeper = CUGUEST_INIT(cuguest_primary_keeper);
  BOOST_TEST(cuguest_primary_keeper_release(&keeper, 0) == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(cuguest_primary_keeper_keep(&keeper, &acquired) == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE) == 0);
  BOOST_TEST(cuguest_primary_keeper_keep(&keeper, &acquired) == 0);
  BOOST_TEST(cuguest_primary_keeper_keep(&keeper, &acquired) == 0);
  BOOST_TEST(cuguest_acquired_release(&acquired) == 0);
  BOOST_TEST(IsActive());
  BOOST_TEST(cuguest_primary_keeper_release(&keeper, 0) == 0);
  BOOST_TEST(!IsActive());
  BOOST_TEST(cuguest_primary_keeper_release(&keeper, CUGUEST_NO_DEVICE) == 0);
  BOOST_TEST(cuguest_primary_keeper_release(&keeper, 0) == CUDA_ERROR_ILLEGAL_STATE);
  cuguest_primary_keeper_cleanup(&keeper);
}

BOOST_AUTO_TEST_SUITE_END()
