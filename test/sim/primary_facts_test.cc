// SPDX-License-Identifier: Apache-2.0
//
// Primary contexts: one per device, counted by the driver, owned by nobody.

#include "test/sim/facts.h"

using namespace cuguest_facts;

namespace {

constexpr CUdevice kDevice = 0;

CUcontext Retain() {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, kDevice));
  return primary;
}

// Plays 't' (retain), 'l' (release) and 'e' (reset); after each step the primary is
// active where `active` has a '1'. Then one release more fails.
void Play(const std::string& steps, const std::string& active) {
  BOOST_TEST_CONTEXT("steps " << steps) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] == 't') Retain();
      if (steps[i] == 'l') OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
      if (steps[i] == 'e') OK(RAW(cuDevicePrimaryCtxReset)(kDevice));
      BOOST_TEST(IsActive(kDevice) == (active[i] == '1'), "after step " << i);
    }
    IS(RAW(cuDevicePrimaryCtxRelease)(kDevice), INVALID_CONTEXT);
    BOOST_TEST(!IsActive(kDevice));
  }
}

unsigned FlagsOf(CUdevice device) {
  unsigned flags = 77;
  int active = 0;
  OK(RAW(cuDevicePrimaryCtxGetState)(device, &flags, &active));
  return flags;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ReleaseWithoutRetainFails) {
  IS(RAW(cuDevicePrimaryCtxRelease)(kDevice), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(ResetEndsTheLifeAndKeepsTheCount) {
  Play("tl", "10");
  Play("tetll", "10110");
  Play("tttelll", "1110000");
  Play("tttetllll", "111011110");
  Play("teel", "1000");
  Play("ttetelll", "11010000");
  Play("teltl", "10010");
}

BOOST_AUTO_TEST_CASE(ResetOfAnInactivePrimaryDoesNothing) { Play("etle", "0100"); }

BOOST_AUTO_TEST_CASE(AReleaseTooManyTakesSomebodyElsesReference) {
  Retain();                                     // somebody else's
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));  // by one who never retained
  BOOST_TEST(!IsActive(kDevice));
  IS(RAW(cuDevicePrimaryCtxRelease)(kDevice), INVALID_CONTEXT);  // the owner's own
}

BOOST_AUTO_TEST_CASE(RetainMakesNothingCurrent) {
  Retain();
  BOOST_CHECK(CurrentContext() == nullptr);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(ALifeHasTheSameHandleAndANewId) {
  const CUcontext first = Retain();
  const auto first_id = IdOf(first);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  const CUcontext second = Retain();
  BOOST_CHECK(second == first);
  BOOST_TEST(IdOf(second) > first_id);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(ResetLeavesTheHandleCurrentAndDead) {
  const CUcontext primary = Retain();
  SetStack({primary});
  CUdeviceptr lost = 0;
  OK(RAW(cuMemAlloc)(&lost, 16));
  OK(RAW(cuDevicePrimaryCtxReset)(kDevice));
  BOOST_CHECK(CurrentContext() == primary);
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
  IS(RAW(cuCtxSynchronize)(), CONTEXT_IS_DESTROYED);
  CUdevice device = -1;
  OK(RAW(cuCtxGetDevice)(&device));
  OK(RAW(cuCtxGetDevice_v2)(&device, primary));
  IS(RAW(cuCtxSynchronize_v2)(primary), CONTEXT_IS_DESTROYED);
  unsigned long long id = 0;
  IS(RAW(cuCtxGetId)(primary, &id), CONTEXT_IS_DESTROYED);
  unsigned version = 0;
  IS(RAW(cuCtxGetApiVersion)(primary, &version), INVALID_CONTEXT);
  CUcontext owner = nullptr;
  IS(RAW(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, lost), INVALID_VALUE);
  Retain();  // comes back under this thread's feet
  OK(RAW(cuMemAlloc)(&pointer, 16));
  OK(RAW(cuMemFree)(pointer));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(ResetIsSeenByAThreadThatHasItCurrent) {
  const CUcontext primary = Retain();
  SetStack({primary});
  OnAnotherThread([] { OK(RAW(cuDevicePrimaryCtxReset)(kDevice)); });
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
  OnAnotherThread([] { Retain(); });
  OK(RAW(cuMemAlloc)(&pointer, 16));
  OK(RAW(cuMemFree)(pointer));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(TheLastReleaseLeavesItOnStacks) {
  const CUcontext primary = Retain();
  SetStack({primary});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  BOOST_TEST(!IsActive(kDevice));
  BOOST_CHECK(CurrentContext() == primary);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(ADeadPrimaryMayBePushed) {
  const CUcontext primary = Retain();
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  OK(RAW(cuCtxPushCurrent)(primary));
  BOOST_CHECK(CurrentContext() == primary);
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
  BOOST_TEST(!IsActive(kDevice));
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(APrimaryCannotBeDestroyed) {
  const CUcontext primary = Retain();
  SetStack({primary});
  IS(RAW(cuCtxDestroy)(primary), INVALID_CONTEXT);
  BOOST_CHECK(CurrentContext() == primary);
  BOOST_TEST(IsActive(kDevice));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(FlagsAreEverybodysAndEndWithTheLife) {
  OK(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, CU_CTX_SCHED_BLOCKING_SYNC));
  Retain();
  OK(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, CU_CTX_SCHED_SPIN));  // also while active
  BOOST_TEST(FlagsOf(kDevice) == unsigned{CU_CTX_SCHED_SPIN});
  OK(RAW(cuDevicePrimaryCtxReset)(kDevice));
  BOOST_TEST(FlagsOf(kDevice) == 0u);
  Retain();
  BOOST_TEST(FlagsOf(kDevice) == 0u);
  OK(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, CU_CTX_SCHED_SPIN));
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  BOOST_TEST(FlagsOf(kDevice) == 0u);
}

BOOST_AUTO_TEST_CASE(FlagsAreChecked) {
  for (const unsigned flags : {0x4000u, 3u, 7u, 0x100u, unsigned{CU_CTX_MAP_HOST}}) {
    IS(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, flags), INVALID_VALUE);
  }
  BOOST_TEST(FlagsOf(kDevice) == 0u);
  for (const unsigned flags : {2u, 0x10u, 0x80u, 0u}) {
    OK(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, flags));
    BOOST_TEST(FlagsOf(kDevice) == flags);
  }
}

BOOST_AUTO_TEST_CASE(TheContextShowsOtherFlagsThanTheState) {
  OK(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, CU_CTX_SCHED_BLOCKING_SYNC));
  SetStack({Retain()});
  unsigned flags = 0;
  OK(RAW(cuCtxGetFlags)(&flags));
  BOOST_TEST(flags == unsigned{CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST});
  OK(RAW(cuCtxSetFlags)(CU_CTX_SCHED_YIELD));
  BOOST_TEST(FlagsOf(kDevice) == unsigned{CU_CTX_SCHED_BLOCKING_SYNC});
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(TheFirstSetFlagsRefusesAnActivePrimary) {
  using SetFlags = CUresult (*)(CUdevice, unsigned);
  OK(RAW_AS(SetFlags, "cuDevicePrimaryCtxSetFlags")(kDevice, CU_CTX_SCHED_BLOCKING_SYNC));
  Retain();
  IS(RAW_AS(SetFlags, "cuDevicePrimaryCtxSetFlags")(kDevice, CU_CTX_SCHED_BLOCKING_SYNC),
     PRIMARY_CONTEXT_ACTIVE);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(LimitsEndWithTheLife) {
  SetStack({Retain()});
  size_t value = 0;
  OK(RAW(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  OK(RAW(cuDevicePrimaryCtxReset)(kDevice));
  Retain();
  OK(RAW(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
  BOOST_TEST(value == 1024u);
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(ArgumentsAreChecked) {
  IS(RAW(cuDevicePrimaryCtxRetain)(nullptr, kDevice), INVALID_VALUE);
  BOOST_TEST(!IsActive(kDevice));
  unsigned flags = 0;
  int active = 0;
  for (const CUdevice bad : {99, -1}) {
    auto out = reinterpret_cast<CUcontext>(0x77);
    IS(RAW(cuDevicePrimaryCtxRetain)(&out, bad), INVALID_DEVICE);
    BOOST_CHECK(out == reinterpret_cast<CUcontext>(0x77));
    IS(RAW(cuDevicePrimaryCtxRelease)(bad), INVALID_DEVICE);
    IS(RAW(cuDevicePrimaryCtxReset)(bad), INVALID_DEVICE);
    IS(RAW(cuDevicePrimaryCtxSetFlags)(bad, 0), INVALID_DEVICE);
    IS(RAW(cuDevicePrimaryCtxGetState)(bad, &flags, &active), INVALID_DEVICE);
  }
  IS(RAW(cuDevicePrimaryCtxGetState)(kDevice, nullptr, &active), INVALID_VALUE);
  IS(RAW(cuDevicePrimaryCtxGetState)(kDevice, &flags, nullptr), INVALID_VALUE);
}
