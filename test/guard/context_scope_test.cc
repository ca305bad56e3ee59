// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/context_scope.h"

#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/status.h"
#include "test/interop/storm/random.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(context_scope)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;
using Scopes = std::vector<ContextScope>;

static_assert(sizeof(ContextScope) == 64);
static_assert(std::is_nothrow_default_constructible_v<ContextScope>);
static_assert(std::is_nothrow_move_constructible_v<ContextScope>, "or vectors copy");
static_assert(!std::is_copy_constructible_v<ContextScope>);
static_assert(!std::is_move_assignable_v<ContextScope>, "what would the old one do?");

constexpr GuardMode kModes[] = {GuardMode::kElide, GuardMode::kAlwaysPush};

void Enter(Scopes& scopes, CUcontext context, GuardMode mode = GuardMode::kElide) {
  BOOST_TEST(scopes.emplace_back().Enter(context, mode) == CUDA_SUCCESS);
}
void Leave(Scopes& scopes) {
  BOOST_TEST(scopes.back().Leave() == CUDA_SUCCESS);
  scopes.pop_back();
}

}  // namespace

BOOST_AUTO_TEST_CASE(enters_and_leaves_again_and_again) {
  const OwnContext a;
  const OwnContext b;
  for (const GuardMode mode : kModes) {
    SetStack({a.get()});
    ContextScope scope;
    BOOST_TEST(scope.ok());
    BOOST_TEST(scope.get() == nullptr);
    for (const CUcontext context : {b.get(), a.get(), b.get()}) {
      for (const bool by_ref : {false, true}) {
        BOOST_TEST((by_ref ? scope.Enter(ContextRef::Borrow(context), mode)
                           : scope.Enter(context, mode)) == CUDA_SUCCESS);
        BOOST_TEST(scope.get() == context);
        BOOST_TEST(scope.caller() == a.get());
        BOOST_TEST(scope.elided() == (context == a.get() && mode == GuardMode::kElide));
        BOOST_TEST(GetStack() == (scope.elided() ? Stack{a.get()} : Stack{a.get(), context}));
        BOOST_TEST(scope.Reassert() == CUDA_SUCCESS);
        BOOST_TEST(scope.MoveTo(b.get()) == CUDA_SUCCESS);
        BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
        BOOST_TEST(scope.Leave() == CUDA_SUCCESS);
        BOOST_TEST(GetStack() == Stack{a.get()});
      }
    }
    SetStack({});
  }
}

// A host's stack of scopes that reallocates, and guards in between.
BOOST_AUTO_TEST_CASE(vector_of_scopes_reallocates) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  Scopes scopes;
  scopes.reserve(1);
  Enter(scopes, b.get());
  {
    const ContextGuard guard(c.get());
    for (int i = 0; i < 70; ++i) Enter(scopes, i % 2 == 0 ? b.get() : c.get());
    const Stack inside = GetStack();
    BOOST_TEST(inside.size() == 73U);
    {
      const HostScope host;
      BOOST_TEST(host.ok());
      BOOST_TEST(GetStack() == Stack{a.get()});
    }
    BOOST_TEST(GetStack() == inside);
    for (int i = 0; i < 70; ++i) Leave(scopes);
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), c.get()}));
  }
  Leave(scopes);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// Every order of ending is in scope_order_test.cc.
BOOST_AUTO_TEST_CASE(left_out_of_turn_and_twice) {
  const OwnContext a;
  const OwnContext b;
  for (const GuardMode mode : kModes) {
    for (const CUcontext inners : {a.get(), b.get()}) {
      ContextScope never;
      BOOST_TEST(never.Leave() == CUDA_ERROR_ILLEGAL_STATE);
      ContextScope outer;
      ContextScope inner;
      BOOST_TEST(outer.Enter(a.get(), mode) == CUDA_SUCCESS);
      BOOST_TEST(inner.Enter(inners, mode) == CUDA_SUCCESS);
      const Stack inside = GetStack();
      BOOST_TEST(outer.MoveTo(b.get()) == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(!ToStatus(outer).ok());
      BOOST_TEST(outer.Enter(b.get(), mode) == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(outer.Leave() == CUDA_ERROR_NOT_READY);
      BOOST_TEST(outer.Leave() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(outer.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(GetStack() == inside);
      // It is inside nothing, and may enter on top.
      BOOST_TEST(outer.Enter(b.get(), mode) == CUDA_SUCCESS);
      BOOST_TEST(outer.caller() == inners);
      BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == inside);
      BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
      BOOST_TEST(inner.Leave() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(GetStack().empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(refused_entry_changes_nothing) {
  const OwnContext a;
  OwnContext mortal;
  const ContextRef dead = ContextRef::Borrow(mortal.get());
  TheDriver().CtxDestroy(mortal.release());
  ContextScope scope;
  BOOST_TEST(scope.Enter(static_cast<CUcontext>(nullptr)) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(scope.Enter(dead) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(!ToStatus(scope).ok());
  BOOST_TEST(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(scope.Enter(a.get()) == CUDA_SUCCESS);
  BOOST_TEST(scope.ok());
  BOOST_TEST(scope.Leave() == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(repairs_and_reports_as_a_guard) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  ContextScope scope;
  BOOST_TEST(scope.Enter(b.get()) == CUDA_SUCCESS);
  const int line = __LINE__ - 1;
  TheDriver().CtxPushCurrent(c.get());
  BOOST_TEST(scope.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  BOOST_TEST(incidents[0].line == line);
  BOOST_TEST(std::string(incidents[0].file) == __FILE__);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(moved_where_it_is_inside_or_not) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextScope first;
  ContextScope empty(std::move(first));
  BOOST_TEST(empty.Leave() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(empty.Enter(b.get()) == CUDA_SUCCESS);
  ContextScope second(std::move(empty));
  BOOST_TEST(empty.get() == nullptr);
  BOOST_TEST(empty.Leave() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(empty.Enter(a.get()) == CUDA_SUCCESS);  // on top of the second one now
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), a.get()}));
  BOOST_TEST(empty.Leave() == CUDA_SUCCESS);
  {
    const HostScope host;
    ContextScope third(std::move(second));
    BOOST_TEST(third.Enter(b.get()) == CUDA_ERROR_ILLEGAL_STATE);
    second.~ContextScope();
    new (&second) ContextScope(std::move(third));
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  {
    const HostScope host;
    BOOST_TEST(second.Leave() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(left_on_another_thread) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextScope scope;
  BOOST_TEST(scope.Enter(b.get()) == CUDA_SUCCESS);
  std::thread([&] {
    SetStack({a.get(), b.get()});
    BOOST_TEST(scope.Enter(b.get()) == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(scope.MoveTo(a.get()) == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(scope.Reassert() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(scope.ok());
    BOOST_TEST(TakeIncidents().empty());
    BOOST_TEST(scope.Leave() == CUDA_ERROR_NOT_READY);
    BOOST_TEST(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    // It is inside nothing, and this thread's from now on.
    BOOST_TEST(scope.Enter(a.get()) == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), a.get()}));
    BOOST_TEST(scope.Leave() == CUDA_SUCCESS);
    SetStack({});
  }).join();
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(scope.Enter(a.get()) == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(scope.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// A value: only where it ends matters.
BOOST_AUTO_TEST_CASE(moved_on_another_thread) {
  const OwnContext a;
  const OwnContext b;
  for (const bool ends_there : {false, true}) {
    SetStack({a.get()});
    ContextScope outer;
    BOOST_TEST(outer.Enter(a.get()) == CUDA_SUCCESS);
    auto scope = std::make_unique<ContextScope>();
    BOOST_TEST(scope->Enter(b.get(), GuardMode::kElide, cuguest::Location{__FILE__, 4711}) ==
               CUDA_SUCCESS);
    std::thread([&] {
      auto other = std::make_unique<ContextScope>(std::move(*scope));
      BOOST_TEST(scope->get() == nullptr);
      BOOST_TEST(scope->Leave() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(other->get() == b.get());
      BOOST_TEST(other->ok());
      if (!ends_there) scope = std::move(other);
      other.reset();
      BOOST_TEST(GetStack().empty());
    }).join();
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
    if (!ends_there) {
      BOOST_TEST(scope->MoveTo(a.get()) == CUDA_SUCCESS);
      BOOST_TEST(scope->MoveTo(b.get()) == CUDA_SUCCESS);
      BOOST_TEST(scope->Leave() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == Stack{a.get()});
    }
    BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == (ends_there ? 1U : 0U));
    if (ends_there) BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
    if (ends_there) BOOST_TEST(incidents[0].line == 4711);
    SetStack({});
  }
}

// Nothing is left to restore.
BOOST_AUTO_TEST_CASE(left_after_its_thread_has_ended) {
  const OwnContext a;
  const OwnContext b;
  ContextScope scope;
  std::thread([&] { BOOST_TEST(scope.Enter(b.get()) == CUDA_SUCCESS); }).join();
  ContextScope moved(std::move(scope));
  SetStack({a.get(), b.get()});
  BOOST_TEST(moved.ok());
  BOOST_TEST(moved.Leave() == CUDA_ERROR_NOT_READY);
  BOOST_TEST(moved.Leave() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
  BOOST_TEST(moved.Enter(a.get()) == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), a.get()}));
  BOOST_TEST(moved.Leave() == CUDA_SUCCESS);
  SetStack({});
}

// What a host does that keeps a stack of scopes, in an order that follows from a seed, beside a
// model: the stack, and which of the scopes have ended and are not closed.
BOOST_AUTO_TEST_CASE(any_sequence_follows_the_model) {
  const OwnContext own[3];
  const auto pick = [&](storm::Random& random) { return own[random.Below(3)].get(); };
  struct Entry {
    CUcontext context;  // nullptr: closed
    GuardMode mode;
    bool has_ended;
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    storm::Random random(seed);
    Stack caller;
    for (int depth = random.Below(3); depth > 0; --depth) caller.push_back(pick(random));
    SetStack(caller);
    Scopes scopes;
    std::vector<Entry> model;
    const auto innermost = [&] {
      int place = static_cast<int>(model.size()) - 1;
      while (place >= 0 && model[place].context == nullptr) --place;
      return place;
    };
    const auto close_ended = [&] {
      while (innermost() >= 0 && model[innermost()].has_ended) {
        model[innermost()].context = nullptr;
      }
    };
    const auto expected = [&] {
      Stack stack = caller;
      for (const Entry& entry : model) {
        if (entry.context == nullptr) continue;
        const bool is_current = !stack.empty() && stack.back() == entry.context;
        if (entry.mode != GuardMode::kElide || !is_current) stack.push_back(entry.context);
      }
      return stack;
    };
    for (int step = 0; step < 150; ++step) {
      const int what = random.Below(8);
      if (model.empty() || what < 2) {
        scopes.emplace_back();
        model.push_back({pick(random), kModes[random.Below(2)], false});
        BOOST_TEST(scopes.back().Enter(model.back().context, model.back().mode) == CUDA_SUCCESS);
      } else if (what < 4) {
        const int place = random.Below(static_cast<int>(model.size()));
        const bool is_inside = model[place].context != nullptr && !model[place].has_ended;
        BOOST_TEST(scopes[place].Leave() == (!is_inside             ? CUDA_ERROR_ILLEGAL_STATE
                                             : place == innermost() ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_NOT_READY));
        model[place].has_ended = true;
      } else if (what == 4) {
        scopes.pop_back();
        model.pop_back();
      } else if (what == 5 && innermost() >= 0) {
        model[innermost()].context = pick(random);
        BOOST_TEST(scopes[innermost()].MoveTo(model[innermost()].context) == CUDA_SUCCESS);
      } else if (what == 6) {
        {
          const HostScope host;
          BOOST_TEST(GetStack() == caller);
          if (random.OneIn(2)) scopes.shrink_to_fit();
        }
        for (Entry& entry : model) {
          if (entry.has_ended) entry.context = nullptr;  // they do not come back
        }
      } else {
        scopes.reserve(scopes.capacity() + 1);
      }
      close_ended();
      BOOST_TEST_CONTEXT("seed " << seed << ", step " << step << ", operation " << what) {
        BOOST_TEST_REQUIRE(GetStack() == expected());
      }
    }
    BOOST_TEST(TakeIncidents().empty());
    scopes.clear();  // in order, the outermost first
    BOOST_TEST(GetStack() == caller);
    for (const auto& incident : TakeIncidents()) {
      BOOST_TEST((incident.kind == Incident::Kind::kOutOfTurn));
    }
    SetStack({});
  }
}

BOOST_AUTO_TEST_SUITE_END()
