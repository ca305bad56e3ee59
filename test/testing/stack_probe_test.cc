// SPDX-License-Identifier: Apache-2.0

#include "cuguest/testing/stack_probe.h"

#include <string>

#include "absl/strings/match.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace {

using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::testing::StackProbe;
using cuguest::testing::UndisturbedScope;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TheDriver;

// What a scope around `work` would tell a test.
template <typename Work>
std::string Told(Work work) {
  std::string told;
  {
    const UndisturbedScope scope([&told](const std::string& difference) { told += difference; });
    work();
  }
  return told;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stack_probe)

BOOST_AUTO_TEST_CASE(sees_the_whole_stack_and_leaves_it) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get(), b.get(), a.get()});
  for (int round = 0; round < 3; ++round) {
    const StackProbe probe = StackProbe::Take();
    BOOST_TEST_REQUIRE(probe.stack().size() == 3U);
    BOOST_TEST(probe.stack()[0].context == a.get());
    BOOST_TEST(probe.stack()[1].context == b.get());
    BOOST_TEST((probe.stack()[0] == probe.stack()[2]));
    BOOST_TEST(probe.stack()[0].id != probe.stack()[1].id);
    BOOST_TEST(probe.current() == a.get());
    BOOST_TEST(!probe.cut());
    const auto name = [&](CUcontext context) { return context == a.get() ? "A" : "B"; };
    BOOST_TEST(probe.Draw(name) == "[A] [B] [A]<");
  }
  SetStack({});
  BOOST_TEST(StackProbe::Take().Draw([](CUcontext) { return "?"; }) == "(empty)");
  BOOST_TEST(StackProbe::Take().current() == nullptr);
}

BOOST_AUTO_TEST_CASE(an_undisturbed_scope_says_nothing) {
  const OwnContext a;
  SetStack({a.get()});
  BOOST_TEST(Told([&] {
               CUcontext popped = nullptr;
               TheDriver().CtxPushCurrent(a.get());
               TheDriver().CtxPopCurrent(&popped);
             }) == "");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(each_disturbance_of_the_stack_is_told) {
  const OwnContext a;
  const OwnContext b;
  CUcontext popped = nullptr;
  const auto told_from = [&](std::vector<CUcontext> stack, auto work) {
    SetStack(stack);
    const std::string told = Told(work);
    SetStack({});
    return told;
  };
  const std::string pushed = told_from({a.get()}, [&] { TheDriver().CtxPushCurrent(b.get()); });
  BOOST_TEST(absl::StrContains(pushed, "the stack of contexts"));
  BOOST_TEST(absl::StrContains(pushed, "stack_probe_test.cc:"));
  BOOST_TEST(told_from({a.get()}, [&] { TheDriver().CtxPopCurrent(&popped); }) != "");
  BOOST_TEST(told_from({a.get()}, [&] { TheDriver().CtxSetCurrent(b.get()); }) != "");
  BOOST_TEST(told_from({}, [&] { TheDriver().CtxPushCurrent(b.get()); }) != "");
  BOOST_TEST(told_from({a.get(), b.get()},
                       [&] {
                         TheDriver().CtxPopCurrent(&popped);
                         TheDriver().CtxPopCurrent(&popped);
                         TheDriver().CtxPushCurrent(b.get());
                         TheDriver().CtxPushCurrent(b.get());
                       }) != "",
             "an entry below the top");
}

BOOST_AUTO_TEST_CASE(a_primary_context_that_appears_or_goes_is_told) {
  {
    PrimaryContext kept;
    const std::string told =
        Told([&] { kept = PrimaryContext::Retain(Device::Borrow(0)).value(); });
    BOOST_TEST(absl::StrContains(
        told, "the primary context of device 0 was inactive (flags 0) and is active"));
    BOOST_TEST(absl::StrContains(Told([&] { static_cast<void>(kept.Release()); }),
                                 "was active (flags 0) and is inactive"));
  }
}

BOOST_AUTO_TEST_CASE(flags_that_change_are_told) {
  const OwnContext a;
  SetStack({a.get()});
  BOOST_TEST(absl::StrContains(Told([] {
                                 RAW(cuCtxSetFlags)
                                 (CU_CTX_SCHED_BLOCKING_SYNC);
                               }),
                               "the flags of the current context were"));
  SetStack({});
  const std::string told = Told([] {
    RAW(cuDevicePrimaryCtxSetFlags)
    (0, CU_CTX_SCHED_BLOCKING_SYNC);
  });
  BOOST_TEST(absl::StrContains(told, "(flags 0) and is inactive (flags 4)"));
  BOOST_TEST(RAW(cuDevicePrimaryCtxSetFlags)(0, 0) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(a_new_incarnation_at_the_same_handle_is_told) {
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0)).value();
  SetStack({primary.get()});
  const std::string told = Told([&] {
    RAW(cuDevicePrimaryCtxReset)(0);
    static_cast<void>(primary.Release());
    primary = PrimaryContext::Retain(Device::Borrow(0)).value();
  });
  BOOST_TEST(absl::StrContains(told, "the stack of contexts"));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_dead_entry_ends_the_walk_and_stays) {
  OwnContext mortal;
  const OwnContext a;
  SetStack({mortal.get(), a.get()});
  const CUcontext dead = mortal.get();
  const std::string told = Told([&] { TheDriver().CtxDestroy(mortal.release()); });
  BOOST_TEST(absl::StrContains(told, "on a destroyed context"));
  const StackProbe probe = StackProbe::Take();
  BOOST_TEST(probe.cut());
  BOOST_TEST(probe.stack().size() == 1U);
  BOOST_TEST(probe.Draw([](CUcontext) { return "A"; }) == "... [dead] [A]<");
  CUcontext popped = nullptr;
  BOOST_TEST(TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS);
  BOOST_TEST(TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS);
  BOOST_TEST(popped == dead);
}

BOOST_AUTO_TEST_SUITE_END()
