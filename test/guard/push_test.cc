// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuguest_push() whose entry a cuCtxPopCurrent takes off: a push is anybody's to pop. More of
// cuguest_push() and cuguest_pop() is in test/capi/c_test.c.

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/internal/this_thread.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(push)

namespace {

using cuguest::ContextGuard;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::Incident;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;
using cuguest_test::TheDriver;
using Stack = std::vector<CUcontext>;

void PopByHand() {
  CUcontext popped = nullptr;
  BOOST_TEST_REQUIRE(TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS);
}
void Pair(CUcontext context) {
  BOOST_TEST_REQUIRE(cuguest_push(context) == 0);
  PopByHand();
}
unsigned Records() { return cuguest::internal::t_this_thread.depth; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_guard_around_pairs_closes) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  for (const CUcontext pushed : {x.get(), a.get(), b.get()}) {
    for (const CUcontext entered : {a.get(), b.get()}) {
      for (const int how : {0, 1, 2}) {
        SetStack({x.get(), a.get()});
        {
          ContextGuard guard(entered);
          Pair(pushed);
          Pair(x.get());
          Pair(pushed);
          if (how == 1) BOOST_TEST(guard.Reassert() == CUDA_SUCCESS);
          if (how == 2) BOOST_TEST(guard.MoveTo(x.get()) == CUDA_SUCCESS);
          BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
        }
        BOOST_TEST(GetStack() == (Stack{x.get(), a.get()}));
        BOOST_TEST(Records() == 0U);
        BOOST_TEST(cuguest_pop() == CUDA_ERROR_ILLEGAL_STATE);
        BOOST_TEST(TakeIncidents().empty());
        SetStack({});
      }
    }
  }
}

// One that is there keeps the guard open, however many pairs are around it.
BOOST_AUTO_TEST_CASE(a_push_among_pairs_stays) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  Pair(c.get());
  BOOST_TEST(cuguest_push(c.get()) == 0);
  Pair(a.get());
  BOOST_TEST(guard.Leave() == CUDA_ERROR_NOT_READY);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), c.get()}));
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(many_pairs_keep_few_records) {
  const OwnContext x;
  const OwnContext a;
  const OwnContext b;
  for (const Stack& host : {Stack{a.get()}, Stack{x.get(), a.get()}, Stack{a.get(), a.get()},
                            Stack{a.get(), b.get(), a.get()}}) {
    for (int how = 0; how < 4; ++how) {
      SetStack(host);
      unsigned most = 0;
      for (int i = 0; i < 10000; ++i) {
        Pair(how == 0   ? a.get()
             : how == 1 ? b.get()
             : how == 2 ? (i % 2 == 0 ? a : b).get()
                        : (i % 3 == 0   ? x
                           : i % 3 == 1 ? b
                                        : a)
                              .get());
        most = std::max(most, Records());
      }
      BOOST_TEST(most <= 32U, "most " << most << ", how " << how);
      { const ContextGuard guard(b.get()); }
      BOOST_TEST(GetStack() == host);
      while (cuguest_pop() == 0) {
      }
      static_cast<void>(TakeIncidents());
      SetStack({});
    }
  }
}

// The program's own context, pushed by hand inside a push, hides what lies beneath.
BOOST_AUTO_TEST_CASE(pushes_by_hand_hide_no_push) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  Stack all = {a.get()};
  constexpr int kDepth = 40;
  for (int i = 0; i < kDepth; ++i) {
    BOOST_TEST(cuguest_push(b.get()) == 0);
    BOOST_TEST(TheDriver().CtxPushCurrent(a.get()) == CUDA_SUCCESS);
    Pair(b.get());
  }
  for (int i = 0; i < kDepth; ++i) {
    PopByHand();
    BOOST_TEST(cuguest_pop() == 0);
  }
  BOOST_TEST(GetStack() == all);
  BOOST_TEST(TakeIncidents().empty());
  // What is left of the last pair is no pop of the program's.
  while (cuguest_pop() == 0) BOOST_TEST(GetStack() == all);
  static_cast<void>(TakeIncidents());
  SetStack({});
}

// What an ended pair found is current again later, by chance: a pop too many in another push is no
// pop of that pair.
BOOST_AUTO_TEST_CASE(a_pop_too_many_is_reported) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext d;
  SetStack({a.get()});
  Pair(b.get());
  SetStack({a.get(), d.get()});
  BOOST_TEST(cuguest_push(b.get()) == 0);
  PopByHand();
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == (Stack{a.get(), d.get()}));
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kExtraPop));
  SetStack({});
  while (cuguest_pop() == 0) {
  }
  static_cast<void>(TakeIncidents());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_host_scope_passes_ended_pairs) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const bool is_innermost : {false, true}) {
    SetStack({a.get()});
    {
      const ContextGuard outer(b.get());
      Pair(c.get());
      std::optional<ContextGuard> inner;
      if (!is_innermost) inner.emplace(c.get(), GuardMode::kElide, cuguest::Location::Here());
      {
        const HostScope host;
        BOOST_TEST(host.ok());
        BOOST_TEST(GetStack() == Stack{a.get()});
      }
      BOOST_TEST(GetStack().back() == (is_innermost ? b : c).get());
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(TakeIncidents().empty());
    BOOST_TEST(Records() == 0U);
    SetStack({});
  }
}

// A push of what was current leaves the same stack, popped or not; here the guard around it tells.
BOOST_AUTO_TEST_CASE(host_scope_passes_same_context_pair) {
  const OwnContext a;
  SetStack({a.get()});
  {
    const ContextGuard guard(a.get(), GuardMode::kAlwaysPush, cuguest::Location::Here());
    Pair(a.get());
    const HostScope host(guard);
    BOOST_TEST(host.ok());
    BOOST_TEST(GetStack() == Stack{a.get()});
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

// Inside several pushes the stack is taken apart for each but the oldest: five calls an entry, and
// one that finds it empty.
BOOST_AUTO_TEST_CASE(host_scope_inspects_pushes_once, *cuguest_test::OnlySim()) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const auto calls = [&](int pushes) {
    SetStack({a.get()});
    for (int i = 0; i < pushes; ++i) BOOST_TEST(cuguest_push((i % 2 == 0 ? b : c).get()) == 0);
    cudasim::Sim::ResetCalls();
    { const HostScope host; }
    const auto made = cudasim::Sim::TotalCalls();
    for (int i = 0; i < pushes; ++i) BOOST_TEST(cuguest_pop() == 0);
    SetStack({});
    return made;
  };
  const auto a_push = 7U;  // more, beside the look
  BOOST_TEST(calls(1) == 6U);
  BOOST_TEST(calls(2) == 6U + a_push + (3 * 5 + 1));
  BOOST_TEST(calls(3) == 6U + 2 * a_push + (4 * 5 + 1));
}

// Dead entries can not be put back, so nobody looks beneath one.
BOOST_AUTO_TEST_CASE(pairs_among_dead_entries) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  OwnContext mortal;
  SetStack({a.get()});
  {
    ContextGuard guard(b.get());
    BOOST_TEST(TheDriver().CtxPushCurrent(mortal.get()) == CUDA_SUCCESS);
    std::thread([&] { TheDriver().CtxDestroy(mortal.release()); }).join();
    Pair(c.get());
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(TakeIncidents().size() == 1U);
  // A push whose own context is over, or what it found, is there.
  for (const bool is_below : {false, true}) {
    OwnContext over;
    SetStack({(is_below ? over : a).get()});
    ContextGuard guard(b.get());
    BOOST_TEST(cuguest_push((is_below ? c : over).get()) == 0);
    std::thread([&] { TheDriver().CtxDestroy(over.release()); }).join();
    BOOST_TEST(guard.Leave() == CUDA_ERROR_NOT_READY);
    BOOST_TEST(cuguest_pop() == 0);
    BOOST_TEST(Records() == 0U);
    static_cast<void>(TakeIncidents());
    SetStack({});
  }
  OwnContext::DestroyIdle();
}

// Where only the stack above a dead entry is seen, the scope says that a push inside it cannot be
// what lies below.
BOOST_AUTO_TEST_CASE(pair_in_scope_above_dead_entry) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  OwnContext mortal;
  SetStack({mortal.get(), a.get(), b.get(), c.get()});
  std::thread([&] { TheDriver().CtxDestroy(mortal.release()); }).join();
  {
    ContextGuard guard(a.get(), GuardMode::kAlwaysPush);
    Pair(b.get());  // on a, as what lies below
    const HostScope host;
    CUcontext current = nullptr;
    BOOST_TEST(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
    BOOST_TEST(current == c.get());
  }
  CUcontext current = nullptr;
  BOOST_TEST(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
  BOOST_TEST(current == c.get());
  BOOST_TEST(Records() == 0U);
  static_cast<void>(TakeIncidents());
  SetStack({});
  OwnContext::DestroyIdle();
}

// What the pop of an older push has taken off cannot be put back for a second look.
BOOST_AUTO_TEST_CASE(pair_inside_push_of_destroyed_context) {
  OwnContext over;
  const OwnContext b;
  SetStack({over.get(), b.get()});
  const Stack host = GetStack();
  BOOST_TEST(cuguest_push(over.get()) == 0);
  BOOST_TEST(cuguest_push(b.get()) == 0);
  PopByHand();
  std::thread([&] { TheDriver().CtxDestroy(over.release()); }).join();
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(Records() == 0U);
  CUcontext current = nullptr;
  BOOST_TEST(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
  BOOST_TEST(current == host.back());
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
  OwnContext::DestroyIdle();
}

BOOST_AUTO_TEST_CASE(pushes_by_reference) {
  const OwnContext a;
  OwnContext mortal;
  cuguest_ref ref = CUGUEST_REF_INIT;
  BOOST_TEST(cuguest_push_ref(&ref) == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(cuguest_push_ref(nullptr) == CUDA_ERROR_INVALID_VALUE);
  BOOST_TEST_REQUIRE(cuguest_ref_borrow(&ref, mortal.get()) == 0);
  SetStack({a.get()});
  BOOST_TEST(cuguest_push_ref(&ref) == 0);
  BOOST_TEST(cuguest_push_ref(&ref) == 0);  // not elided
  BOOST_TEST(GetStack() == (Stack{a.get(), mortal.get(), mortal.get()}));
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == Stack{a.get()});
  TheDriver().CtxDestroy(mortal.release());
  std::optional<OwnContext> stranger;
  if (cuguest_test::HasDriver(12000)) stranger.emplace();  // on the simulation at the same handle
  BOOST_TEST(cuguest_push_ref(&ref) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(Records() == 0U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(pair_survives_a_failed_pop, *cuguest_test::OnlySim()) {
  const OwnContext a;
  const OwnContext b;
  SetStack({});
  BOOST_TEST(cuguest_push(a.get()) == 0);
  Pair(b.get());
  cudasim::Sim::FailCall("cuCtxPopCurrent", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST(cuguest_pop() == 0);
  cudasim::Sim::ClearFaults();
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
}

// The host asked for it before it called the library.
BOOST_AUTO_TEST_CASE(a_push_below_every_guard_stays) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get()});
  BOOST_TEST(cuguest_push(b.get()) == 0);
  {
    const ContextGuard guard(c.get());
    const HostScope host(guard);
    BOOST_TEST(host.ok());
    BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  }
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

// What follows was found by random_scopes_test.cc.

// The host's own entries, and those of scopes, look like what an ended pair left.
BOOST_AUTO_TEST_CASE(pair_search_stops_at_its_scope) {
  const OwnContext a;
  const OwnContext c;
  SetStack({a.get(), c.get()});
  {
    ContextGuard guard(a.get());
    Pair(c.get());
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack() == (Stack{a.get(), c.get()}));
  SetStack({a.get()});
  {
    cuguest::ExactGuard guard(a.get());
    Pair(a.get());
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  }
  SetStack({});
  {
    ContextGuard outer(a.get());
    ContextGuard guard(a.get());
    BOOST_TEST(cuguest_push(c.get()) == 0);
    BOOST_TEST(cuguest_push(a.get()) == 0);
    BOOST_TEST(guard.Leave() == CUDA_ERROR_NOT_READY);
    BOOST_TEST(cuguest_pop() == 0);
    BOOST_TEST(cuguest_pop() == 0);
    BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
  }
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
}

// The inner one of two is gone, and what the outer one left, with the host's below, looks like it.
BOOST_AUTO_TEST_CASE(the_push_on_top_is_there) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get(), b.get()});
  BOOST_TEST(cuguest_push(a.get()) == 0);
  Pair(b.get());
  { const HostScope host; }
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), a.get()}));
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

// Of pairs that were popped by hand and scopes that entered the same contexts, the entries that are
// there are of the scopes.
BOOST_AUTO_TEST_CASE(scope_is_distinguished_from_ended_pairs) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const bool is_pair_inside : {false, true}) {
    SetStack({a.get()});
    BOOST_TEST(cuguest_push(b.get()) == 0);
    BOOST_TEST(cuguest_push(a.get()) == 0);
    if (!is_pair_inside) {
      PopByHand();
      PopByHand();
    }
    {
      ContextGuard guard(b.get());
      BOOST_TEST(cuguest_push(is_pair_inside ? a.get() : c.get()) == 0);
      if (is_pair_inside) PopByHand();
      BOOST_TEST(guard.Leave() == (is_pair_inside ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY));
      BOOST_TEST(cuguest_pop() == 0);
      if (is_pair_inside) BOOST_TEST(cuguest_pop() == 0);
    }
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(Records() == 0U);
    BOOST_TEST(TakeIncidents().empty());
  }
  SetStack({a.get()});
  BOOST_TEST(cuguest_push(b.get()) == 0);
  {
    const ContextGuard waits(a.get());
    Pair(b.get());
    BOOST_TEST(cuguest_push(b.get()) == 0);
    BOOST_TEST(cuguest_push(a.get()) == 0);
    PopByHand();
    PopByHand();
  }
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

// The host's entries look like what the pairs left: but then an older push could not have found
// what it found.
BOOST_AUTO_TEST_CASE(pair_is_distinguished_from_hosts_entries) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  SetStack({a.get(), b.get(), c.get()});
  for (const CUcontext pushed : {a.get(), b.get(), c.get()}) BOOST_TEST(cuguest_push(pushed) == 0);
  PopByHand();
  PopByHand();
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get(), c.get()}));
  for (const Stack& host : {Stack{b.get(), a.get()}, Stack{b.get(), a.get(), c.get()}}) {
    SetStack(host);
    BOOST_TEST(cuguest_push(b.get()) == 0);
    BOOST_TEST(cuguest_push(a.get()) == 0);
    PopByHand();
    PopByHand();
    { const HostScope scope; }
    BOOST_TEST(GetStack() == host);
    BOOST_TEST(Records() == 0U);
  }
  SetStack({a.get(), b.get()});
  {
    const ContextGuard outer(a.get());
    BOOST_TEST(cuguest_push(b.get()) == 0);
    BOOST_TEST(cuguest_push(a.get()) == 0);
    PopByHand();
    PopByHand();
    const ContextGuard inner(c.get());
    const HostScope scope(outer);
    BOOST_TEST(scope.ok());
  }
  BOOST_TEST(GetStack() == (Stack{a.get(), b.get()}));
  SetStack({b.get(), a.get()});
  BOOST_TEST(cuguest_push(b.get()) == 0);
  {
    ContextGuard guard(b.get());
    BOOST_TEST(cuguest_push(a.get()) == 0);
    BOOST_TEST(cuguest_push(b.get()) == 0);
    PopByHand();
    PopByHand();
    BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  }
  BOOST_TEST(cuguest_pop() == 0);
  BOOST_TEST(GetStack() == (Stack{b.get(), a.get()}));
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(scope_waiting_for_pair_is_closed) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  for (const bool is_elsewhere : {false, true}) {
    SetStack({a.get()});
    ContextGuard outer(b.get());
    ContextGuard inner(c.get());
    BOOST_TEST(cuguest_push(b.get()) == 0);
    const auto end = [&] { BOOST_TEST(inner.Leave() == CUDA_ERROR_NOT_READY); };
    if (is_elsewhere) std::thread(end).join();
    if (!is_elsewhere) end();
    PopByHand();
    BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
    BOOST_TEST(GetStack() == Stack{a.get()});
    BOOST_TEST(Records() == 0U);
    BOOST_TEST(TakeIncidents().size() == (is_elsewhere ? 1U : 0U));
  }
  // With no scope around it by the next guard's end.
  ContextGuard guard(b.get());
  BOOST_TEST(cuguest_push(c.get()) == 0);
  BOOST_TEST(guard.Leave() == CUDA_ERROR_NOT_READY);
  PopByHand();
  { const ContextGuard next(c.get()); }
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(Records() == 0U);
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_capture_mode_hides_no_pair) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard guard(b.get());
  BOOST_TEST(cuguest_push(a.get()) == 0);
  const cuguest::CaptureModeGuard relaxed(CU_STREAM_CAPTURE_MODE_RELAXED);
  PopByHand();
  BOOST_TEST(guard.Leave() == CUDA_SUCCESS);
  BOOST_TEST(GetStack() == Stack{a.get()});
  BOOST_TEST(TakeIncidents().empty());
  SetStack({});
}

// Then there is no host's context to go back to, and the code is that.
BOOST_AUTO_TEST_CASE(host_scope_reports_destroyed_host_context) {
  OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  Pair(b.get());
  std::thread([&] { TheDriver().CtxDestroy(a.release()); }).join();
  BOOST_TEST(HostScope().result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  static_cast<void>(TakeIncidents());
  SetStack({});
  OwnContext::DestroyIdle();
}

BOOST_AUTO_TEST_SUITE_END()
