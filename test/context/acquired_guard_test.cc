// SPDX-License-Identifier: Apache-2.0

#include "cuguest/acquired_guard.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace {

using cuguest::AcquiredContext;
using cuguest::AcquiredGuard;
using cuguest::AcquireResult;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Stack = std::vector<CUcontext>;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).value().active; }

// A temporary gives its reference back at the semicolon, so that what it names must not be taken
// from it: neither by `.value()` nor by `*` nor by `->`.
template <typename Acquired, typename = void>
struct NamesItsContext : std::false_type {};
template <typename Acquired>
struct NamesItsContext<Acquired, std::void_t<decltype(std::declval<Acquired>().incarnation())>>
    : std::true_type {};
static_assert(NamesItsContext<AcquiredContext&>::value);
static_assert(NamesItsContext<const AcquiredContext&>::value);
static_assert(!NamesItsContext<AcquiredContext>::value);
static_assert(!NamesItsContext<const AcquiredContext>::value);

template <typename Result, typename = void>
struct HasArrow : std::false_type {};
template <typename Result>
struct HasArrow<Result, std::void_t<decltype(std::declval<Result>().operator->())>>
    : std::true_type {};
static_assert(HasArrow<AcquireResult&>::value);
static_assert(HasArrow<const AcquireResult&>::value);
static_assert(!HasArrow<AcquireResult>::value);
static_assert(!HasArrow<const AcquireResult>::value);
static_assert(std::is_convertible_v<AcquireResult, absl::StatusOr<AcquiredContext>>);

}  // namespace

BOOST_AUTO_TEST_SUITE(acquired_guard)

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
    BOOST_TEST(guard.status().ok());
    BOOST_TEST((guard.incarnation() == ContextRef::Borrow(b.get())));
    BOOST_TEST((guard.acquired().source() == AcquiredContext::Source::kStream));
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
    BOOST_TEST(guard.incarnation().IsAlive());
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
    BOOST_TEST((guard.status().code() == absl::StatusCode::kInvalidArgument));
    BOOST_TEST(guard.Reassert() == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(guard.Restore() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_was_acquired_and_destroyed_is_not_entered) {
  const OwnContext a;
  OwnContext b;
  SetStack({b.get()});
  AcquireResult acquired = cuguest::AcquireCurrent(kFirst);
  BOOST_TEST_REQUIRE(acquired.ok());
  SetStack({a.get()});
  BOOST_TEST(RAW(cuCtxDestroy)(b.release()) == CUDA_SUCCESS);
  const AcquiredGuard guard(std::move(acquired));
  BOOST_TEST(!guard.ok());
  BOOST_TEST(!guard.status().ok());
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
