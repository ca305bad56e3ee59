// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/stack_probe.h"

#include <string>

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(stack_probe)

namespace {

using cudasim::Sim;
using cudasim::StackProbe;
using cudasim::UndisturbedScope;
using namespace cudasim_facts;

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

bool Contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

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

BOOST_AUTO_TEST_CASE(tells_the_device_of_each_entry, *cudasim_test::NeedsDevices(2)) {
  const OwnContext on_zero;
  const OwnContext on_one(1);
  SetStack({on_one.get(), on_zero.get(), on_one.get()});
  const StackProbe probe = StackProbe::Take();
  SetStack({});
  BOOST_TEST_REQUIRE(probe.stack().size() == 3U);
  BOOST_TEST(probe.stack()[0].device == 1);
  BOOST_TEST(probe.stack()[1].device == 0);
  BOOST_TEST(probe.stack()[2].device == 1);
}

BOOST_AUTO_TEST_CASE(an_undisturbed_scope_says_nothing) {
  const OwnContext a;
  SetStack({a.get()});
  BOOST_TEST(Told([&] {
               CUcontext popped = nullptr;
               RAW(cuCtxPushCurrent)(a.get());
               RAW(cuCtxPopCurrent)(&popped);
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
  const std::string pushed = told_from({a.get()}, [&] { RAW(cuCtxPushCurrent)(b.get()); });
  BOOST_TEST(Contains(pushed, "the stack of contexts"));
  BOOST_TEST(Contains(pushed, "stack_probe_test.cc:"));
  BOOST_TEST(told_from({a.get()}, [&] { RAW(cuCtxPopCurrent)(&popped); }) != "");
  BOOST_TEST(told_from({a.get()}, [&] { RAW(cuCtxSetCurrent)(b.get()); }) != "");
  BOOST_TEST(told_from({}, [&] { RAW(cuCtxPushCurrent)(b.get()); }) != "");
  BOOST_TEST(told_from({a.get(), b.get()},
                       [&] {
                         RAW(cuCtxPopCurrent)(&popped);
                         RAW(cuCtxPopCurrent)(&popped);
                         RAW(cuCtxPushCurrent)(b.get());
                         RAW(cuCtxPushCurrent)(b.get());
                       }) != "",
             "an entry below the top");
}

BOOST_AUTO_TEST_CASE(a_primary_context_that_appears_or_goes_is_told) {
  CUcontext primary = nullptr;
  const std::string told = Told([&] { OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0)); });
  BOOST_TEST(
      Contains(told, "the primary context of device 0 was inactive (flags 0) and is active"));
  BOOST_TEST(Contains(Told([] { OK(RAW(cuDevicePrimaryCtxRelease)(0)); }),
                      "was active (flags 0) and is inactive"));
}

BOOST_AUTO_TEST_CASE(flags_that_change_are_told) {
  const OwnContext a;
  SetStack({a.get()});
  BOOST_TEST(Contains(Told([] {
                        RAW(cuCtxSetFlags)
                        (CU_CTX_SCHED_BLOCKING_SYNC);
                      }),
                      "the flags of the current context were"));
  SetStack({});
  const std::string told = Told([] {
    RAW(cuDevicePrimaryCtxSetFlags)
    (0, CU_CTX_SCHED_BLOCKING_SYNC);
  });
  BOOST_TEST(Contains(told, "(flags 0) and is inactive (flags 4)"));
  BOOST_TEST(RAW(cuDevicePrimaryCtxSetFlags)(0, 0) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(a_new_incarnation_at_the_same_handle_is_told) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  const std::string told = Told([&] {
    OK(RAW(cuDevicePrimaryCtxReset)(0));
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  });
  BOOST_TEST(Contains(told, "the stack of contexts"));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(a_dead_entry_ends_the_walk_and_stays) {
  OwnContext mortal;
  const OwnContext a;
  SetStack({mortal.get(), a.get()});
  const CUcontext dead = mortal.get();
  const std::string told = Told([&] { RAW(cuCtxDestroy)(mortal.release()); });
  BOOST_TEST(Contains(told, "on a destroyed context"));
  const StackProbe probe = StackProbe::Take();
  BOOST_TEST(probe.cut());
  BOOST_TEST(probe.stack().size() == 1U);
  BOOST_TEST(probe.Draw([](CUcontext) { return "A"; }) == "... [dead] [A]<");
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  BOOST_TEST(popped == dead);
}

BOOST_AUTO_TEST_CASE(an_entry_costs_six_calls, *cudasim_test::OnlySim()) {
  const OwnContext a;
  const auto calls_with = [](const Entries& stack) {
    SetStack(stack);
    Sim::ResetCalls();
    static_cast<void>(StackProbe::Take());
    return Sim::TotalCalls();
  };
  const auto of_one = calls_with({a.get()});
  BOOST_TEST(calls_with({a.get(), a.get(), a.get()}) == of_one + 2 * 6);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
