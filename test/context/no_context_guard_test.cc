// SPDX-License-Identifier: Apache-2.0

#include "cuguest/no_context_guard.h"

#include <memory>
#include <optional>
#include <thread>

#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/primary_context.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(no_context_guard)

namespace {

using cuguest::IncidentKind;
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
    BOOST_TEST((incidents[0].kind == IncidentKind::kLeakedPush));
    BOOST_TEST((incidents[0].repair == cuguest::Repair::kRepaired));
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
  BOOST_TEST((incidents[0].kind == IncidentKind::kDestroyed));
  BOOST_TEST((incidents[0].repair == cuguest::Repair::kUnrepaired));
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
  BOOST_TEST(none.Restore() == CUDA_SUCCESS);
  BOOST_TEST(none.Restore() == CUDA_SUCCESS);
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
  BOOST_TEST((incidents[0].kind == IncidentKind::kDestroyed));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_primary_context_that_was_reset_meanwhile_is_put_back) {
  auto primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0)).value();
  const CUcontext handle = primary.get();
  SetStack({handle});
  {
    const NoContextGuard none;
    BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    BOOST_TEST(primary.Release().ok());
    primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0)).value();
  }
  BOOST_TEST(GetStack() == Stack{handle});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(on_another_thread_it_ends_nothing) {
  const OwnContext a;
  const OwnContext c;
  SetStack({a.get()});
  auto none = std::make_unique<NoContextGuard>();
  std::thread([&] {
    SetStack({c.get()});
    BOOST_TEST(none->Restore() == CUDA_ERROR_ILLEGAL_STATE);
    none.reset();
    BOOST_TEST(GetStack() == Stack{c.get()});
  }).join();
  BOOST_TEST(GetStack().empty());
  for (const auto& incident : TakeIncidents()) {
    BOOST_TEST((incident.kind == IncidentKind::kElsewhere));
  }
}

BOOST_AUTO_TEST_SUITE_END()
