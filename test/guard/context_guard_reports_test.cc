// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a guard reports of itself: that nobody asked whether it failed, and where it is written.

#include "cuguest/context_guard.h"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_guard_reports)

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest::Location;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_failed_guard_that_nobody_asked_is_reported) {
  { const ContextGuard guard(static_cast<CUcontext>(nullptr)); }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kUnasked));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(std::string(incidents[0].file) == __FILE__);
  for (const bool by_status : {false, true}) {
    const ContextGuard guard(static_cast<CUcontext>(nullptr));
    BOOST_TEST(!(by_status ? ToStatus(guard).ok() : guard.ok()));
  }
}

// The constructors' default location is where the standard library constructs the guard.
BOOST_AUTO_TEST_CASE(a_location_is_where_the_guard_is_written) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const auto incident_of = [&](auto make, auto end) {
    {
      const auto guard = make();
      BOOST_TEST(guard->ok());
      TheDriver().CtxPushCurrent(a.get());
      end();
    }
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    return incidents[0];
  };
  using Owned = std::unique_ptr<ContextGuard>;
  const auto owner_does = [] {};
  const auto given = incident_of(
      [&]() -> Owned {
        return std::make_unique<ContextGuard>(b.get(), GuardMode::kElide, Location::Here());
      },
      owner_does);
  BOOST_TEST(std::string(given.file) == __FILE__);
  BOOST_TEST(given.line == __LINE__ - 4);
  const ContextRef ref = ContextRef::Borrow(b.get());
  const auto by_ref = incident_of(
      [&]() -> Owned {
        return std::make_unique<ContextGuard>(ref, GuardMode::kElide, Location::Here());
      },
      owner_does);
  BOOST_TEST(by_ref.line == __LINE__ - 3);
  const auto forgotten =
      incident_of([&]() -> Owned { return std::make_unique<ContextGuard>(b.get()); }, owner_does);
  BOOST_TEST(absl::StrContains(forgotten.file, "without a Location"));
  BOOST_TEST(forgotten.line == 0);
  std::optional<ContextGuard> optional;
  const auto emplaced =
      incident_of([&] { return &optional.emplace(b.get(), GuardMode::kElide, Location::Here()); },
                  [&] { optional.reset(); });
  BOOST_TEST(emplaced.line == __LINE__ - 2);
  std::list<ContextGuard> list;
  const auto in_a_list =
      incident_of([&] { return &list.emplace_back(b.get(), GuardMode::kElide, Location::Here()); },
                  [&] { list.pop_back(); });
  BOOST_TEST(in_a_list.line == __LINE__ - 2);
  const auto moved = incident_of(
      [&] {
        static_cast<void>(optional.emplace());
        BOOST_TEST(optional->MoveTo(b.get()) == CUDA_SUCCESS);
        return &*optional;
      },
      [&] { optional.reset(); });
  BOOST_TEST(std::string(moved.file) == __FILE__);
  BOOST_TEST(moved.line == __LINE__ - 5);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
