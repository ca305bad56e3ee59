// SPDX-License-Identifier: Apache-2.0

#include "cuguest/host_scope.h"

#include "cuguest/driver.h"
#include "test/support/test.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::IncidentKind;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

constexpr GuardMode kModes[] = {GuardMode::kElide, GuardMode::kAlwaysPush, GuardMode::kExact};

}  // namespace

BOOST_AUTO_TEST_SUITE(host_scope)

BOOST_AUTO_TEST_CASE(the_host_finds_its_own_stack_and_the_guard_comes_back) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  for (const GuardMode mode : kModes) {
    for (const Stack& caller : {Stack{}, Stack{a.get()}, Stack{x.get(), a.get()}, Stack{b.get()}}) {
      SetStack(caller);
      ContextGuard guard(b.get(), mode);
      const Stack inside = GetStack();
      {
        const HostScope host(guard);
        BOOST_TEST(host.ok());
        BOOST_TEST(GetStack() == caller);
      }
      BOOST_TEST(guard.ok());
      BOOST_TEST(GetStack() == inside);
      BOOST_TEST(guard.Restore() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == caller);
    }
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(what_the_host_does_to_its_own_stack_is_its_right) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const GuardMode mode : kModes) {
    SetStack({a.get()});
    {
      ContextGuard guard(b.get(), mode);
      {
        const HostScope host(guard);
        TheDriver().CtxSetCurrent(c.get());
        TheDriver().CtxPushCurrent(b.get());
      }
      BOOST_TEST(guard.caller() == b.get());
      BOOST_TEST(guard.elided() == (mode == GuardMode::kElide));
    }
    BOOST_TEST(GetStack() == (Stack{c.get(), b.get()}));
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(a_fault_before_the_callback_is_repaired_for_the_host_and_reported) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  TheDriver().CtxPushCurrent(c.get());
  {
    const HostScope host(guard);
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == IncidentKind::kLeakedPush));
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(guard.Restore() == CUDA_SUCCESS);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_by_ref_does_not_come_back_into_a_context_the_host_destroyed) {
  const OwnContext a;
  OwnContext b;
  SetStack({a.get()});
  {
    ContextGuard guard(ContextRef::Borrow(b.get()));
    {
      const HostScope host(guard);
      TheDriver().CtxDestroy(b.release());
    }
    BOOST_TEST(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_that_is_not_inside_is_left_alone) {
  const OwnContext a;
  SetStack({a.get()});
  ContextGuard refused(static_cast<CUcontext>(nullptr));
  ContextGuard ended(a.get());
  BOOST_TEST(ended.Restore() == CUDA_SUCCESS);
  {
    const HostScope first(refused);
    const HostScope second(ended);
    BOOST_TEST(first.ok());
    BOOST_TEST(second.ok());
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(refused.result() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
