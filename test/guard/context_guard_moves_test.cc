// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Empty guards, and guards that move: Note [Moving to another context] of docs/notes.md. What a
// move finds of a callee's is in test/guard/repair_table_test.cc.

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/interop/storm/random.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_guard_moves)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

constexpr GuardMode kModes[] = {GuardMode::kElide, GuardMode::kAlwaysPush};

CUresult Move(ContextGuard& guard, CUcontext context, bool by_ref) {
  return by_ref ? guard.MoveTo(ContextRef::Borrow(context)) : guard.MoveTo(context);
}

// What a new guard of `context` makes of the stack, as which it is left.
struct Entered {
  Stack inside;
  bool elided;
};
Entered EnterAfterRefusal(CUcontext context, GuardMode mode) {
  const ContextGuard guard(context, mode);
  BOOST_TEST_REQUIRE(guard.ok());
  return {GetStack(), guard.elided()};
}

void CheckInside(const ContextGuard& guard, CUcontext context, const Entered& expected,
                 const Stack& caller) {
  BOOST_TEST(guard.ok());
  BOOST_TEST(guard.get() == context);
  BOOST_TEST(guard.caller() == (caller.empty() ? nullptr : caller.back()));
  BOOST_TEST(guard.elided() == expected.elided);
  BOOST_TEST(GetStack() == expected.inside);
}

}  // namespace

BOOST_AUTO_TEST_CASE(empty_guard_is_inside_nothing) {
  const OwnContext a;
  SetStack({a.get()});
  for (const GuardMode mode : kModes) {
    ContextGuard guard(mode);
    BOOST_TEST(guard.ok());
    BOOST_TEST(guard.get() == nullptr);
    BOOST_TEST(guard.caller() == nullptr);
    BOOST_TEST(!guard.elided());
    BOOST_TEST(guard.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
    {
      const HostScope host(guard);
      BOOST_TEST(host.ok());
    }
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  { const ContextGuard nobody_asks; }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// From wherever a guard can be to wherever it can go: the stack is a new guard's.
BOOST_AUTO_TEST_CASE(moved_guard_stands_as_a_new_one) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const Stack callers[] = {{}, {a.get()}, {x.get(), a.get()}, {a.get(), a.get()}};
  const CUcontext places[] = {nullptr, a.get(), b.get(), c.get()};
  for (const GuardMode mode : kModes) {
    for (const Stack& caller : callers) {
      for (const CUcontext from : places) {
        for (const CUcontext to : {a.get(), b.get(), c.get()}) {
          for (const bool by_ref : {false, true}) {
            SetStack(caller);
            const Entered first = EnterAfterRefusal(to, mode);
            const Entered second = EnterAfterRefusal(b.get(), mode);
            {
              ContextGuard guard(mode);
              if (from != nullptr) BOOST_TEST(Move(guard, from, !by_ref) == CUDA_SUCCESS);
              BOOST_TEST(Move(guard, to, by_ref) == CUDA_SUCCESS);
              CheckInside(guard, to, first, caller);
              BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
              BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
              BOOST_TEST(GetStack() == caller);
              // It may enter again, and its end is the destructor's then.
              BOOST_TEST(Move(guard, b.get(), by_ref) == CUDA_SUCCESS);
              CheckInside(guard, b.get(), second, caller);
            }
            BOOST_TEST(GetStack() == caller);
            SetStack({});
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(failed_guard_may_enter_by_a_move) {
  const OwnContext a;
  const OwnContext b;
  for (const GuardMode mode : kModes) {
    SetStack({a.get()});
    {
      ContextGuard guard(static_cast<CUcontext>(nullptr), mode);
      BOOST_TEST(guard.MoveTo(b.get()) == CUDA_SUCCESS);
      BOOST_TEST(guard.ok());
      BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    SetStack({});
  }
}

// Whatever is refused is refused before the stack is touched; the loop goes on.
BOOST_AUTO_TEST_CASE(refused_move_leaves_the_guard_there) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  OwnContext mortal;
  const ContextRef dead = ContextRef::Borrow(mortal.get());
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  for (const GuardMode mode : kModes) {
    for (const CUcontext from : {static_cast<CUcontext>(nullptr), a.get(), b.get()}) {
      for (const bool is_dead : {false, true}) {
        for (const bool is_null : {false, true}) {
          if (is_dead && is_null) continue;
          SetStack({a.get()});
          {
            ContextGuard guard(mode);
            if (from != nullptr) BOOST_TEST(guard.MoveTo(from) == CUDA_SUCCESS);
            const Stack inside = GetStack();
            const CUresult code = is_null   ? guard.MoveTo(static_cast<CUcontext>(nullptr))
                                  : is_dead ? guard.MoveTo(dead)
                                            : guard.MoveTo(ContextRef());
            BOOST_TEST(code ==
                       (is_dead ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT));
            BOOST_TEST(guard.result() == code);
            BOOST_TEST(absl::StrContains(ToStatus(guard).message(), "enter a context"));
            BOOST_TEST(GetStack() == inside);
            if (from != nullptr) {
              BOOST_TEST(guard.get() == from);
              BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
              BOOST_TEST(guard.ok());
              BOOST_TEST(GetStack() == inside);
            }
            BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
            BOOST_TEST(guard.ok());
            BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
          }
          BOOST_TEST(GetStack() == Stack{a.get()});
          SetStack({});
        }
      }
    }
  }
}

// Another one's entry is on top: the outer guard's is not its to replace.
BOOST_AUTO_TEST_CASE(only_the_innermost_guard_moves) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const GuardMode mode : kModes) {
    for (const CUcontext inners : {b.get(), c.get(), static_cast<CUcontext>(nullptr)}) {
      SetStack({a.get()});
      ContextGuard outer(b.get(), mode);
      {
        std::optional<ContextGuard> inner;
        std::optional<cuguest::NoContextGuard> none;
        if (inners != nullptr) {
          inner.emplace(inners, cuguest::GuardMode::kElide, cuguest::Location::Here());
        } else {
          none.emplace(cuguest::Location::Here());
        }
        const Stack inside = GetStack();
        BOOST_TEST(outer.MoveTo(c.get()) == CUDA_ERROR_ILLEGAL_STATE);
        BOOST_TEST(outer.MoveTo(b.get()) == CUDA_ERROR_ILLEGAL_STATE);
        BOOST_TEST(absl::StrContains(ToStatus(outer).message(), "another one is inside it"));
        BOOST_TEST(GetStack() == inside);
        BOOST_TEST(outer.get() == b.get());
      }
      BOOST_TEST(outer.MoveTo(c.get()) == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
      BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == Stack{a.get()});
      SetStack({});
    }
  }
}

BOOST_AUTO_TEST_CASE(host_scope_brings_back_a_moved_guard) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const OwnContext d;
  for (const GuardMode mode : kModes) {
    for (const CUcontext from : {a.get(), b.get()}) {
      for (const CUcontext to : {a.get(), c.get()}) {
        SetStack({a.get()});
        {
          ContextGuard outer(from, mode);
          BOOST_TEST(outer.MoveTo(to) == CUDA_SUCCESS);
          ContextGuard inner(d.get(), mode);
          BOOST_TEST(inner.MoveTo(b.get()) == CUDA_SUCCESS);
          const Stack inside = GetStack();
          {
            const HostScope host;
            BOOST_TEST(host.ok());
            BOOST_TEST(GetStack() == Stack{a.get()});
            BOOST_TEST(inner.MoveTo(c.get()) == CUDA_ERROR_ILLEGAL_STATE);
            BOOST_TEST(outer.MoveTo(c.get()) == CUDA_ERROR_ILLEGAL_STATE);
            BOOST_TEST(GetStack() == Stack{a.get()});
            ContextGuard callbacks;
            BOOST_TEST(callbacks.MoveTo(c.get()) == CUDA_SUCCESS);
            BOOST_TEST(callbacks.MoveTo(d.get()) == CUDA_SUCCESS);
          }
          BOOST_TEST(GetStack() == inside);
          // Until a MoveTo() or Reassert() succeeds.
          BOOST_TEST(inner.result() == CUDA_ERROR_ILLEGAL_STATE);
          BOOST_TEST(inner.Reassert() == CUDA_SUCCESS);
          BOOST_TEST(inner.ok());
          BOOST_TEST(inner.get() == b.get());
        }
        BOOST_TEST(GetStack() == Stack{a.get()});
        SetStack({});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bound_to_the_thread_that_it_entered_on) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard guard;
  std::thread([&] {
    BOOST_TEST(guard.MoveTo(b.get()) == CUDA_SUCCESS);
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack().empty());
  }).join();
  BOOST_TEST(guard.MoveTo(b.get()) == CUDA_SUCCESS);
  std::thread([&] {
    SetStack({b.get()});
    BOOST_TEST(guard.MoveTo(a.get()) == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(guard.MoveTo(b.get()) == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(GetStack() == Stack{b.get()});
    SetStack({});
  }).join();
  BOOST_TEST(guard.ok());
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// Also one that could not come back: what it is inside next is its thread's.
BOOST_AUTO_TEST_CASE(bound_to_its_thread_while_it_is_out) {
  const OwnContext a;
  const OwnContext c;
  OwnContext b;
  SetStack({a.get()});
  {
    ContextGuard guard(ContextRef::Borrow(b.get()));
    RAW(cuCtxPopCurrent)(nullptr);
    TheDriver().CtxDestroy(b.release());
    BOOST_TEST(guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    std::thread([&] {
      BOOST_TEST(guard.MoveTo(c.get()) == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(GetStack().empty());
    }).join();
    BOOST_TEST(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  static_cast<void>(TakeIncidents());
  SetStack({});
}

// A callee destroys the caller's context and leaves another one in its place.
BOOST_AUTO_TEST_CASE(goes_on_where_the_callers_context_is_destroyed) {
  const OwnContext b;
  const OwnContext c;
  const OwnContext next;
  for (const GuardMode mode : kModes) {
    for (const bool moves : {false, true}) {
      OwnContext a;
      SetStack({a.get()});
      {
        ContextGuard guard(ContextRef::Borrow(b.get()), mode);
        RAW(cuCtxPopCurrent)(nullptr);
        RAW(cuCtxPopCurrent)(nullptr);
        TheDriver().CtxDestroy(a.release());
        TheDriver().CtxPushCurrent(next.get());
        const CUcontext inside = moves ? c.get() : b.get();
        BOOST_TEST((moves ? guard.MoveTo(c.get()) : guard.Reassert()) == CUDA_SUCCESS);
        BOOST_TEST(guard.ok());
        BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
        BOOST_TEST(GetStack() == (Stack{next.get(), inside}));
      }
      BOOST_TEST(GetStack() == Stack{next.get()});
      const auto incidents = TakeIncidents();
      BOOST_TEST_REQUIRE(incidents.size() == 1U);
      BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
      SetStack({});
    }
  }
}

BOOST_AUTO_TEST_CASE(
    moves_between_incarnations_of_a_primary_context,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  for (const GuardMode mode : {GuardMode::kElide, GuardMode::kAlwaysPush}) {
    for (const bool elided : {false, true}) {
      auto primary = PrimaryContext::Retain(Device::Borrow(0));
      const ContextRef before = primary.context();
      const Stack caller = elided ? Stack{a.get(), before.get()} : Stack{a.get()};
      SetStack(caller);
      ContextGuard guard(before, mode);
      const Stack inside = GetStack();
      BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
      BOOST_TEST(guard.MoveTo(before) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
      BOOST_TEST(primary.Release().ok());
      primary = PrimaryContext::Retain(Device::Borrow(0));
      const ContextRef after = primary.context();
      BOOST_TEST_REQUIRE((before != after && before.get() == after.get()));
      BOOST_TEST(guard.MoveTo(before) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
      BOOST_TEST(GetStack() == inside);
      BOOST_TEST(guard.MoveTo(after) == CUDA_SUCCESS);
      BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == inside);
      BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == caller);
      SetStack({});
    }
  }
}

// Of the next incarnation at a destroyed handle nothing is known but by reference.
BOOST_AUTO_TEST_CASE(
    ref_to_the_successor_at_the_handle_is_refused,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  const OwnContext b;
  OwnContext mortal;
  const CUcontext handle = mortal.get();
  const ContextRef dead = ContextRef::Borrow(handle);
  BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
  const OwnContext successor;
  BOOST_TEST_REQUIRE(successor.get() == handle);
  for (const GuardMode mode : kModes) {
    SetStack({a.get()});
    ContextGuard guard(successor.get(), mode);
    BOOST_TEST(guard.MoveTo(dead) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(GetStack() == (Stack{a.get(), handle}));
    BOOST_TEST(guard.MoveTo(ContextRef::Borrow(handle)) == CUDA_SUCCESS);
    BOOST_TEST(guard.MoveTo(b.get()) == CUDA_SUCCESS);
    BOOST_TEST(guard.MoveTo(dead) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    SetStack({});
  }
}

// A callee destroyed the guard's context, or another thread did.
BOOST_AUTO_TEST_CASE(moves_out_of_a_destroyed_context) {
  const OwnContext a;
  const OwnContext c;
  for (const GuardMode mode : kModes) {
    for (const bool elsewhere : {false, true}) {
      OwnContext b;
      SetStack({a.get()});
      {
        ContextGuard guard(b.get(), mode);
        const auto destroy = [&b] { TheDriver().CtxDestroy(b.release()); };
        if (elsewhere) {
          std::thread(destroy).join();
        } else {
          destroy();
        }
        BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
        BOOST_TEST(guard.ok());
        BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
      }
      BOOST_TEST(GetStack() == Stack{a.get()});
      for (const auto& incident : TakeIncidents()) {
        BOOST_TEST((incident.kind == Incident::Kind::kDestroyed));
      }
      SetStack({});
    }
  }
}

// The guard is outside where it can neither go on nor back, and says so.
BOOST_AUTO_TEST_CASE(outside_where_no_context_can_be_entered, *cuguest_test::OnlySim()) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  {
    ContextGuard guard(b.get(), GuardMode::kAlwaysPush);
    for (unsigned nth = 1; nth <= 8; ++nth) {
      Sim::FailCall("cuCtxPushCurrent", nth, CUDA_ERROR_OPERATING_SYSTEM);
    }
    BOOST_TEST(guard.MoveTo(c.get()) == CUDA_ERROR_OPERATING_SYSTEM);
    Sim::ClearFaults();
    BOOST_TEST(guard.result() == CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST(guard.Reassert() == CUDA_ERROR_OPERATING_SYSTEM);
    BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
    BOOST_TEST(guard.ok());
  }
  static_cast<void>(TakeIncidents());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(incidents_name_where_it_entered) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const auto line_of_the_only_incident = [] {
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST(std::string(incidents[0].file) == __FILE__);
    return incidents[0].line;
  };
  const auto disturb = [&] { TheDriver().CtxPushCurrent(a.get()); };
  for (const GuardMode mode : kModes) {
    SetStack({a.get()});
    ContextGuard guard(b.get(), mode);
    const int constructed = __LINE__ - 1;
    disturb();
    BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
    const int moved = __LINE__ - 1;
    BOOST_TEST(line_of_the_only_incident() == constructed);
    disturb();
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(line_of_the_only_incident() == moved);
    BOOST_TEST(guard.MoveTo(static_cast<CUcontext>(nullptr)) == CUDA_ERROR_INVALID_CONTEXT);
    disturb();
    BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
    BOOST_TEST(line_of_the_only_incident() == moved);
    BOOST_TEST(guard.MoveTo(c.get()) == CUDA_SUCCESS);
    const int again = __LINE__ - 1;
    disturb();
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    BOOST_TEST(line_of_the_only_incident() == again);
    SetStack({});
  }
}

// An inner guard's caller is what the outer one has moved to.
BOOST_AUTO_TEST_CASE(
    outer_guard_that_moved_knows_the_inner_ones_caller,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext a;
  const OwnContext inner;
  OwnContext own;
  const CUcontext handle = own.get();
  SetStack({a.get()});
  std::optional<OwnContext> stranger;
  {
    ContextGuard outer(a.get());
    BOOST_TEST(outer.MoveTo(ContextRef::Borrow(handle)) == CUDA_SUCCESS);
    {
      const ContextGuard guard(inner.get());
      for (int entries = 2; entries > 0; --entries) TheDriver().CtxPopCurrent(nullptr);
      BOOST_TEST(TheDriver().CtxDestroy(own.release()) == CUDA_SUCCESS);
      stranger.emplace();
      BOOST_TEST_REQUIRE(stranger->get() == handle);
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(!TakeIncidents().empty());
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// Nested guards that move, end, begin again and are taken out by a host, in an order that follows
// from a seed, beside a model: each adds to its caller's stack what a new guard would.
BOOST_AUTO_TEST_CASE(any_sequence_of_moves_follows_the_model) {
  constexpr int kDepth = 4;
  const OwnContext own[4];
  const auto pick = [&](storm::Random& random) { return own[random.Below(4)].get(); };
  struct Level {
    std::unique_ptr<ContextGuard> guard;
    GuardMode mode;
    CUcontext context;  // nullptr: outside
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    storm::Random random(seed);
    Stack caller;
    for (int depth = random.Below(3); depth > 0; --depth) caller.push_back(pick(random));
    SetStack(caller);
    std::vector<Level> levels;
    const auto expected = [&] {
      Stack stack = caller;
      for (const Level& level : levels) {
        if (level.context == nullptr) continue;
        const bool is_current = !stack.empty() && stack.back() == level.context;
        if (level.mode != GuardMode::kElide || !is_current) stack.push_back(level.context);
      }
      return stack;
    };
    for (int step = 0; step < 150; ++step) {
      const int what = random.Below(10);
      if (levels.empty() || (what == 0 && levels.size() < kDepth)) {
        const GuardMode mode = kModes[random.Below(2)];
        if (random.OneIn(2)) {
          levels.push_back({std::make_unique<ContextGuard>(mode), mode, nullptr});
        } else {
          const CUcontext context = pick(random);
          levels.push_back({std::make_unique<ContextGuard>(context, mode), mode, context});
        }
      } else if (what == 1) {
        levels.pop_back();
      } else if (what == 2) {
        BOOST_TEST(levels.back().guard->Leave() == CUDA_SUCCESS);
        levels.back().context = nullptr;
      } else if (what == 3) {
        const HostScope host;
        BOOST_TEST(GetStack() == caller);
      } else if (what == 4) {
        // One that is not the innermost, which may be outside of all of them.
        Level& level = levels[random.Below(static_cast<int>(levels.size()))];
        bool is_covered = false;
        for (const Level& inner : levels) {
          if (&inner > &level) is_covered = is_covered || inner.context != nullptr;
        }
        if (level.context != nullptr && is_covered) {
          BOOST_TEST(level.guard->MoveTo(pick(random)) == CUDA_ERROR_ILLEGAL_STATE);
        }
      } else {
        Level& level = levels.back();
        level.context = pick(random);
        BOOST_TEST(Move(*level.guard, level.context, random.OneIn(2)) == CUDA_SUCCESS);
        BOOST_TEST(level.guard->get() == level.context);
      }
      BOOST_TEST_CONTEXT("seed " << seed << ", step " << step << ", operation " << what) {
        BOOST_TEST_REQUIRE(GetStack() == expected());
      }
    }
    while (!levels.empty()) levels.pop_back();
    BOOST_TEST(GetStack() == caller);
    SetStack({});
  }
}

namespace {

// What a listener does to the scope whose move or Reassert() reports.
struct Interferer {
  cuguest::ContextScope* scope;
  CUcontext opens;     // nullptr: it ends the scope
  CUcontext reenters;  // and enters it again
  cuguest::ContextScope opened;
  CUresult code_of_end;
};
void Interfere(const Incident&, void* user) noexcept {
  auto* const it = static_cast<Interferer*>(user);
  cuguest::ContextScope* const scope = std::exchange(it->scope, nullptr);
  if (scope == nullptr) return;
  if (it->opens != nullptr) {
    BOOST_TEST(it->opened.Enter(it->opens) == CUDA_SUCCESS);
  } else {
    it->code_of_end = scope->Leave();
    if (it->reenters != nullptr) BOOST_TEST(scope->Enter(it->reenters) == CUDA_SUCCESS);
  }
}

}  // namespace

// A listener may end the scope that is on its way, or leave another open where it was: then it does
// not come back.
BOOST_AUTO_TEST_CASE(a_listener_ends_what_moves) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const OwnContext d;
  for (const bool moves : {false, true}) {
    for (const bool opens : {false, true}) {
      SetStack({a.get()});
      {
        cuguest::ContextScope scope;
        BOOST_TEST(scope.Enter(b.get()) == CUDA_SUCCESS);
        Interferer interferer{&scope, opens ? c.get() : nullptr, nullptr, {}, CUDA_SUCCESS};
        const cuguest::IncidentListener listener(&Interfere, &interferer);
        TheDriver().CtxSetCurrent(d.get());
        const CUresult code = moves ? scope.MoveTo(c.get()) : scope.Reassert();
        BOOST_TEST(code == CUDA_ERROR_ILLEGAL_STATE);
        BOOST_TEST(interferer.code_of_end == CUDA_SUCCESS);
        BOOST_TEST(GetStack().size() == (opens ? 2U : 1U));
      }
      BOOST_TEST(GetStack() == Stack{a.get()});
      { const ContextGuard guard(b.get()); }
      BOOST_TEST(GetStack() == Stack{a.get()});
      BOOST_TEST(TakeIncidents().size() == 1U);
      SetStack({});
    }
  }
}

// The incident is that of a scope above it, which ended on another thread and is closed first.
BOOST_AUTO_TEST_CASE(a_listener_ends_what_is_to_move) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const OwnContext d;
  for (const bool moves : {false, true}) {
    SetStack({a.get()});
    cuguest::ContextScope scope;
    cuguest::ContextScope above;
    BOOST_TEST(scope.Enter(b.get()) == CUDA_SUCCESS);
    BOOST_TEST(above.Enter(c.get()) == CUDA_SUCCESS);
    std::thread([&] { BOOST_TEST(above.Leave() == CUDA_ERROR_NOT_READY); }).join();
    TheDriver().CtxPushCurrent(d.get());
    Interferer interferer{&scope, nullptr, nullptr, {}, CUDA_SUCCESS};
    const cuguest::IncidentListener listener(&Interfere, &interferer);
    const CUresult code = moves ? scope.MoveTo(c.get()) : scope.Reassert();
    BOOST_TEST(code == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(TakeIncidents().size() == 2U);
    SetStack({});
  }
}

// A callee destroys the caller's context: the first end of the scope returns that, and no other.
BOOST_AUTO_TEST_CASE(owed_code_is_returned_by_the_end) {
  const OwnContext b;
  const OwnContext c;
  enum class Does { kNothing, kEnds, kReenters, kOpens };
  for (const bool moves : {false, true}) {
    for (const Does does : {Does::kNothing, Does::kEnds, Does::kReenters, Does::kOpens}) {
      BOOST_TEST_CONTEXT("moves " << moves << ", the listener does " << static_cast<int>(does)) {
        OwnContext a;
        SetStack({a.get()});
        cuguest::ContextScope scope;
        BOOST_TEST(scope.Enter(ContextRef::Borrow(b.get())) == CUDA_SUCCESS);
        Interferer interferer{does == Does::kNothing ? nullptr : &scope,
                              does == Does::kOpens ? c.get() : nullptr,
                              does == Does::kReenters ? c.get() : nullptr,
                              {},
                              CUDA_SUCCESS};
        const cuguest::IncidentListener listener(&Interfere, &interferer);
        RAW(cuCtxPopCurrent)(nullptr);
        TheDriver().CtxDestroy(a.release());
        const CUresult code = moves ? scope.MoveTo(c.get()) : scope.Reassert();
        const bool is_ended = does == Does::kEnds || does == Does::kReenters;
        BOOST_TEST(code == (does == Does::kNothing ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE));
        BOOST_TEST(interferer.code_of_end ==
                   (is_ended ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS));
        BOOST_TEST(scope.ok() == (does == Does::kNothing || does == Does::kReenters));
        if (does == Does::kOpens) {  // what it enters instead still owes it
          BOOST_TEST(scope.MoveTo(b.get()) == CUDA_SUCCESS);
          BOOST_TEST(GetStack().back() == b.get());
        }
        BOOST_TEST(scope.Leave() == (does == Does::kEnds       ? CUDA_ERROR_ILLEGAL_STATE
                                     : does == Does::kReenters ? CUDA_SUCCESS
                                                               : CUDA_ERROR_CONTEXT_IS_DESTROYED));
        BOOST_TEST(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
        interferer.opened.Leave();
        BOOST_TEST(GetStack().empty());
        BOOST_TEST(TakeIncidents().size() == 1U);
        SetStack({});
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
