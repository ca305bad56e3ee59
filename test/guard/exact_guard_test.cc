// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the repair table does not cover of a guard that knows the whole stack.

#include "cuguest/exact_guard.h"

#include <type_traits>

#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(exact_guard)

namespace {

using cuguest::ContextGuard;
using cuguest::ExactGuard;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

static_assert(sizeof(ExactGuard) == 64);
static_assert(!std::is_copy_constructible_v<ExactGuard> &&
              !std::is_move_constructible_v<ExactGuard>);
static_assert(std::is_nothrow_destructible_v<ExactGuard>);
static_assert(!std::is_convertible_v<CUcontext, ExactGuard>);

}  // namespace

BOOST_AUTO_TEST_CASE(refuses_a_deeper_stack) {
  const OwnContext a;
  const OwnContext b;
  const Stack deepest(ExactGuard::kMaxDepth, a.get());
  SetStack(deepest);
  {
    const ExactGuard guard(b.get());
    BOOST_TEST(guard.ok());
  }
  BOOST_TEST((GetStack() == deepest));
  Stack deeper = deepest;
  deeper.push_back(a.get());
  SetStack(deeper);
  {
    const ExactGuard guard(b.get());
    BOOST_TEST(guard.result() == CUDA_ERROR_NOT_SUPPORTED);
  }
  BOOST_TEST((GetStack() == deeper));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(refuses_a_dead_entry) {
  OwnContext mortal;
  const OwnContext a;
  const OwnContext b;
  SetStack({mortal.get(), a.get()});
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  {
    const ExactGuard guard(b.get());
    BOOST_TEST(guard.result() == CUDA_ERROR_NOT_SUPPORTED);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto probe = cuguest::testing::StackProbe::Take();
  BOOST_TEST(probe.cut());
  // kElide, on the same stack, does not need to look below the top.
  {
    const ContextGuard guard(b.get());
    BOOST_TEST(guard.ok());
  }
  BOOST_TEST(cuguest::testing::StackProbe::Take().cut());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(reports_dead_entry_below) {
  const OwnContext x;
  OwnContext mortal;
  const OwnContext a;
  const OwnContext b;
  SetStack({x.get(), mortal.get(), a.get()});
  {
    const ExactGuard guard(b.get());
    BOOST_TEST(guard.ok());
    BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
  BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
  BOOST_TEST(GetStack() == (Stack{x.get(), a.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(pops_a_thousand_pushes) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  {
    const ExactGuard guard(b.get());
    for (int i = 0; i < 1000; ++i) TheDriver().CtxPushCurrent(i % 2 == 0 ? a.get() : b.get());
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
