// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A HostScope inside capture guards: the host finds its own stream-capture mode, and the library
// finds the guards' again.

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/location.h"
#include "lib/guard/relaxed_scope.h"
#include "test/support/capture.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(host_scope_capture)

namespace {

using cudasim::Sim;
using cuguest::CaptureModeGuard;
using cuguest::ContextGuard;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::kGlobal;
using cuguest_test::kRelaxed;
using cuguest_test::kThreadLocal;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetMode;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using cuguest_test::ThreadMode;
using Stack = std::vector<CUcontext>;

// Every case begins and ends in mode GLOBAL, with no record in use.
struct Clean {
  Clean() { BOOST_TEST(ThreadMode() == kGlobal); }
  ~Clean() {
    BOOST_TEST(ThreadMode() == kGlobal);
    BOOST_TEST(cuguest::internal::t_this_thread.depth == 0U);
    BOOST_TEST(cuguest::internal::t_this_thread.capture_modes == 0U);
    SetStack({});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(host_finds_its_own_mode, Clean) {
  const OwnContext a;
  const OwnContext b;
  for (const bool mode_is_first : {false, true}) {
    for (const CUstreamCaptureMode hosts : {kGlobal, kThreadLocal, kRelaxed}) {
      SetMode(hosts);
      SetStack({a.get()});
      {
        std::optional<CaptureModeGuard> outer;
        if (mode_is_first) outer.emplace(kRelaxed, cuguest::Location::Here());
        const ContextGuard guard(b.get());
        if (!mode_is_first) outer.emplace(kRelaxed, cuguest::Location::Here());
        const CaptureModeGuard inner(kThreadLocal);
        {
          HostScope host(guard);
          BOOST_TEST(host.ok());
          BOOST_TEST(ThreadMode() == hosts);
          BOOST_TEST(GetStack() == Stack{a.get()});
          BOOST_TEST(outer->ok());
          BOOST_TEST(host.Leave() == CUDA_SUCCESS);
          BOOST_TEST(ThreadMode() == kThreadLocal);
        }
        BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
        BOOST_TEST(inner.ok());
        BOOST_TEST(inner.caller() == kRelaxed);
      }
      BOOST_TEST(ThreadMode() == hosts);
      SetMode(kGlobal);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(mode_alone_is_given_back, Clean) {
  const cuguest::internal::RelaxedScope relaxed;
  BOOST_TEST(ThreadMode() == kRelaxed);
  for (int i = 0; i < 2; ++i) {
    const HostScope host;
    BOOST_TEST(ThreadMode() == kGlobal);
  }
  BOOST_TEST(ThreadMode() == kRelaxed);
}

BOOST_FIXTURE_TEST_CASE(host_changes_its_mode, Clean) {
  {
    const CaptureModeGuard outer(kRelaxed);
    CaptureModeGuard inner(kThreadLocal);
    {
      const HostScope host;
      BOOST_TEST(SetMode(kThreadLocal) == kGlobal);
    }
    BOOST_TEST(ThreadMode() == kThreadLocal);
    BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kRelaxed);
  }
  BOOST_TEST(SetMode(kGlobal) == kThreadLocal);
}

BOOST_FIXTURE_TEST_CASE(callee_left_another_mode_before, Clean) {
  {
    const CaptureModeGuard outer(kThreadLocal);
    const CaptureModeGuard inner(kRelaxed, cuguest::Location{"inner", 7});
    SetMode(kThreadLocal);
    {
      const HostScope host;
      BOOST_TEST(host.ok());
      BOOST_TEST(ThreadMode() == kGlobal);
      const auto incidents = TakeIncidents();
      BOOST_TEST_REQUIRE(incidents.size() == 1U);
      BOOST_TEST((incidents[0].kind == Incident::Kind::kCaptureMode));
      BOOST_TEST((incidents[0].repair == Incident::Repair::kRepaired));
      BOOST_TEST(incidents[0].line == 7);
    }
    BOOST_TEST(ThreadMode() == kRelaxed);
  }
}

BOOST_FIXTURE_TEST_CASE(host_scopes_with_modes_nest, Clean) {
  const CaptureModeGuard outer(kRelaxed);
  {
    const HostScope host;
    SetMode(kThreadLocal);
    {
      const CaptureModeGuard again(kRelaxed);
      {
        const HostScope deeper;
        BOOST_TEST(ThreadMode() == kThreadLocal);
      }
      BOOST_TEST(ThreadMode() == kRelaxed);
      {
        const CaptureModeGuard innermost(kGlobal);
        const HostScope deeper;
        const HostScope with_nothing;
        BOOST_TEST(ThreadMode() == kThreadLocal);
      }
    }
    BOOST_TEST(SetMode(kGlobal) == kThreadLocal);
  }
  BOOST_TEST(ThreadMode() == kRelaxed);
}

BOOST_FIXTURE_TEST_CASE(mode_guards_end_inside, Clean) {
  for (const unsigned ended : {1U, 2U, 4U, 3U, 6U, 5U, 7U}) {
    for (const bool elsewhere : {false, true}) {
      const CUstreamCaptureMode modes[] = {kRelaxed, kThreadLocal, kRelaxed};
      std::optional<CaptureModeGuard> guards[3];
      for (int i = 0; i < 3; ++i) guards[i].emplace(modes[i], cuguest::Location::Here());
      {
        const HostScope host;
        for (int i = 0; i < 3; ++i) {
          if ((ended >> i & 1U) == 0) continue;
          const auto leave = [&] {
            BOOST_TEST(guards[i]->Leave() == (elsewhere ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS));
          };
          if (elsewhere) {
            std::thread(leave).join();
          } else {
            leave();
          }
        }
        BOOST_TEST(ThreadMode() == kGlobal);
        if (elsewhere) {
          const CaptureModeGuard reads_mail(kThreadLocal);
        }
        BOOST_TEST(ThreadMode() == kGlobal);
      }
      for (int i = 3; i-- > 0;) {
        if ((ended >> i & 1U) != 0) continue;
        BOOST_TEST(ThreadMode() == modes[i]);
        BOOST_TEST(guards[i]->Leave() == CUDA_SUCCESS);
      }
      BOOST_TEST(ThreadMode() == kGlobal);
      for (const Incident& incident : TakeIncidents()) {
        BOOST_TEST((incident.kind == Incident::Kind::kElsewhere));
      }
    }
  }
}

// It would be closed after the inner one, which ends outside.
BOOST_FIXTURE_TEST_CASE(ended_out_of_turn_before, Clean) {
  CaptureModeGuard outer(kThreadLocal);
  CaptureModeGuard inner(kRelaxed);
  BOOST_TEST(outer.Leave() == CUDA_ERROR_NOT_READY);
  {
    const HostScope host;
    BOOST_TEST(ThreadMode() == kGlobal);
  }
  BOOST_TEST(ThreadMode() == kRelaxed);
  BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
  BOOST_TEST(ThreadMode() == kGlobal);
}

// The host's guard has the thread's mode until it ends.
BOOST_FIXTURE_TEST_CASE(ended_before_the_hosts_mode_guard, Clean) {
  const OwnContext a;
  for (const bool waits : {false, true}) {
    CaptureModeGuard outer(kRelaxed);
    CaptureModeGuard inner(kThreadLocal);
    HostScope host;
    CaptureModeGuard hosts(kRelaxed);
    std::optional<ContextGuard> guard;
    if (waits) guard.emplace(a.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    BOOST_TEST(host.Leave() == (waits ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS));
    BOOST_TEST(inner.result() == (waits ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS));
    guard.reset();
    BOOST_TEST(ThreadMode() == kRelaxed);
    BOOST_TEST(inner.result() == CUDA_SUCCESS);
    BOOST_TEST(hosts.Leave() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kThreadLocal);
    BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kRelaxed);
    BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
    BOOST_TEST(ThreadMode() == kGlobal);
  }
}

BOOST_FIXTURE_TEST_CASE(ended_elsewhere_the_modes_stay_out, Clean) {
  const auto begin_another = [] { const CaptureModeGuard next(kThreadLocal); };
  CaptureModeGuard guard(kRelaxed);
  HostScope host;
  std::thread([&] { BOOST_TEST(host.Leave() == CUDA_ERROR_NOT_READY); }).join();
  begin_another();
  BOOST_TEST(ThreadMode() == kGlobal);
  BOOST_TEST(guard.result() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(ThreadMode() == kGlobal);
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
}

// A callback without a HostScope calls the library: that is called in the mode of the first guard.
BOOST_FIXTURE_TEST_CASE(mode_stops_at_somebody_elses_entry, Clean) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  {
    const CaptureModeGuard first(kThreadLocal);
    const ContextGuard guard(b.get());
    TheDriver().CtxPushCurrent(a.get());
    {
      const CaptureModeGuard again(kRelaxed);
      const ContextGuard inner(b.get());
      const HostScope host;
      BOOST_TEST(host.ok());
      BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), a.get()}));
      BOOST_TEST(ThreadMode() == kThreadLocal);
    }
    BOOST_TEST(ThreadMode() == kThreadLocal);
    TheDriver().CtxPopCurrent(nullptr);
  }
}

BOOST_FIXTURE_TEST_CASE(driver_refuses_the_hosts_mode, Clean, *OnlySim()) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  {
    const ContextGuard guard(b.get());
    const CaptureModeGuard relaxed;
    Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_OPERATING_SYSTEM);
    {
      const HostScope host(guard);
      BOOST_TEST(host.result() == CUDA_ERROR_OPERATING_SYSTEM);
      BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
      BOOST_TEST(ThreadMode() == kRelaxed);
    }
    BOOST_TEST(guard.ok());
    BOOST_TEST(relaxed.ok());
    BOOST_TEST(ThreadMode() == kRelaxed);
  }
}

BOOST_FIXTURE_TEST_CASE(driver_refuses_to_come_back, Clean, *OnlySim()) {
  const OwnContext a;
  {
    const ContextGuard guard(a.get());
    const CaptureModeGuard outer(kThreadLocal);
    CaptureModeGuard relaxed;
    {
      const HostScope host(guard);
      Sim::FailCall("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_OPERATING_SYSTEM);
    }
    BOOST_TEST(guard.ok());
    BOOST_TEST(relaxed.result() == CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST(outer.result() == CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST(ThreadMode() == kGlobal);
    BOOST_TEST(relaxed.Leave() == CUDA_SUCCESS);
    { const CaptureModeGuard next(kRelaxed); }
    { const HostScope another; }
    BOOST_TEST(ThreadMode() == kGlobal);
  }
}

BOOST_FIXTURE_TEST_CASE(refused_host_scope_keeps_the_mode, Clean) {
  const OwnContext a;
  const CaptureModeGuard relaxed;
  std::thread([&] {
    const ContextGuard elsewhere(a.get());
    std::thread([&] {
      const CaptureModeGuard own(kThreadLocal);
      const HostScope host(elsewhere);
      BOOST_TEST(host.result() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(ThreadMode() == kThreadLocal);
    }).join();
  }).join();
}

BOOST_FIXTURE_TEST_CASE(each_end_costs_one_call, Clean, *OnlySim()) {
  const auto calls_of_a_host_scope = [] {
    Sim::ResetCalls();
    { const HostScope host; }
    return Sim::TotalCalls();
  };
  BOOST_TEST(calls_of_a_host_scope() == 0U);
  const CaptureModeGuard outer(kThreadLocal);
  const CaptureModeGuard inner(kRelaxed);
  BOOST_TEST(calls_of_a_host_scope() == 2U);
  BOOST_TEST(Sim::Calls("cuThreadExchangeStreamCaptureMode") == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
