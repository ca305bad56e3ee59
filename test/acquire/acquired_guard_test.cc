// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/acquired_guard.h"

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(acquired_guard)

namespace {

using cuguest::Acquired;
using cuguest::AcquiredGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::IfInactive;
using cuguest::Incident;
using cuguest::Location;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

// A temporary gives its reference back at the semicolon, so that what it names must not be taken
// from it: neither by `.value()` nor by `*` nor by `->`.
template <typename Acquired, typename = void>
struct NamesItsContext : std::false_type {};
template <typename Acquired>
struct NamesItsContext<Acquired, std::void_t<decltype(std::declval<Acquired>().context())>>
    : std::true_type {};
static_assert(NamesItsContext<Acquired&>::value);
static_assert(NamesItsContext<const Acquired&>::value);
static_assert(!NamesItsContext<Acquired>::value);
static_assert(!NamesItsContext<const Acquired>::value);

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_inside_what_was_acquired) {
  const OwnContext a;
  const OwnContext b;
  CUstream stream = nullptr;
  SetStack({b.get()});
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  SetStack({a.get()});
  {
    AcquiredGuard guard(cuguest::AcquireFromStream(stream));
    BOOST_TEST(guard.ok());
    BOOST_TEST(ToStatus(guard).ok());
    BOOST_TEST((guard.context() == ContextRef::Borrow(b.get())));
    BOOST_TEST((guard.acquired().source() == Acquired::Source::kStream));
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  SetStack({});
}

// The reference that AcquireOn took lasts as long as the scope, and no longer.
BOOST_AUTO_TEST_CASE(it_keeps_the_reference_for_the_scope) {
  if (IsActive()) return;
  {
    const AcquiredGuard guard(cuguest::AcquireOn(kFirst, IfInactive::kCreate));
    BOOST_TEST(guard.ok());
    BOOST_TEST(IsActive());
    BOOST_TEST(guard.context().IsAlive());
    BOOST_TEST(GetStack() == Stack{guard.acquired().get()});
  }
  BOOST_TEST(!IsActive());
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(what_could_not_be_acquired_changes_nothing) {
  const OwnContext a;
  SetStack({a.get()});
  int on_the_host = 0;
  {
    AcquiredGuard guard(cuguest::AcquireFromPointer(&on_the_host));
    BOOST_TEST(!guard.ok());
    BOOST_TEST((ToStatus(guard).code() == absl::StatusCode::kInvalidArgument));
    BOOST_TEST(guard.Reassert() == guard.error().code);
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_failed_one_that_nobody_asked_is_reported) {
  TakeIncidents();
  int on_the_host = 0;
  { AcquiredGuard guard(cuguest::AcquireFromPointer(&on_the_host)); }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kUnasked));
  BOOST_TEST(incidents[0].result == cuguest::AcquireFromPointer(&on_the_host).error().code);
  BOOST_TEST(std::string(incidents[0].file) == __FILE__);
  for (const bool by_error : {false, true}) {
    AcquiredGuard guard(cuguest::AcquireFromPointer(&on_the_host));
    BOOST_TEST(!(by_error ? guard.error().code == CUDA_SUCCESS : guard.ok()));
  }
  BOOST_TEST(TakeIncidents().empty());
}

BOOST_AUTO_TEST_CASE(what_was_acquired_and_destroyed_is_not_entered) {
  const OwnContext a;
  OwnContext b;
  SetStack({b.get()});
  Acquired acquired = cuguest::AcquireCurrent(kFirst);
  BOOST_TEST_REQUIRE(acquired.ok());
  SetStack({a.get()});
  BOOST_TEST(RAW(cuCtxDestroy)(b.release()) == CUDA_SUCCESS);
  const AcquiredGuard guard(std::move(acquired));
  BOOST_TEST(!guard.ok());
  BOOST_TEST(!ToStatus(guard).ok());
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(of_a_device_it_is_inside_the_current_context) {
  const OwnContext a;
  SetStack({a.get()});
  for (int i = 0; i < 2; ++i) {
    AcquiredGuard guard(kFirst);
    BOOST_TEST_REQUIRE(guard.ok(), ToStatus(guard).ToString());
    BOOST_TEST(ToStatus(guard).ok());
    BOOST_TEST((guard.context() == ContextRef::Borrow(a.get())));
    BOOST_TEST((guard.acquired().source() == Acquired::Source::kCurrent));
    BOOST_TEST(guard.guard().elided());
    BOOST_TEST(guard.guard().get() == a.get());
    BOOST_TEST(guard.guard().caller() == a.get());
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
  }
  {
    const AcquiredGuard guard(kFirst, IfInactive::kRefuse, GuardMode::kAlwaysPush);
    BOOST_TEST(guard.ok());
    BOOST_TEST(GetStack() == (Stack{a.get(), a.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(!IsActive());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(of_a_device_it_refuses_and_creates_as_acquire_on) {
  if (IsActive()) return;
  {
    const AcquiredGuard guard(kFirst);
    BOOST_TEST(!guard.ok());
    BOOST_TEST((ToStatus(guard) == ToStatus(cuguest::AcquireOn(kFirst))));
    BOOST_TEST(!IsActive());
  }
  {
    const AcquiredGuard guard(kFirst, IfInactive::kCreate);
    BOOST_TEST(guard.ok());
    BOOST_TEST((guard.acquired().source() == Acquired::Source::kCreated));
    BOOST_TEST(GetStack() == Stack{guard.acquired().get()});
  }
  BOOST_TEST(!IsActive());
  BOOST_TEST(GetStack().empty());
}

// As any elided guard's: with the caller's file and line, by the incarnation.
BOOST_AUTO_TEST_CASE(incidents_name_the_place_that_is_given) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  std::optional<AcquiredGuard> in_place;
  in_place.emplace(cuguest::AcquireCurrent(kFirst), GuardMode::kElide, Location::Here());
  const int line = __LINE__ - 1;
  BOOST_TEST(RAW(cuCtxPushCurrent)(b.get()) == CUDA_SUCCESS);
  in_place.reset();
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  BOOST_TEST(incidents[0].line == line);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(of_a_device_it_repairs_and_reports) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  BOOST_TEST(cuguest::AcquireOn(kFirst).ok());  // it is seen
  int line = 0;
  {
    AcquiredGuard guard(kFirst);
    line = __LINE__ - 1;
    BOOST_TEST(guard.guard().elided());
    CUcontext popped = nullptr;
    BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  std::optional<AcquiredGuard> in_place;
  in_place.emplace(kFirst, IfInactive::kRefuse, GuardMode::kElide, Location::Here());
  const int emplaced = __LINE__ - 1;
  BOOST_TEST(RAW(cuCtxPushCurrent)(b.get()) == CUDA_SUCCESS);
  in_place.reset();
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 2U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kExtraPop));
  BOOST_TEST(incidents[0].line == line);
  BOOST_TEST((incidents[1].kind == Incident::Kind::kLeakedPush));
  BOOST_TEST(incidents[1].line == emplaced);
  for (const Incident& incident : incidents) BOOST_TEST(incident.file == __FILE__);
  SetStack({});
}

// A reset ends the incarnation that the guard is in: what comes back at the handle is another.
BOOST_AUTO_TEST_CASE(of_a_device_it_knows_the_incarnation,
                     *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  PrimaryContext old = PrimaryContext::Retain(kFirst);
  SetStack({old.get()});
  BOOST_TEST(cuguest::AcquireOn(kFirst).ok());
  AcquiredGuard guard(kFirst);
  BOOST_TEST(guard.guard().elided());
  BOOST_TEST((guard.context() == old.context()));
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(kFirst.get()) == CUDA_SUCCESS);
  const PrimaryContext renewed = PrimaryContext::Retain(kFirst);
  BOOST_TEST(guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(!guard.ok());
  static_cast<void>(guard.Leave());
  static_cast<void>(TakeIncidents());
  SetStack({});
  BOOST_TEST(old.Release().ok());
}

BOOST_AUTO_TEST_SUITE_END()
