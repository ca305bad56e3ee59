// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the repair table does not cover: entry, refusal, nesting, Reassert, Restore, and
// the refs. test/guard/repair_table_test.cc has the faults.

#include "cuguest/context_guard.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/guard/guard_kinds.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_guard)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ExactGuard;
using cuguest::GuardMode;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using guard_kinds::EachKind;
using guard_kinds::GuardOf;
using Stack = std::vector<CUcontext>;

static_assert(!std::is_copy_constructible_v<ContextGuard> &&
              !std::is_move_constructible_v<ContextGuard>);
static_assert(std::is_nothrow_default_constructible_v<ContextGuard>);
static_assert(!std::is_convertible_v<GuardMode, ContextGuard>);
static_assert(std::is_nothrow_destructible_v<ContextGuard>);
static_assert(!std::is_convertible_v<CUcontext, ContextGuard>);

static_assert(sizeof(ContextGuard) == 64);

// A temporary would let go of its context while the guard is inside.
static_assert(std::is_constructible_v<ContextGuard, cuguest::PrimaryContext&> &&
              std::is_constructible_v<ContextGuard, const cuguest::PrimaryContext&> &&
              std::is_constructible_v<ExactGuard, const cuguest::PrimaryContext&>);
static_assert(!std::is_constructible_v<ContextGuard, cuguest::PrimaryContext> &&
              !std::is_constructible_v<ExactGuard, cuguest::PrimaryContext>);
static_assert(!std::is_constructible_v<ContextGuard, int> &&
              !std::is_constructible_v<ContextGuard, ContextGuard&>);

}  // namespace

BOOST_AUTO_TEST_CASE(enters_and_leaves_from_every_position_of_the_caller) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext ours;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const Stack& caller : {Stack{}, Stack{a.get()}, Stack{x.get(), a.get()}, Stack{ours.get()},
                                Stack{x.get(), ours.get()}, Stack{ours.get(), a.get()}}) {
      SetStack(caller);
      {
        const Guard guard(ours.get());
        BOOST_TEST(guard.ok());
        BOOST_TEST(guard.get() == ours.get());
        BOOST_TEST(guard.caller() == (caller.empty() ? nullptr : caller.back()));
        const bool was_current = !caller.empty() && caller.back() == ours.get();
        BOOST_TEST(guard.elided() == (was_current && Guard::kElides));
        Stack inside = caller;
        if (!guard.elided()) inside.push_back(ours.get());
        BOOST_TEST(GetStack() == inside);
      }
      BOOST_TEST(GetStack() == caller);
      SetStack({});
    }
  });
}

BOOST_AUTO_TEST_CASE(work_inside_happens_in_the_guards_context) {
  const OwnContext ours;
  CUdeviceptr pointer = 0;
  {
    const ContextGuard guard(ours.get());
    BOOST_TEST(TheDriver().MemAlloc(&pointer, 64) == CUDA_SUCCESS);
  }
  CUcontext owner = nullptr;
  BOOST_TEST(TheDriver().PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) ==
             CUDA_SUCCESS);
  BOOST_TEST(owner == ours.get());
  BOOST_TEST(TheDriver().MemFree(pointer) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(whatever_has_a_context_is_entered) {
  const auto primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  const CUcontext context = primary.context().get();
  SetStack({});
  const ContextGuard always(primary, GuardMode::kAlwaysPush);
  BOOST_TEST(always.ok());
  BOOST_TEST(GetStack() == Stack{context});
  const ExactGuard exact(primary);
  BOOST_TEST(exact.ok());
  cuguest::ContextScope scope;
  BOOST_TEST(scope.Enter(primary, GuardMode::kAlwaysPush) == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{context, context, context}));
}

BOOST_AUTO_TEST_CASE(null_is_refused_and_changes_nothing) {
  const OwnContext a;
  SetStack({a.get()});
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    const Guard guard(static_cast<CUcontext>(nullptr));
    BOOST_TEST(guard.result() == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(!guard.elided());
    BOOST_TEST(GetStack() == Stack{a.get()});
  });
  const ContextGuard empty_ref{ContextRef()};
  BOOST_TEST(empty_ref.result() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(guards_nest_over_several_contexts_and_modes) {
  const OwnContext a;
  const OwnContext b;
  EachKind([&](auto outer_kind) {
    EachKind([&](auto inner_kind) {
      using Outer = GuardOf<decltype(outer_kind)>;
      using Inner = GuardOf<decltype(inner_kind)>;
      {
        const Outer first(a.get());
        {
          const Inner second(b.get());
          const Outer third(b.get());
          const Inner fourth(a.get());
          BOOST_TEST(GetStack().back() == a.get());
        }
        BOOST_TEST(GetStack() == Stack{a.get()});
      }
      BOOST_TEST(GetStack().empty());
    });
  });
}

BOOST_AUTO_TEST_CASE(a_conditional_guard_is_an_optional) {
  const OwnContext a;
  std::optional<ContextGuard> guard;
  guard.emplace(a.get());
  BOOST_TEST(GetStack() == Stack{a.get()});
  guard.reset();
  BOOST_TEST(GetStack().empty());
}

BOOST_AUTO_TEST_CASE(restore_ends_the_scope_once) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(guard.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(reassert_does_nothing_when_all_is_well) {
  const OwnContext a;
  const OwnContext b;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    SetStack({a.get()});
    Guard guard(b.get());
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    SetStack({});
  });
}

BOOST_AUTO_TEST_CASE(reassert_takes_the_context_back_from_a_callee) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const bool elided : {false, true}) {
      const Stack caller = elided ? Stack{a.get(), b.get()} : Stack{a.get()};
      SetStack(caller);
      Guard guard(b.get());
      const Stack inside = GetStack();
      BOOST_TEST(TheDriver().CtxPushCurrent(c.get()) == CUDA_SUCCESS);
      BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == inside);
      BOOST_TEST(guard.ok());
      const auto incidents = TakeIncidents();
      BOOST_TEST_REQUIRE(incidents.size() == 1U);
      BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
      BOOST_TEST(incidents[0].found == c.get());
      BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == caller);
      SetStack({});
    }
  });
}

BOOST_AUTO_TEST_CASE(reassert_never_touches_a_context_that_a_callee_destroyed) {
  const OwnContext a;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    OwnContext b;
    SetStack({a.get()});
    Guard guard(b.get());
    BOOST_TEST(TheDriver().CtxDestroy(b.release()) == CUDA_SUCCESS);
    BOOST_TEST(guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(!guard.ok());
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
    SetStack({});
  });
}

BOOST_AUTO_TEST_CASE(a_dead_entry_of_our_own_is_popped_without_a_word) {
  const OwnContext a;
  OwnContext b;
  SetStack({a.get()});
  {
    const ContextGuard guard(b.get());
    std::thread([&b] { TheDriver().CtxDestroy(b.release()); }).join();
    CUdeviceptr pointer = 0;
    BOOST_TEST(TheDriver().MemAlloc(&pointer, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_callers_context_destroyed_below_ours_is_left_where_it_was) {
  OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  {
    const ContextGuard guard(b.get());
    BOOST_TEST(TheDriver().CtxDestroy(a.get()) == CUDA_SUCCESS);
  }
  CUcontext current = nullptr;
  BOOST_TEST(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
  BOOST_TEST(current == a.release());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_ref_to_a_destroyed_context_is_refused) {
  OwnContext mortal;
  const ContextRef ref = ContextRef::Borrow(mortal.get());
  BOOST_TEST(ref.ok());
  {
    const ContextGuard guard(ref);
    BOOST_TEST(guard.ok());
  }
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  // Often at the same handle, which an older driver does not tell.
  std::optional<OwnContext> successor;
  if (cuguest_test::HasDriver(12000)) successor.emplace();
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    const Guard guard(ref);
    BOOST_TEST(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(GetStack().empty());
    const absl::Status status = ToStatus(guard);
    BOOST_TEST(absl::StrContains(std::string(status.message()),
                                 "the ContextRef names was destroyed or reset"));
  });
}

BOOST_AUTO_TEST_CASE(
    a_ref_to_a_primary_that_was_reset_and_came_back_is_refused_also_when_current,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const cuguest::Device device = cuguest::Device::Borrow(0);
  ContextRef first_life;
  {
    const auto primary = cuguest::PrimaryContext::Retain(device);
    first_life = primary.context();
  }
  const auto again = cuguest::PrimaryContext::Retain(device);
  BOOST_TEST(again.get() == first_life.get());
  BOOST_TEST((again.context() != first_life));
  SetStack({again.get()});
  {
    const ContextGuard stale(first_life);
    BOOST_TEST(stale.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    const ContextGuard fresh(again.context());
    BOOST_TEST(fresh.ok());
    BOOST_TEST(fresh.elided());
    const ContextGuard still_stale(first_life);  // after a guard that found its context current
    BOOST_TEST(still_stale.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  SetStack({});
}

// What a guard by ContextRef asks first depends on what the last one found, its result does not.
BOOST_AUTO_TEST_CASE(ref_guards_are_right_whatever_the_last_one_found) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref = ContextRef::Borrow(a.get());
  const std::vector<CUcontext> stacks[] = {{a.get()}, {b.get()}, {}, {b.get(), a.get()}};
  for (const auto& last : stacks) {
    for (const auto& now : stacks) {
      SetStack(last);
      { const ContextGuard guard(ref); }
      SetStack(now);
      {
        const ContextGuard guard(ref);
        BOOST_TEST(guard.ok());
        BOOST_TEST(GetStack().back() == a.get());
        BOOST_TEST(guard.caller() == (now.empty() ? nullptr : now.back()));
        BOOST_TEST(guard.elided() == (!now.empty() && now.back() == a.get()));
      }
      BOOST_TEST(GetStack() == now);
    }
  }
  SetStack({a.get()});
  { const ContextGuard guard(ref); }
  const ContextGuard empty{ContextRef()};
  BOOST_TEST(empty.result() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST((GetStack() == std::vector<CUcontext>{a.get()}));
  SetStack({});
}

// The search for our entry is bounded; what lies beyond is left alone, and said.
BOOST_AUTO_TEST_CASE(a_repair_that_gives_up_leaves_the_callers_context_current_and_says_so) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({x.get(), a.get()});
  {
    ContextGuard guard(b.get());
    for (int i = 0; i < 200; ++i) TheDriver().CtxPushCurrent(c.get());
    BOOST_TEST(guard.Leave() == CUDA_ERROR_INVALID_CONTEXT);
  }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
  BOOST_TEST(incidents[0].current == a.get());
  BOOST_TEST(GetStack().back() == a.get());
  SetStack({});
}

// The look-alikes of Note [What is inferred]: the caller's context is current, the depth is
// off, and the report is of the other fault. ExactGuard is not misled.
BOOST_AUTO_TEST_CASE(the_same_handle_twice_can_make_two_faults_look_alike) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const auto replace = [&] { TheDriver().CtxSetCurrent(c.get()); };
  const auto pop = [] {
    CUcontext popped = nullptr;
    TheDriver().CtxPopCurrent(&popped);
  };
  const auto check = [&](const Stack& caller, const auto& callee, const Stack& after,
                         Incident::Kind misread, Incident::Kind exactly) {
    EachKind([&](auto kind) {
      using Guard = GuardOf<decltype(kind)>;
      if (!Guard::kElides && !Guard::kIsExact) return;
      SetStack(caller);
      {
        const Guard guard(b.get());
        callee();
      }
      BOOST_TEST(GetStack() == (Guard::kIsExact ? caller : after));
      const auto incidents = TakeIncidents();
      BOOST_TEST_REQUIRE(incidents.size() == 1U);
      BOOST_TEST((incidents[0].kind == (Guard::kIsExact ? exactly : misread)));
      SetStack({});
    });
  };
  check({b.get(), b.get()}, replace, {b.get()}, Incident::Kind::kLeakedPush,
        Incident::Kind::kReplaced);
  check({a.get(), a.get()}, pop, {a.get()}, Incident::Kind::kReplaced, Incident::Kind::kExtraPop);
  check({a.get(), b.get(), a.get()}, pop, {a.get()}, Incident::Kind::kLeakedPush,
        Incident::Kind::kExtraPop);
}

// Whatever is found on top, nobody asks whether it is a primary context.
BOOST_AUTO_TEST_CASE(a_repair_creates_no_primary_context, *cuguest_test::OnlySim()) {
  const OwnContext a;
  const OwnContext c;
  SetStack({a.get()});
  Sim::ResetCalls();
  {
    const ContextGuard guard(a.get());
    TheDriver().CtxSetCurrent(c.get());
  }
  BOOST_TEST(TakeIncidents().size() == 1U);
  BOOST_TEST(Sim::Calls("cuDevicePrimaryCtxRetain") == 0U);
  SetStack({});
}

// A search for our entry takes the caller's off and puts them back; a dead one cannot be.
BOOST_AUTO_TEST_CASE(a_search_that_meets_a_dead_entry_says_that_it_could_not_put_it_back) {
  const OwnContext w;
  OwnContext mortal;
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  SetStack({w.get(), mortal.get(), x.get(), a.get()});
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  {
    const ContextGuard guard(b.get());
    CUcontext popped = nullptr;
    TheDriver().CtxPopCurrent(&popped);
    TheDriver().CtxPopCurrent(&popped);
  }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kExtraPop));
  BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
  BOOST_TEST(incidents[0].current == a.get());
  BOOST_TEST(GetStack() == (Stack{w.get(), x.get(), a.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_leaked_push_of_its_own_context_may_lie_below_another) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({x.get(), a.get()});
  {
    const ContextGuard guard(b.get());
    for (const CUcontext leaked : {b.get(), b.get(), c.get()}) {
      BOOST_TEST(TheDriver().CtxPushCurrent(leaked) == CUDA_SUCCESS);
    }
  }
  BOOST_TEST((GetStack() == std::vector<CUcontext>{x.get(), a.get()}));
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_empty_stack_is_restored_from_any_number_of_leaked_pushes) {
  const OwnContext b;
  const OwnContext c;
  {
    const ContextGuard guard(b.get());
    for (int i = 0; i < 10000; ++i) TheDriver().CtxPushCurrent(c.get());
  }
  BOOST_TEST(GetStack().empty());
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kRepaired));
}

BOOST_AUTO_TEST_CASE(a_context_of_another_device, *cuguest_test::NeedsDevices(2)) {
  const OwnContext on_first(0);
  const OwnContext on_second(1);
  SetStack({on_first.get()});
  {
    const ContextGuard guard(on_second.get());
    CUdevice device = -1;
    BOOST_TEST(TheDriver().CtxGetDevice(&device) == CUDA_SUCCESS);
    BOOST_TEST(device == 1);
  }
  BOOST_TEST(GetStack() == Stack{on_first.get()});
  SetStack({});
}

// What is built from a ContextRef never takes another context for its own, which has the handle
// because a callee destroyed ours.
BOOST_AUTO_TEST_CASE(
    a_guard_by_ref_never_puts_back_a_stranger,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    OwnContext own;
    const CUcontext handle = own.get();
    SetStack({a.get(), handle});
    std::optional<OwnContext> stranger;
    {
      const Guard guard(ContextRef::Borrow(handle));
      BOOST_TEST(guard.ok());
      for (int entries = guard.elided() ? 1 : 2; entries > 0; --entries) {
        BOOST_TEST(TheDriver().CtxPopCurrent(nullptr) == CUDA_SUCCESS);
      }
      BOOST_TEST(TheDriver().CtxDestroy(own.release()) == CUDA_SUCCESS);
      stranger.emplace();
      BOOST_TEST_REQUIRE(stranger->get() == handle);
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
    BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
    SetStack({});
  });
}

// The caller's entry is the outer guard's, which knows what it entered.
BOOST_AUTO_TEST_CASE(
    an_outer_guard_by_ref_knows_the_inner_ones_caller,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  const OwnContext inner;
  OwnContext own;
  const CUcontext handle = own.get();
  SetStack({a.get()});
  std::optional<OwnContext> stranger;
  {
    const ContextGuard outer(ContextRef::Borrow(handle));
    {
      const ContextGuard guard(inner.get());
      for (int entries = 2; entries > 0; --entries) TheDriver().CtxPopCurrent(nullptr);
      BOOST_TEST(TheDriver().CtxDestroy(own.release()) == CUDA_SUCCESS);
      stranger.emplace();
      BOOST_TEST_REQUIRE(stranger->get() == handle);
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  for (const auto& incident : TakeIncidents()) {
    BOOST_TEST((incident.kind == Incident::Kind::kDestroyed ||
                incident.kind == Incident::Kind::kExtraPop));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(
    exact_guard_puts_back_no_stranger,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  const OwnContext b;
  for (const bool in_place : {false, true}) {
    OwnContext mortal;
    const CUcontext handle = mortal.get();
    SetStack({a.get(), handle});
    std::optional<OwnContext> stranger;
    {
      const ExactGuard guard(b.get());
      TheDriver().CtxPopCurrent(nullptr);
      TheDriver().CtxPopCurrent(nullptr);
      BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
      stranger.emplace();
      BOOST_TEST_REQUIRE(stranger->get() == handle);
      if (in_place) {
        TheDriver().CtxPushCurrent(handle);
        TheDriver().CtxPushCurrent(b.get());
      }
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
    SetStack({});
  }
}

// The entry of a primary context is active again with it, and so is what a guard puts back.
BOOST_AUTO_TEST_CASE(an_entry_of_a_primary_context_outlives_a_reset) {
  const cuguest::Device device = cuguest::Device::Borrow(0);
  const OwnContext b;
  auto primary = cuguest::PrimaryContext::Retain(device);
  const CUcontext handle = primary.get();
  const auto begin_another_life = [&] {
    BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    BOOST_TEST(primary.Release().ok());
    primary = cuguest::PrimaryContext::Retain(device);
    BOOST_TEST(primary.get() == handle);
  };
  SetStack({handle});
  {
    const ExactGuard guard(b.get());
    begin_another_life();
  }
  BOOST_TEST(GetStack() == Stack{handle});
  {
    const ContextGuard guard(primary.context());
    begin_another_life();
    TheDriver().CtxPopCurrent(nullptr);
  }
  BOOST_TEST(GetStack() == Stack{handle});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kExtraPop));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(
    reassert_notices_another_incarnation,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const cuguest::Device device = cuguest::Device::Borrow(0);
  auto primary = cuguest::PrimaryContext::Retain(device);
  for (const GuardMode mode : {GuardMode::kElide, GuardMode::kAlwaysPush}) {
    ContextGuard guard(primary.context(), mode);
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    BOOST_TEST(primary.Release().ok());
    primary = cuguest::PrimaryContext::Retain(device);
    BOOST_TEST(guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(!guard.ok());
    BOOST_TEST(GetStack().empty());
  }
}

BOOST_AUTO_TEST_CASE(elided_guards_end_out_of_turn) {
  const OwnContext a;
  for (const bool is_asked : {false, true}) {
    SetStack({a.get()});
    std::optional<ContextGuard> first;
    std::optional<ContextGuard> second;
    first.emplace(a.get(), cuguest::GuardMode::kElide, cuguest::Location{__FILE__, 4711});
    second.emplace(a.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    if (is_asked) BOOST_TEST(first->Leave() == CUDA_ERROR_NOT_READY);
    first.reset();
    BOOST_TEST(GetStack() == Stack{a.get()});
    second.reset();
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == (is_asked ? 0U : 1U));
    if (!is_asked) BOOST_TEST((incidents[0].kind == Incident::Kind::kOutOfTurn));
    if (!is_asked) BOOST_TEST((incidents[0].repair == cuguest::Incident::Repair::kUnrepaired));
    if (!is_asked) BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
    if (!is_asked) BOOST_TEST(incidents[0].line == 4711);
    SetStack({});
  }
}

// One that is inside it has repaired its own caller's stack; what is left is repaired when it is
// closed, and the incident names no file.
BOOST_AUTO_TEST_CASE(closed_out_of_turn_after_a_fault) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    SetStack({a.get()});
    Guard outer(b.get());
    BOOST_TEST(TheDriver().CtxPushCurrent(a.get()) == CUDA_SUCCESS);
    ContextGuard inner(c.get());
    BOOST_TEST(outer.Leave() == CUDA_ERROR_NOT_READY);
    BOOST_TEST(TakeIncidents().empty());
    BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
    BOOST_TEST(incidents[0].line == 0);
    BOOST_TEST(!absl::StrContains(incidents[0].file, ".cc"));
    SetStack({});
  });
}

BOOST_AUTO_TEST_SUITE_END()
