// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PerContext: the driver calls it makes, and any of them failing.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuguest/status.h"
#include "test/cache/per_context.h"

BOOST_AUTO_TEST_SUITE(per_context_calls, *cuguest_test::OnlySim())

using namespace per_context_test;

BOOST_AUTO_TEST_CASE(the_calls_of_the_header) {
  Ledger ledger;
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  Cache cache;
  const auto calls = [](const auto& work) {
    Sim::ResetCalls();
    work();
    return Sim::TotalCalls();
  };
  const auto nothing = [](const ContextRef&) -> absl::StatusOr<Worker> {
    return absl::CancelledError();
  };
  {
    const PrimaryContext primary = PrimaryContext::Retain(kFirst);
    BOOST_TEST(calls([&] { BOOST_TEST(!cache.GetOrMake(ref, nothing).ok()); }) == 6U);
    BOOST_TEST(cache.GetOrMake(primary.get(), Maker(&ledger)).ok());
    BOOST_TEST(cache.Forget(primary.context()));
  }
  // Nor is any other context asked for.
  std::vector<OwnContext> others(40);
  for (const OwnContext& other : others) {
    BOOST_TEST(cache.GetOrMake(other.get(), Maker(&ledger)).ok());
  }
  BOOST_TEST(calls([&] { BOOST_TEST(!cache.GetOrMake(ref, nothing).ok()); }) == 6U);
  BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
  const OwnContext last;
  BOOST_TEST(calls([&] { BOOST_TEST(!cache.GetOrMake(last.get(), nothing).ok()); }) == 7U);
  BOOST_TEST(calls([&] { cache.DropDead(); }) == 41U);
  for (const OwnContext& other : others) cache.Forget(ContextRef::Borrow(other.get()));
  BOOST_TEST(calls([&] { BOOST_TEST(cache.GetOrMake(ref, nothing).ok()); }) == 0U);
  BOOST_TEST(calls([&] { BOOST_TEST(cache.GetOrMake(a.get(), nothing).ok()); }) == 1U);
  BOOST_TEST(calls([&] { BOOST_TEST(static_cast<bool>(cache.Find(ref))); }) == 0U);
  BOOST_TEST(calls([&] { BOOST_TEST(static_cast<bool>(cache.Find(a.get()))); }) == 1U);
  BOOST_TEST(Sim::Calls(cuguest_test::HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion") ==
             1U);
  BOOST_TEST(calls([&] { cache.DropDead(); }) == 1U);
  SetStack({a.get()});
  BOOST_TEST(calls([&] { cache.DropDead(); }) == 2U);
  SetStack({});
}

// Each call that making a value needs, failing: a status or a value, and nothing between.
BOOST_AUTO_TEST_CASE(any_call_of_making_may_fail) {
  const OwnContext x;
  const OwnContext a;
  const PrimaryContext active = PrimaryContext::Retain(kFirst);
  const auto before = Sim::Live();
  for (const Stack& caller : {Stack{}, Stack{x.get()}, Stack{a.get()}}) {
    for (const char* entry :
         {"cuCtxGetId", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuStreamCreate",
          "cuCtxGetDevice", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain"}) {
      for (unsigned nth = 1; nth <= 6; ++nth) {
        BOOST_TEST_CONTEXT(entry << " fails at call " << nth << ", depth " << caller.size()) {
          Ledger ledger;
          SetStack(caller);
          {
            Cache cache;
            Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM);
            const bool is_made = cache.GetOrMake(a.get(), Maker(&ledger)).ok();
            Sim::ClearFaults();
            TakeIncidents();
            BOOST_TEST(GetStack() == caller);
            BOOST_TEST(cache.size() == (is_made ? 1U : 0U));
            BOOST_TEST(ledger.alive() == (is_made ? 1 : 0));
            BOOST_TEST(cache.GetOrMake(a.get(), Maker(&ledger)).ok());
            BOOST_TEST(ledger.made == 1);
            BOOST_TEST(cache.ForgetAll() == 1U);
          }
          BOOST_TEST(ledger.destroyed == 1);
          BOOST_TEST((Sim::Live() == before));
        }
      }
    }
  }
  SetStack({});
}

// Where the context cannot be entered to destroy a value, it is given up: host memory is
// freed, and the stack is as it was.
BOOST_AUTO_TEST_CASE(any_call_of_dropping_may_fail) {
  const OwnContext x;
  for (const char* entry :
       {"cuCtxGetId", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"}) {
    for (unsigned nth = 1; nth <= 4; ++nth) {
      BOOST_TEST_CONTEXT(entry << " fails at call " << nth) {
        Ledger ledger;
        const OwnContext a;
        const ContextRef ref = ContextRef::Borrow(a.get());
        Cache cache;
        BOOST_TEST(cache.GetOrMake(ref, Maker(&ledger)).ok());
        SetStack({x.get()});
        Sim::FailCall(entry, nth, CUDA_ERROR_OPERATING_SYSTEM);
        BOOST_TEST(cache.Forget(ref));
        Sim::ClearFaults();
        TakeIncidents();
        BOOST_TEST(GetStack() == Stack{x.get()});
        BOOST_TEST(ledger.alive() == 0);
        BOOST_TEST(cache.size() == 0U);
        SetStack({});
      }
    }
  }
}

// Between the guard and the lock the primary is reset and another thread makes the value of
// the new incarnation: the old one must not pass for the present one.
BOOST_AUTO_TEST_CASE(
    a_reset_before_the_value_is_made,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  const ContextRef old_life = primary.context();
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST(primary.Release().ok());
  primary = PrimaryContext::Retain(kFirst);
  using Table = cuguest::internal::PerContextTable;
  constexpr Table::Type kNumber = {4, 4, [](const Table::Type&, void*, bool) {}};
  Table table(kNumber);
  SetStack({primary.get()});
  {
    const ContextGuard guard(primary.get());
    Table::Making making(&table, primary.context(), guard.result());
    BOOST_TEST(making.error().ok());
    BOOST_TEST(making.Publish().ok());
    Table::Unpin(making.held().stripe);
  }
  {
    const ContextGuard guard(primary.get());
    const Table::Making making(&table, old_life, guard.result());
    BOOST_TEST(making.error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  BOOST_TEST(table.size() == 1U);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
