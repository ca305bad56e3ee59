// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a guard reports of itself: that nobody asked whether it failed, and where it is written.

#include "cuguest/context_guard.h"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "cuguest/capture.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/shared_context.h"
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

// A library's own way in.
std::unique_ptr<ContextGuard> Enter(CUcontext context, Location where = Location::Here()) {
  return std::make_unique<ContextGuard>(context, GuardMode::kElide, where);
}

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

// So are those of the other kinds that take no context.
BOOST_AUTO_TEST_CASE(every_failed_scope_that_nobody_asked_is_reported) {
  const auto reported = [](const char* what, auto make, CUresult code) {
    make();
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U, what);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kUnasked), what);
    BOOST_TEST(incidents[0].result == code, what);
    BOOST_TEST(std::string(incidents[0].file) == __FILE__, what);
  };
  constexpr auto kNoMode = static_cast<CUstreamCaptureMode>(77);
  reported(
      "CaptureModeGuard", [] { const cuguest::CaptureModeGuard guard(kNoMode); },
      CUDA_ERROR_INVALID_VALUE);
  reported(
      "ExactGuard", [] { const cuguest::ExactGuard guard(static_cast<CUcontext>(nullptr)); },
      CUDA_ERROR_INVALID_CONTEXT);
  reported(
      "ContextGuard of a ref", [] { const ContextGuard guard{ContextRef()}; },
      CUDA_ERROR_INVALID_CONTEXT);
  {
    const cuguest::CaptureModeGuard guard(kNoMode);
    BOOST_TEST(!guard.ok());
  }
  BOOST_TEST(TakeIncidents().empty());
}

// What has a context() is taken where a ContextRef is.
BOOST_AUTO_TEST_CASE(an_object_with_a_context_is_taken) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  const cuguest::Stream stream = cuguest::Stream::Create(ref).value();
  const cuguest::Stream second = cuguest::Stream::Create(stream).value();
  BOOST_TEST((second.context() == ref));
  const auto buffer = cuguest::DeviceBuffer<int>::Allocate(stream, 1).value();
  for (const ContextRef& taken :
       {ContextRef(stream), ContextRef(buffer), ContextRef(second.ref())}) {
    BOOST_TEST((taken == ref));
  }
  const ContextGuard guard(buffer);
  BOOST_TEST(guard.get() == a.get());
  static_assert(!std::is_constructible_v<ContextRef, cuguest::Stream>,
                "a temporary may release it");
  static_assert(!std::is_constructible_v<ContextGuard, cuguest::SharedContext>);
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
  const auto by_helper = incident_of([&] { return Enter(b.get()); }, owner_does);
  BOOST_TEST(std::string(by_helper.file) == __FILE__);
  BOOST_TEST(by_helper.line == __LINE__ - 2);
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
