// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A guard gives its context as a reference.

#include <optional>
#include <thread>
#include <type_traits>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/relaxed.h"
#include "cuguest/status.h"
#include "test/guard/guard_kinds.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(guard_context)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::ExactGuard;
using cuguest::HostScope;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::TheDriver;
using guard_kinds::EachKind;
using guard_kinds::GuardOf;

// Another guard of the same context, but no copy.
static_assert(!std::is_copy_constructible_v<ContextGuard>);
static_assert(!std::is_constructible_v<ContextGuard, ContextGuard&>);
static_assert(!std::is_constructible_v<ContextGuard, ContextGuard>);
static_assert(!std::is_constructible_v<ExactGuard, ExactGuard&>);
static_assert(!std::is_constructible_v<ContextScope, ContextScope&>);
static_assert(std::is_constructible_v<ContextGuard, const ExactGuard&>);

}  // namespace

BOOST_AUTO_TEST_CASE(guard_names_its_context) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    const Guard by_handle(a.get());
    BOOST_TEST((by_handle.context() == ref));
    BOOST_TEST((by_handle.context() == ref));
    const Guard by_ref(ref);
    BOOST_TEST((by_ref.context() == ref));
  });
  ContextScope scope;
  BOOST_TEST(!scope.context().ok());
  BOOST_TEST(scope.Enter(a.get()) == CUDA_SUCCESS);
  BOOST_TEST((scope.context() == ref));
  const cuguest::Relaxed<ContextGuard> relaxed(a.get());
  BOOST_TEST((relaxed.context() == ref));
}

BOOST_AUTO_TEST_CASE(driver_is_asked_once, *OnlySim()) {
  const OwnContext a;
  const OwnContext b;
  const auto calls_of = [](const ContextGuard& guard) {
    Sim::ResetCalls();
    BOOST_TEST(guard.context().ok());
    return Sim::TotalCalls();
  };
  {
    const ContextGuard by_ref(ContextRef::Borrow(a.get()));
    BOOST_TEST(calls_of(by_ref) == 0U);
  }
  ContextGuard guard(a.get());
  BOOST_TEST(calls_of(guard) == 1U);
  BOOST_TEST(calls_of(guard) == 0U);
  Sim::ResetCalls();
  BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
  BOOST_TEST(Sim::TotalCalls() == 2U);  // as one by reference
  BOOST_TEST(guard.MoveTo(b.get()) == CUDA_SUCCESS);
  BOOST_TEST(calls_of(guard) == 1U);
  BOOST_TEST(guard.context().get() == b.get());
}

BOOST_AUTO_TEST_CASE(guard_outside_names_none) {
  const OwnContext a;
  const auto result_of = [](const ContextGuard& guard) {
    const ContextRef ref = guard.context();
    BOOST_TEST(ref.get() == nullptr);
    return ref.result();
  };
  ContextGuard guard;
  BOOST_TEST(result_of(guard) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(guard.MoveTo(a.get()) == CUDA_SUCCESS);
  BOOST_TEST(guard.context().ok());
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(result_of(guard) == CUDA_ERROR_INVALID_CONTEXT);
  OwnContext gone;
  const ContextRef over = ContextRef::Borrow(gone.get());
  TheDriver().CtxDestroy(gone.release());
  const ContextGuard refused(over);
  BOOST_TEST(result_of(refused) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(!refused.ok());
}

// Where it was, until it is somewhere else.
BOOST_AUTO_TEST_CASE(refused_move_keeps_the_name) {
  const OwnContext a;
  ContextGuard guard(a.get());
  BOOST_TEST(guard.MoveTo(ContextRef()) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST((guard.context() == ContextRef::Borrow(a.get())));
}

BOOST_AUTO_TEST_CASE(host_scope_keeps_the_name) {
  const OwnContext a;
  OwnContext mortal;
  const ContextRef ref = ContextRef::Borrow(mortal.get());
  const ContextGuard other(a.get());
  const ContextGuard guard(mortal.get());
  {
    const HostScope host(guard);
    BOOST_TEST((guard.context() == ref));
    TheDriver().CtxDestroy(mortal.release());
  }
  BOOST_TEST(guard.context().result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(guard.context().get() == nullptr);
  BOOST_TEST((other.context() == ContextRef::Borrow(a.get())));
}

BOOST_AUTO_TEST_CASE(context_that_was_reset_inside) {
  const auto primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  {
    const ContextGuard guard(primary.get());
    std::thread([] { RAW(cuDevicePrimaryCtxReset)(0); }).join();
    BOOST_TEST(guard.context().result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  static_cast<void>(cuguest_test::TakeIncidents());
}

BOOST_AUTO_TEST_CASE(takes_a_guard_for_a_reference) {
  const OwnContext a;
  cuguest::PerContext<int> cache;
  const ContextGuard guard(a.get());
  const auto made = cache.GetOrMake(
      guard, [](const ContextRef& context) -> absl::StatusOr<int> { return context.ok() ? 7 : 0; });
  BOOST_TEST_REQUIRE(made.ok());
  BOOST_TEST(**made == 7);
  ContextGuard again(guard.context());
  BOOST_TEST(again.elided());
  const ExactGuard exact(guard);
  BOOST_TEST(exact.get() == a.get());
  BOOST_TEST(cache.Forget(exact));
}

BOOST_AUTO_TEST_SUITE_END()
