// SPDX-License-Identifier: Apache-2.0
//
// The `Cost:` lines of the guards' headers, counted on the simulated driver; and that no
// guard allocates.

#include <cstdlib>
#include <new>
#include <utility>

#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/testing/sim.h"
#include "test/support/test.h"

namespace {

// Of this thread, while `g_count` is set.
thread_local bool g_count = false;
thread_local int g_allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  if (g_count) ++g_allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using cuguest::AcquiredGuard;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::NoContextGuard;
using cuguest::testing::Sim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

// The driver calls of `work`, which must allocate nothing outside the simulation.
template <typename Work>
std::uint64_t CallsOf(Work work) {
  work();  // resolves the table, and grows the simulation's stack once and for all
  Sim::ResetCalls();
  g_allocations = 0;
  g_count = true;
  work();
  g_count = false;
  BOOST_TEST(g_allocations == 0);
  return Sim::TotalCalls();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(guard_cost, *cuguest_test::OnlySim())

BOOST_AUTO_TEST_CASE(an_elided_guard_is_two_queries) {
  const OwnContext a;
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(a.get()); }) == 2U);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 2U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_switched_guard_is_a_query_a_push_and_a_pop) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(b.get()); }) == 3U);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
  BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
  BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 1U);
  SetStack({});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(b.get()); }) == 3U, "on an empty stack");
}

const char* IdCall() {
  return cuguest_test::HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion";
}

BOOST_AUTO_TEST_CASE(a_ref_that_switches_costs_one_query_more) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(ref); }) == 4U);
  BOOST_TEST(Sim::Calls(IdCall()) == 1U);
}

// Without ids the current context's cannot be asked for.
BOOST_AUTO_TEST_CASE(a_ref_that_is_elided_again_is_two_queries) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(ref); }) ==
             (cuguest_test::HasDriver(12000) ? 2U : 3U));
  BOOST_TEST(Sim::Calls(IdCall()) == 1U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_ref_guard_that_finds_another_context_than_the_last_one_costs_one_query_more,
                     *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref = ContextRef::Borrow(a.get());
  const auto enter = [&] { const ContextGuard guard(ref); };
  SetStack({a.get()});
  enter();
  SetStack({b.get()});
  Sim::ResetCalls();
  enter();
  BOOST_TEST(Sim::TotalCalls() == 5U, "switches after one that was elided");
  SetStack({a.get()});
  Sim::ResetCalls();
  enter();
  BOOST_TEST(Sim::TotalCalls() == 3U, "elided after one that switched");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(always_push_is_four_calls) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(a.get(), GuardMode::kAlwaysPush); }) == 4U);
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(b.get(), GuardMode::kAlwaysPush); }) == 4U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(exact_grows_with_the_stack) {
  const OwnContext a;
  const auto exact = [&] { const ContextGuard guard(a.get(), GuardMode::kExact); };
  const std::uint64_t empty = CallsOf(exact);
  SetStack({a.get()});
  const std::uint64_t one = CallsOf(exact);
  SetStack({a.get(), a.get()});
  BOOST_TEST(CallsOf(exact) - one == one - empty);
  BOOST_TEST(one - empty <= 10U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_of_a_device_is_two_queries_where_its_context_was_seen,
                     *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext a;
  const OwnContext b;
  const auto enter = [] { const AcquiredGuard guard(Device::Borrow(0)); };
  SetStack({a.get()});
  BOOST_TEST(CallsOf(enter) == 2U);
  BOOST_TEST(Sim::Calls("cuCtxGetId") == 1U);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
  SetStack({b.get()});
  Sim::ResetCalls();
  enter();
  BOOST_TEST(Sim::TotalCalls() == 4U, "of another context than the last one's");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(reassert_is_one_query) {
  const OwnContext a;
  SetStack({a.get()});
  ContextGuard guard(a.get());
  BOOST_TEST(CallsOf([&] { static_cast<void>(guard.Reassert()); }) == 1U);
  static_cast<void>(guard.Restore());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_empty_guard_calls_nothing) {
  BOOST_TEST(CallsOf([] {
               ContextGuard guard;
               static_cast<void>(guard.Restore());
               static_cast<void>(guard.Reassert());
             }) == 0U);
}

// The rows of Note [Moving to another context], without the ends of the scopes.
BOOST_AUTO_TEST_CASE(a_move_is_a_query_and_a_set) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const ContextRef to_b = ContextRef::Borrow(b.get());
  SetStack({a.get()});
  const auto calls_of = [](ContextGuard& guard, auto to) {
    Sim::ResetCalls();
    BOOST_TEST(guard.MoveTo(to) == CUDA_SUCCESS);
    return Sim::TotalCalls();
  };
  const bool has_ids = cuguest_test::HasDriver(12000);
  {
    ContextGuard guard;
    BOOST_TEST(calls_of(guard, b.get()) == 2U, "enters");
    BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
    BOOST_TEST(calls_of(guard, b.get()) == 1U, "is there");
    BOOST_TEST(calls_of(guard, to_b) == (has_ids ? 1U : 2U), "is there, by reference");
    BOOST_TEST(calls_of(guard, c.get()) == 2U, "replaces its entry");
    BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
    BOOST_TEST(Sim::Calls("cuCtxSetCurrent") == 1U);
    BOOST_TEST(calls_of(guard, to_b) == 3U, "replaces it, by reference");
    BOOST_TEST(Sim::Calls("cuCtxSetCurrent") == 1U);
    BOOST_TEST(Sim::Calls(IdCall()) == 1U);
    BOOST_TEST(calls_of(guard, a.get()) == 2U, "back to the caller's");
    BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 1U);
    BOOST_TEST(guard.elided());
    BOOST_TEST(calls_of(guard, a.get()) == 1U, "is there, elided");
    BOOST_TEST(calls_of(guard, c.get()) == 2U, "on from the caller's");
    BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
    BOOST_TEST(calls_of(guard, ContextRef::Borrow(a.get())) == (has_ids ? 3U : 4U),
               "back to the caller's, by reference");
  }
  SetStack({});
  const auto loop = [&] {
    ContextGuard guard;
    for (const CUcontext context : {b.get(), b.get(), c.get(), b.get()}) {
      static_cast<void>(guard.MoveTo(context));
    }
  };
  BOOST_TEST(CallsOf(loop) == 8U);
  BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
  BOOST_TEST(Sim::Calls("cuCtxSetCurrent") == 2U);
}

BOOST_AUTO_TEST_CASE(a_scope_costs_what_a_guard_does) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const auto enter_and_leave = [](CUcontext context, GuardMode mode) {
    ContextScope scope;
    static_cast<void>(scope.Enter(context, mode));
    ContextScope moved(std::move(scope));
    static_cast<void>(moved.Leave());
  };
  BOOST_TEST(CallsOf([&] { enter_and_leave(a.get(), GuardMode::kElide); }) == 2U);
  BOOST_TEST(CallsOf([&] { enter_and_leave(b.get(), GuardMode::kElide); }) == 3U);
  BOOST_TEST(CallsOf([&] { enter_and_leave(a.get(), GuardMode::kAlwaysPush); }) == 4U);
  BOOST_TEST(CallsOf([] { const ContextScope never_entered; }) == 0U);
  SetStack({});
}

// And finding out whether the context goes on; the first time for a raw handle, which it was.
BOOST_AUTO_TEST_CASE(a_host_scope_is_leaving_and_entering) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard elided(a.get());
  BOOST_TEST(CallsOf([&] { const HostScope host(elided); }) ==
             (cuguest_test::HasDriver(12000) ? 2U : 3U));
  static_cast<void>(elided.Restore());
  ContextGuard pushed(b.get());
  BOOST_TEST(CallsOf([&] { const HostScope host(pushed); }) == 4U);
  static_cast<void>(pushed.Restore());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(no_context_on_an_empty_stack_is_two_queries_and_grows_with_the_stack) {
  BOOST_TEST(CallsOf([] { const NoContextGuard none; }) == 2U);
  const OwnContext a;
  SetStack({a.get()});
  const std::uint64_t one = CallsOf([] { const NoContextGuard none; });
  SetStack({a.get(), a.get()});
  BOOST_TEST(CallsOf([] { const NoContextGuard none; }) - one == 5U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_refused_guard_calls_nothing) {
  BOOST_TEST(CallsOf([] {
               const ContextGuard guard(static_cast<CUcontext>(nullptr));
               static_cast<void>(guard.ok());
             }) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
