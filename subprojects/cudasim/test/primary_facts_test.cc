// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Primary contexts: one per device, counted by the driver, owned by nobody.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(primary_facts)

using namespace cudasim_facts;

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

BOOST_AUTO_TEST_CASE(release_without_retain_fails) {
  IS(RAW(cuDevicePrimaryCtxRelease)(kDevice), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(reset_ends_the_incarnation_and_keeps_the_count) {
  Play("tl", "10");
  Play("tetll", "10110");
  Play("tttelll", "1110000");
  Play("tttetllll", "111011110");
  Play("teel", "1000");
  Play("ttetelll", "11010000");
  Play("teltl", "10010");
}

BOOST_AUTO_TEST_CASE(reset_of_an_inactive_primary_does_nothing) { Play("etle", "0100"); }

BOOST_AUTO_TEST_CASE(a_release_too_many_takes_somebody_elses_reference) {
  Retain();                                     // somebody else's
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));  // by one who never retained
  BOOST_TEST(!IsActive(kDevice));
  IS(RAW(cuDevicePrimaryCtxRelease)(kDevice), INVALID_CONTEXT);  // the owner's own
}

BOOST_AUTO_TEST_CASE(retain_makes_nothing_current) {
  Retain();
  BOOST_CHECK(CurrentContext() == nullptr);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(an_incarnation_has_the_same_handle_and_a_new_id) {
  const CUcontext first = Retain();
  const auto first_id = IdOf(first);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  const CUcontext second = Retain();
  BOOST_CHECK(second == first);
  BOOST_TEST(IdOf(second) > first_id);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(reset_leaves_the_handle_current_and_dead) {
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

BOOST_AUTO_TEST_CASE(reset_is_seen_by_a_thread_that_has_it_current) {
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

BOOST_AUTO_TEST_CASE(the_last_release_leaves_it_on_stacks) {
  const CUcontext primary = Retain();
  SetStack({primary});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  BOOST_TEST(!IsActive(kDevice));
  BOOST_CHECK(CurrentContext() == primary);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(a_dead_primary_may_be_pushed) {
  const CUcontext primary = Retain();
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
  OK(RAW(cuCtxPushCurrent)(primary));
  BOOST_CHECK(CurrentContext() == primary);
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 16), CONTEXT_IS_DESTROYED);
  BOOST_TEST(!IsActive(kDevice));
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(a_primary_cannot_be_destroyed) {
  const CUcontext primary = Retain();
  SetStack({primary});
  IS(RAW(cuCtxDestroy)(primary), INVALID_CONTEXT);
  BOOST_CHECK(CurrentContext() == primary);
  BOOST_TEST(IsActive(kDevice));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(flags_are_everybodys_and_end_with_the_incarnation) {
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

BOOST_AUTO_TEST_CASE(flags_are_checked) {
  for (const unsigned flags : {0x4000u, 3u, 7u, 0x100u, unsigned{CU_CTX_MAP_HOST}}) {
    IS(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, flags), INVALID_VALUE);
  }
  BOOST_TEST(FlagsOf(kDevice) == 0u);
  for (const unsigned flags : {2u, 0x10u, 0x80u, 0u}) {
    OK(RAW(cuDevicePrimaryCtxSetFlags)(kDevice, flags));
    BOOST_TEST(FlagsOf(kDevice) == flags);
  }
}

BOOST_AUTO_TEST_CASE(the_context_shows_other_flags_than_the_state) {
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

BOOST_AUTO_TEST_CASE(the_first_set_flags_refuses_an_active_primary) {
  using SetFlags = CUresult (*)(CUdevice, unsigned);
  OK(RAW_AS(SetFlags, "cuDevicePrimaryCtxSetFlags")(kDevice, CU_CTX_SCHED_BLOCKING_SYNC));
  Retain();
  IS(RAW_AS(SetFlags, "cuDevicePrimaryCtxSetFlags")(kDevice, CU_CTX_SCHED_BLOCKING_SYNC),
     PRIMARY_CONTEXT_ACTIVE);
  OK(RAW(cuDevicePrimaryCtxRelease)(kDevice));
}

BOOST_AUTO_TEST_CASE(limits_end_with_the_incarnation) {
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

BOOST_AUTO_TEST_CASE(arguments_are_checked) {
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
// cudart asks for the first version, 7000; others for the second, 11000.
BOOST_AUTO_TEST_CASE(the_first_version_of_release_ignores_what_no_retain_covers) {
  using Release = decltype(&::cuDevicePrimaryCtxRelease);
  const auto first = RAW_AS(Release, "cuDevicePrimaryCtxRelease");
  const auto second = RAW(cuDevicePrimaryCtxRelease);
  OK(first(0));
  IS(second(0), INVALID_CONTEXT);
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(first(0));
  BOOST_TEST(IsActive(0));
  OK(first(0));
  BOOST_TEST(!IsActive(0));
  OK(first(0));
  IS(second(0), INVALID_CONTEXT);
  IS(first(99), INVALID_DEVICE);
}

BOOST_AUTO_TEST_SUITE_END()
