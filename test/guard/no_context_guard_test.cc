// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/no_context_guard.h"

#include <memory>
#include <optional>
#include <thread>

#include "cuguest/context_guard.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(no_context_guard)

namespace {

using cuguest::Incident;
using cuguest::NoContextGuard;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_current_inside_and_everything_is_back_afterwards) {
  const OwnContext a;
  const OwnContext b;
  for (const Stack& caller :
       {Stack{}, Stack{a.get()}, Stack{a.get(), b.get()}, Stack{a.get(), a.get(), b.get()}}) {
    SetStack(caller);
    {
      const NoContextGuard none;
      BOOST_TEST(none.ok());
      BOOST_TEST(GetStack().empty());
    }
    BOOST_TEST(GetStack() == caller);
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(what_a_callee_leaves_is_dropped_and_reported) {
  const OwnContext a;
  const OwnContext c;
  for (const Stack& caller : {Stack{}, Stack{a.get()}}) {
    SetStack(caller);
    {
      const NoContextGuard none;
      TheDriver().CtxPushCurrent(c.get());
      TheDriver().CtxPushCurrent(a.get());
    }
    BOOST_TEST(GetStack() == caller);
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
    BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kRepaired));
    BOOST_TEST(incidents[0].found == a.get());
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(a_context_destroyed_meanwhile_is_not_put_back) {
  const OwnContext a;
  OwnContext mortal;
  SetStack({a.get(), mortal.get()});
  {
    const NoContextGuard none;
    TheDriver().CtxDestroy(mortal.release());
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
  BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(too_deep_a_stack_is_refused_and_left) {
  const OwnContext a;
  const Stack deep(NoContextGuard::kMaxDepth + 1, a.get());
  SetStack(deep);
  {
    const NoContextGuard none;
    BOOST_TEST(none.result() == CUDA_ERROR_NOT_SUPPORTED);
    BOOST_TEST((ToStatus(none).code() == absl::StatusCode::kUnimplemented));
  }
  BOOST_TEST((GetStack() == deep));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(restore_leaves_it_once) {
  const OwnContext a;
  SetStack({a.get()});
  NoContextGuard none;
  BOOST_TEST(none.Leave() == CUDA_SUCCESS);
  BOOST_TEST(none.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(
    a_stranger_with_the_handle_is_not_put_back,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  OwnContext mortal;
  const CUcontext handle = mortal.get();
  SetStack({a.get(), handle});
  std::optional<OwnContext> stranger;
  {
    const NoContextGuard none;
    TheDriver().CtxDestroy(mortal.release());
    stranger.emplace();
    BOOST_TEST_REQUIRE(stranger->get() == handle);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_primary_context_that_was_reset_meanwhile_is_put_back) {
  auto primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  const CUcontext handle = primary.get();
  SetStack({handle});
  {
    const NoContextGuard none;
    BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    BOOST_TEST(primary.Release().ok());
    primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  }
  BOOST_TEST(GetStack() == Stack{handle});
  SetStack({});
}

// Its own thread puts the stack back when it next begins or ends a scope.
BOOST_AUTO_TEST_CASE(own_thread_closes_it) {
  const OwnContext a;
  const OwnContext c;
  SetStack({a.get()});
  auto none = std::make_unique<NoContextGuard>(cuguest::Location{__FILE__, 4711});
  std::thread([&] {
    SetStack({c.get()});
    BOOST_TEST(none->Leave() == CUDA_ERROR_NOT_READY);
    none.reset();
    BOOST_TEST(GetStack() == Stack{c.get()});
    SetStack({});
  }).join();
  BOOST_TEST(GetStack().empty());
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
  BOOST_TEST(incidents[0].line == 4711);
  {
    const cuguest::ContextGuard next(c.get());
    BOOST_TEST(next.caller() == a.get());
    BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// What is inside it is where nothing was current.
BOOST_AUTO_TEST_CASE(ended_before_a_guard_inside_it) {
  const OwnContext a;
  const OwnContext b;
  for (const bool is_asked : {false, true}) {
    SetStack({a.get()});
    std::optional<NoContextGuard> none;
    none.emplace(cuguest::Location{__FILE__, 4711});
    cuguest::ContextGuard inner(b.get());
    if (is_asked) BOOST_TEST(none->Leave() == CUDA_ERROR_NOT_READY);
    none.reset();
    BOOST_TEST(GetStack() == Stack{b.get()});
    BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == (is_asked ? 0U : 1U));
    if (!is_asked) BOOST_TEST((incidents[0].kind == Incident::Kind::kOutOfTurn));
    if (!is_asked) BOOST_TEST(incidents[0].line == 4711);
    SetStack({});
  }
}

BOOST_AUTO_TEST_SUITE_END()
