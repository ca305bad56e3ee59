// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/host_scope.h"

#include <memory>
#include <optional>
#include <thread>

#include "cuguest/driver.h"
#include "cuguest/location.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/status.h"
#include "test/guard/guard_kinds.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(host_scope)

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ExactGuard;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using guard_kinds::EachKind;
using guard_kinds::GuardOf;
using guard_kinds::HostOf;
using Stack = std::vector<CUcontext>;

}  // namespace

BOOST_AUTO_TEST_CASE(the_host_finds_its_own_stack_and_the_guard_comes_back) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const Stack& caller : {Stack{}, Stack{a.get()}, Stack{x.get(), a.get()}, Stack{b.get()}}) {
      SetStack(caller);
      Guard guard(b.get());
      const Stack inside = GetStack();
      {
        const HostScope host = HostOf(guard);
        BOOST_TEST(host.ok());
        BOOST_TEST(GetStack() == caller);
      }
      BOOST_TEST(guard.ok());
      BOOST_TEST(GetStack() == inside);
      BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
      BOOST_TEST(GetStack() == caller);
    }
    SetStack({});
  });
}

BOOST_AUTO_TEST_CASE(what_the_host_does_to_its_own_stack_is_its_right) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    SetStack({a.get()});
    {
      Guard guard(b.get());
      {
        const HostScope host = HostOf(guard);
        TheDriver().CtxSetCurrent(c.get());
        TheDriver().CtxPushCurrent(b.get());
      }
      BOOST_TEST(guard.caller() == b.get());
      BOOST_TEST(guard.elided() == (Guard::kElides));
    }
    BOOST_TEST(GetStack() == (Stack{c.get(), b.get()}));
    SetStack({});
  });
}

BOOST_AUTO_TEST_CASE(a_fault_before_the_callback_is_repaired_for_the_host_and_reported) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  TheDriver().CtxPushCurrent(c.get());
  {
    const HostScope host(guard);
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLeakedPush));
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_by_ref_does_not_come_back_into_a_context_the_host_destroyed) {
  const OwnContext a;
  OwnContext b;
  SetStack({a.get()});
  {
    ContextGuard guard(ContextRef::Borrow(b.get()));
    {
      const HostScope host(guard);
      TheDriver().CtxDestroy(b.release());
    }
    BOOST_TEST(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// The host has no context any more, and is told so; the library's is alive.
BOOST_AUTO_TEST_CASE(the_hosts_context_is_destroyed_before) {
  const OwnContext b;
  const OwnContext next;
  OwnContext a;
  SetStack({a.get()});
  {
    ContextGuard guard(ContextRef::Borrow(b.get()), cuguest::GuardMode::kAlwaysPush);
    TheDriver().CtxPopCurrent(nullptr);
    TheDriver().CtxPopCurrent(nullptr);
    TheDriver().CtxDestroy(a.release());
    TheDriver().CtxPushCurrent(next.get());
    TheDriver().CtxPushCurrent(b.get());
    {
      const HostScope host(guard);
      BOOST_TEST(host.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
      BOOST_TEST(GetStack() == (Stack{next.get(), b.get()}));
    }
    BOOST_TEST(guard.ok());
    BOOST_TEST(GetStack() == (Stack{next.get(), b.get()}));
  }
  BOOST_TEST(GetStack() == Stack{next.get()});
  static_cast<void>(TakeIncidents());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_that_is_not_inside_is_left_alone) {
  const OwnContext a;
  SetStack({a.get()});
  ContextGuard refused(static_cast<CUcontext>(nullptr));
  ContextGuard ended(a.get());
  BOOST_TEST(ended.Leave() == CUDA_SUCCESS);
  {
    const HostScope first(refused);
    const HostScope second(ended);
    BOOST_TEST(first.ok());
    BOOST_TEST(second.ok());
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(refused.result() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_of_a_handle_does_not_come_back_into_a_context_the_host_destroyed) {
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const bool is_given_away : {false, true}) {
      if (is_given_away && !cuguest_test::HasDriver(12000)) continue;  // it cannot be told
      const OwnContext a;
      OwnContext b;
      std::optional<OwnContext> stranger;
      SetStack({a.get()});
      {
        Guard guard(b.get());
        {
          const HostScope host = HostOf(guard);
          TheDriver().CtxDestroy(b.release());
          if (is_given_away) stranger.emplace();  // on the simulation at the same handle
        }
        BOOST_TEST(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
        BOOST_TEST(GetStack() == Stack{a.get()});
      }
      BOOST_TEST(GetStack() == Stack{a.get()});
      SetStack({});
    }
  });
}

// A library that is inside of several guards: whichever is given, the host finds its own stack,
// and every one of them its own.
BOOST_AUTO_TEST_CASE(every_guard_of_the_thread_is_undone) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const Stack& caller : {Stack{}, Stack{x.get(), a.get()}, Stack{b.get()}}) {
    EachKind([&](auto entrys) {
      EachKind([&](auto helpers) {
        using Helper = GuardOf<decltype(helpers)>;
        SetStack(caller);
        {
          const GuardOf<decltype(entrys)> entry(b.get());
          const Helper again(b.get());
          const Helper helper(c.get());
          const Stack inside = GetStack();
          const auto check = [&](const auto& guard) {
            {
              const HostScope host = HostOf(guard);
              BOOST_TEST(host.ok());
              BOOST_TEST(GetStack() == caller);
            }
            BOOST_TEST(GetStack() == inside);
          };
          check(entry);
          check(helper);
          {
            const HostScope host;
            BOOST_TEST(GetStack() == caller);
          }
          BOOST_TEST(GetStack() == inside);
          BOOST_TEST(entry.ok());
          BOOST_TEST(again.ok());
          BOOST_TEST(helper.ok());
        }
        BOOST_TEST(GetStack() == caller);
        SetStack({});
      });
    });
  }
}

// The host's right, with an outermost guard that had nothing to push.
BOOST_AUTO_TEST_CASE(the_host_may_change_its_stack_under_several_guards) {
  const OwnContext b;
  const OwnContext c;
  const OwnContext d;
  SetStack({b.get()});
  {
    const ContextGuard entry(b.get());
    BOOST_TEST(entry.elided());
    {
      ContextGuard helper(c.get());
      {
        const HostScope host(helper);
        TheDriver().CtxSetCurrent(d.get());
      }
      BOOST_TEST(GetStack() == (Stack{d.get(), b.get(), c.get()}));
    }
    BOOST_TEST(GetStack() == (Stack{d.get(), b.get()}));
  }
  BOOST_TEST(GetStack() == Stack{d.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_scope_without_context_is_undone_too) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  {
    ContextGuard entry(b.get());
    const cuguest::NoContextGuard none;
    const ContextGuard inner(c.get());
    {
      const HostScope host(entry);
      BOOST_TEST(GetStack() == Stack{a.get()});
    }
    BOOST_TEST(GetStack() == Stack{c.get()});
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(the_host_may_call_the_library_again) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  {
    ContextGuard entry(b.get());
    {
      const HostScope host(entry);
      {
        ContextGuard again(c.get());
        {
          const HostScope deeper(again);
          BOOST_TEST(GetStack() == Stack{a.get()});
        }
        BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
      }
      BOOST_TEST(GetStack() == Stack{a.get()});
    }
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// A callback that was called without a HostScope calls the library from a context of its own.
BOOST_AUTO_TEST_CASE(it_stops_at_somebody_elses_entry) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const OwnContext d;
  EachKind([&](auto kind) {
    using Guard = GuardOf<decltype(kind)>;
    for (const CUcontext callbacks : {c.get(), b.get()}) {
      SetStack({a.get()});
      {
        Guard outer(b.get());
        TheDriver().CtxPushCurrent(callbacks);
        {
          ContextGuard inner(d.get());
          {
            const HostScope host(inner);
            BOOST_TEST(host.ok());
            BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), callbacks}));
          }
          if constexpr (!Guard::kIsExact) {
            const HostScope host(outer);
            BOOST_TEST(host.result() == CUDA_ERROR_ILLEGAL_STATE);
            BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), callbacks, d.get()}));
          }
          BOOST_TEST(inner.ok());
        }
        TheDriver().CtxPopCurrent(nullptr);
      }
      BOOST_TEST(GetStack() == Stack{a.get()});
      SetStack({});
    }
  });
}

// Beneath an ExactGuard: the caller's context has gone, and another one has its handle.
BOOST_AUTO_TEST_CASE(
    it_stops_at_a_stranger_with_the_callers_handle,
    *cuguest_test::OnlySim() *
        cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const OwnContext b;
  const OwnContext c;
  OwnContext mortal;
  const CUcontext handle = mortal.get();
  SetStack({handle});
  std::optional<OwnContext> stranger;
  {
    const ExactGuard exact(b.get());
    TheDriver().CtxPopCurrent(nullptr);
    TheDriver().CtxPopCurrent(nullptr);
    BOOST_TEST(TheDriver().CtxDestroy(mortal.release()) == CUDA_SUCCESS);
    stranger.emplace();
    BOOST_TEST_REQUIRE(stranger->get() == handle);
    TheDriver().CtxPushCurrent(handle);
    TheDriver().CtxPushCurrent(b.get());
    const ContextGuard inner(c.get());
    const HostScope host(inner);
    BOOST_TEST(host.ok());
    BOOST_TEST(GetStack() == (Stack{handle, b.get()}));
    BOOST_TEST(TakeIncidents().empty());
  }
  BOOST_TEST(GetStack().empty());
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kDestroyed));
}

// With one of two contexts gone the other guard still gets its own.
BOOST_AUTO_TEST_CASE(each_guard_comes_back_by_itself) {
  const OwnContext a;
  OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  {
    const ContextGuard entry(b.get());
    const ContextGuard elided(b.get());
    ContextGuard helper(c.get());
    {
      const HostScope host(helper);
      TheDriver().CtxDestroy(b.release());
    }
    BOOST_TEST(entry.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(elided.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    BOOST_TEST(helper.ok());
    BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

// A guard that ends in the callback is not entered again.
BOOST_AUTO_TEST_CASE(a_guard_may_end_while_the_host_is_called) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  {
    std::optional<ContextGuard> ended;
    const ContextGuard entry(b.get());
    ended.emplace(c.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    const ContextGuard elided(c.get());
    {
      const HostScope host(entry);
      ended.reset();
      BOOST_TEST(GetStack() == Stack{a.get()});
    }
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), c.get()}));
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_of_another_thread_is_refused) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  std::thread([&] {
    SetStack({a.get()});
    const ContextGuard own(b.get());
    const HostScope host(guard);
    BOOST_TEST(host.result() == CUDA_ERROR_ILLEGAL_STATE);
    BOOST_TEST(!ToStatus(host).ok());
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  }).join();
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  SetStack({});
}

// It is closed before the host's stack is restored.
BOOST_AUTO_TEST_CASE(a_guard_that_ended_elsewhere_before) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const bool has_another : {false, true}) {
    SetStack({a.get()});
    const ContextGuard outer(b.get());
    auto stray = std::make_unique<ContextGuard>(c.get());
    std::optional<ContextGuard> inner;
    if (has_another) inner.emplace(b.get(), cuguest::GuardMode::kElide, cuguest::Location::Here());
    std::thread([&] { stray.reset(); }).join();
    {
      const HostScope host;
      BOOST_TEST(host.ok());
      BOOST_TEST(GetStack() == Stack{a.get()});
    }
    // What has ended does not come back.
    BOOST_TEST((GetStack() == Stack{a.get(), b.get()}));
    BOOST_TEST(outer.ok());
    if (has_another) BOOST_TEST(inner->elided());
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
  }
  SetStack({});
}

// Nobody there knows what the own thread does: its guards stay outside, and say so.
BOOST_AUTO_TEST_CASE(ended_elsewhere_its_guards_stay_out) {
  const OwnContext a;
  const OwnContext b;
  for (const bool is_asked : {false, true}) {
    SetStack({a.get()});
    {
      ContextGuard guard(b.get());
      auto host = std::make_unique<HostScope>(guard, cuguest::Location{__FILE__, 4711});
      std::thread([&] {
        SetStack({a.get()});
        if (is_asked) BOOST_TEST(host->Leave() == CUDA_ERROR_NOT_READY);
        host.reset();
        BOOST_TEST(GetStack() == Stack{a.get()});
        SetStack({});
      }).join();
      BOOST_TEST(GetStack() == Stack{a.get()});
      { const ContextGuard next(b.get()); }
      BOOST_TEST(GetStack() == Stack{a.get()});
      BOOST_TEST(guard.result() == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(!ToStatus(guard).ok());
      BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == 1U);
    BOOST_TEST((incidents[0].kind == Incident::Kind::kElsewhere));
    BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_READY);
    BOOST_TEST(incidents[0].line == 4711);
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(restore_brings_the_guards_back_once) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  {
    const ContextGuard guard(b.get());
    HostScope host(guard);
    BOOST_TEST(GetStack() == Stack{a.get()});
    TheDriver().CtxPushCurrent(c.get());
    BOOST_TEST(host.Leave() == CUDA_SUCCESS);
    BOOST_TEST((GetStack() == Stack{a.get(), c.get(), b.get()}));
    BOOST_TEST(host.Leave() == CUDA_SUCCESS);
    BOOST_TEST((GetStack() == Stack{a.get(), c.get(), b.get()}));
    BOOST_TEST(guard.ok());
  }
  BOOST_TEST((GetStack() == Stack{a.get(), c.get()}));
  SetStack({});
}

// The host has entered a guard inside it, which ends later.
BOOST_AUTO_TEST_CASE(ended_before_the_hosts_guard) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const bool is_asked : {false, true}) {
    SetStack({a.get()});
    {
      ContextGuard guard(b.get());
      std::optional<HostScope> host;
      host.emplace(guard, cuguest::Location{__FILE__, 4711});
      ContextGuard hosts(c.get());
      BOOST_TEST(guard.ok());
      if (is_asked) BOOST_TEST(host->Leave() == CUDA_ERROR_NOT_READY);
      host.reset();
      BOOST_TEST((GetStack() == Stack{a.get(), c.get()}));
      BOOST_TEST(guard.result() == CUDA_ERROR_NOT_READY);
      BOOST_TEST(guard.MoveTo(a.get()) == CUDA_ERROR_ILLEGAL_STATE);
      BOOST_TEST(hosts.Leave() == CUDA_SUCCESS);
      BOOST_TEST((GetStack() == Stack{a.get(), b.get()}));
      BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
      BOOST_TEST(guard.ok());
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    const auto incidents = TakeIncidents();
    BOOST_TEST_REQUIRE(incidents.size() == (is_asked ? 0U : 1U));
    if (!is_asked) BOOST_TEST((incidents[0].kind == Incident::Kind::kOutOfTurn));
    if (!is_asked) BOOST_TEST(incidents[0].line == 4711);
    SetStack({});
  }
}

BOOST_AUTO_TEST_SUITE_END()
