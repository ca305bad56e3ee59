// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `Cost:` lines of the guards' headers, counted on the simulated driver; and what scopes
// allocate: nothing, unless they are more than 16 deep.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/exact_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/no_context_guard.h"
#include "test/support/test.h"

namespace {

// Of this thread, while `g_count` is set.
thread_local bool g_count = false;
thread_local int g_allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  if (g_count) ++g_allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

// The blocks that records of deep scopes are in. A sanitizer has functions of its own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_OWN_CALLOC 1
namespace {
thread_local bool g_has_memory = true;
thread_local int g_blocks = 0;
}  // namespace
extern "C" void* __libc_calloc(std::size_t count, std::size_t bytes);
extern "C" void* calloc(std::size_t count, std::size_t bytes) {
  ++g_blocks;
  return g_has_memory ? __libc_calloc(count, bytes) : nullptr;
}
#endif

namespace {

using cudasim::Sim;
using cuguest::AcquiredGuard;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::ExactGuard;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::NoContextGuard;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

// The driver calls of `work`, which must allocate nothing outside the simulation.
template <typename Work>
std::uint64_t CallsOf(Work work) {
  work();  // resolves the table, and grows the simulation's stack once and for all
  Sim::ResetCalls();
  g_allocations = 0;
  g_count = true;
  work();
  g_count = false;
  BOOST_TEST(g_allocations == 0);
  return Sim::TotalCalls();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(guard_cost, *cuguest_test::OnlySim())

BOOST_AUTO_TEST_CASE(an_elided_guard_is_two_queries) {
  const OwnContext a;
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(a.get()); }) == 2U);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 2U);
  SetStack({});
}

// A query before the push, and one after the pop.
BOOST_AUTO_TEST_CASE(a_switched_guard_is_four_calls) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(b.get()); }) == 4U);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 2U);
  BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
  BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 1U);
  SetStack({});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(b.get()); }) == 4U, "on an empty stack");
}

const char* IdCall() {
  return cuguest_test::HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion";
}

BOOST_AUTO_TEST_CASE(a_ref_that_switches_costs_one_query_more) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(ref); }) == 5U);
  BOOST_TEST(Sim::Calls(IdCall()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_ref_that_is_elided_costs_one_query_more) {
  const OwnContext a;
  const ContextRef ref = ContextRef::Borrow(a.get());
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(ref); }) == 3U);
  BOOST_TEST(Sim::Calls(IdCall()) == 1U);
  SetStack({});
}

// What it said is the guard's result; and a second answer could hide it.
BOOST_AUTO_TEST_CASE(a_query_that_fails_is_not_repeated) {
  const OwnContext a;
  const OwnContext b;
  const ContextRef ref = ContextRef::Borrow(a.get());
  const auto calls_if_fails = [&](const char* entry) {
    Sim::ResetCalls();
    Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
    const ContextGuard guard(ref);
    BOOST_TEST(guard.result() == CUDA_ERROR_OPERATING_SYSTEM);
    return Sim::TotalCalls();
  };
  for (CUcontext const caller : {a.get(), b.get()}) {
    SetStack({caller});
    BOOST_TEST(calls_if_fails("cuCtxGetCurrent") == 1U);
    BOOST_TEST(calls_if_fails(IdCall()) == 2U);
    Sim::ClearFaults();
    BOOST_TEST((GetStack() == std::vector<CUcontext>{caller}));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(always_push_is_four_calls) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(a.get(), GuardMode::kAlwaysPush); }) == 4U);
  BOOST_TEST(CallsOf([&] { const ContextGuard guard(b.get(), GuardMode::kAlwaysPush); }) == 4U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(exact_grows_with_the_stack) {
  const OwnContext a;
  const auto exact = [&] { const ExactGuard guard(a.get()); };
  const std::uint64_t empty = CallsOf(exact);
  SetStack({a.get()});
  const std::uint64_t one = CallsOf(exact);
  SetStack({a.get(), a.get()});
  BOOST_TEST(CallsOf(exact) - one == one - empty);
  BOOST_TEST(one - empty <= 10U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_guard_of_a_device_is_three_queries_where_its_context_was_seen,
                     *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext a;
  const OwnContext b;
  const auto enter = [] { const AcquiredGuard guard(Device::Borrow(0)); };
  SetStack({a.get()});
  BOOST_TEST(CallsOf(enter) == 3U);
  BOOST_TEST(Sim::Calls("cuCtxGetId") == 1U);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 2U);
  SetStack({b.get()});
  Sim::ResetCalls();
  enter();
  BOOST_TEST(Sim::TotalCalls() == 4U, "of another context than the last one's");
  SetStack({});
}

BOOST_AUTO_TEST_CASE(reassert_is_one_query) {
  const OwnContext a;
  SetStack({a.get()});
  ContextGuard guard(a.get());
  BOOST_TEST(CallsOf([&] { static_cast<void>(guard.Reassert()); }) == 1U);
  static_cast<void>(guard.Leave());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(an_empty_guard_calls_nothing) {
  BOOST_TEST(CallsOf([] {
               ContextGuard guard;
               static_cast<void>(guard.Leave());
               static_cast<void>(guard.Reassert());
             }) == 0U);
}

// The rows of Note [Moving to another context], without the ends of the scopes.
BOOST_AUTO_TEST_CASE(a_move_is_three_calls) {
  const OwnContext a;
  const OwnContext b;
  const OwnContext c;
  const ContextRef to_a = ContextRef::Borrow(a.get());
  const ContextRef to_b = ContextRef::Borrow(b.get());
  SetStack({a.get()});
  const auto calls_of = [](ContextGuard& guard, auto to) {
    Sim::ResetCalls();
    BOOST_TEST(guard.MoveTo(to) == CUDA_SUCCESS);
    return Sim::TotalCalls();
  };
  const bool has_ids = cuguest_test::HasDriver(12000);
  {
    ContextGuard guard;
    BOOST_TEST(calls_of(guard, b.get()) == 2U, "enters");
    BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
    BOOST_TEST(calls_of(guard, b.get()) == 1U, "is there");
    BOOST_TEST(calls_of(guard, to_b) == (has_ids ? 1U : 2U), "is there, by reference");
    BOOST_TEST(calls_of(guard, c.get()) == 3U, "replaces its entry");
    BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 1U);
    BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
    BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
    BOOST_TEST(calls_of(guard, to_b) == 4U, "replaces it, by reference");
    BOOST_TEST(Sim::Calls(IdCall()) == 1U);
    BOOST_TEST(calls_of(guard, a.get()) == 2U, "back to the caller's");
    BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 1U);
    BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
    BOOST_TEST(guard.elided());
    BOOST_TEST(calls_of(guard, a.get()) == 1U, "is there, elided");
    BOOST_TEST(calls_of(guard, c.get()) == 2U, "on from the caller's");
    BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1U);
    BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1U);
    BOOST_TEST(calls_of(guard, to_a) == 3U, "back to the caller's, by reference");
    BOOST_TEST(calls_of(guard, to_b) == 3U, "on from the caller's, by reference");
  }
  SetStack({});
  const auto loop = [&] {
    ContextGuard guard;
    for (const CUcontext context : {b.get(), b.get(), c.get(), b.get()}) {
      static_cast<void>(guard.MoveTo(context));
    }
  };
  BOOST_TEST(CallsOf(loop) == 11U);
  BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 3U);
  BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 3U);
}

BOOST_AUTO_TEST_CASE(a_scope_costs_what_a_guard_does) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const auto enter_and_leave = [](CUcontext context, GuardMode mode) {
    ContextScope scope;
    static_cast<void>(scope.Enter(context, mode));
    ContextScope moved(std::move(scope));
    static_cast<void>(moved.Leave());
  };
  BOOST_TEST(CallsOf([&] { enter_and_leave(a.get(), GuardMode::kElide); }) == 2U);
  BOOST_TEST(CallsOf([&] { enter_and_leave(b.get(), GuardMode::kElide); }) == 4U);
  BOOST_TEST(CallsOf([&] { enter_and_leave(a.get(), GuardMode::kAlwaysPush); }) == 4U);
  BOOST_TEST(CallsOf([] { const ContextScope never_entered; }) == 0U);
  SetStack({});
}

// And finding out whether the context is alive; the first time for a raw handle, which it was.
BOOST_AUTO_TEST_CASE(a_host_scope_is_leaving_and_entering) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard elided(a.get());
  Sim::ResetCalls();
  { const HostScope host(elided); }
  BOOST_TEST(Sim::TotalCalls() == 4U, "which incarnation it is, for the first time");
  BOOST_TEST(CallsOf([&] { const HostScope host(elided); }) == 3U);
  BOOST_TEST(Sim::Calls(IdCall()) == 1U);
  static_cast<void>(elided.Leave());
  ContextGuard pushed(b.get());
  BOOST_TEST(CallsOf([&] { const HostScope host(pushed); }) == 5U);
  // One query more for one that pushed and is not the innermost.
  ContextGuard inner(b.get());
  BOOST_TEST(CallsOf([&] { const HostScope host(pushed); }) == 3U + 5U + 1U);
  static_cast<void>(inner.Leave());
  static_cast<void>(pushed.Leave());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_pair_of_c_is_four_calls) {
  const OwnContext a;
  SetStack({a.get()});
  for (const bool elides : {false, true}) {
    BOOST_TEST(CallsOf([&] {
                 cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
                 const int mode = elides ? CUGUEST_ELIDE : CUGUEST_ALWAYS_PUSH;
                 const int code = cuguest_guard_enter(&guard, a.get(), mode, CUGUEST_HERE);
                 BOOST_TEST(code == CUDA_SUCCESS);
                 cuguest_guard_leave(&guard);
               }) == (elides ? 2U : 4U));
  }
  BOOST_TEST(CallsOf([&] { BOOST_TEST(cuguest_push(a.get()) == CUDA_SUCCESS); }) == 2U);
  BOOST_TEST(CallsOf([] { cuguest_pop(); }) == 2U);
  cuguest_ref ref = CUGUEST_REF_INIT;
  BOOST_TEST(cuguest_ref_borrow(&ref, a.get()) == 0);
  BOOST_TEST(CallsOf([&] { BOOST_TEST(cuguest_push_ref(&ref) == CUDA_SUCCESS); }) == 3U);
  BOOST_TEST(CallsOf([] { cuguest_pop(); }) == 2U);
  BOOST_TEST(CallsOf([] { BOOST_TEST(cuguest_pop() == CUDA_ERROR_ILLEGAL_STATE); }) == 0U);
  BOOST_TEST(GetStack().size() == 1U);
  SetStack({});
}

// Out of turn nothing is asked; what is closed is what the ends in turn would have cost.
BOOST_AUTO_TEST_CASE(an_end_out_of_turn_calls_nothing) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  ContextGuard outer(b.get());
  ContextGuard inner(a.get());
  Sim::ResetCalls();
  BOOST_TEST(outer.Leave() == CUDA_ERROR_NOT_READY);
  BOOST_TEST(Sim::TotalCalls() == 0U);
  BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
  BOOST_TEST(Sim::TotalCalls() == 4U);
  BOOST_TEST(inner.Leave() == CUDA_SUCCESS);
  BOOST_TEST(outer.Leave() == CUDA_SUCCESS);
  BOOST_TEST(Sim::TotalCalls() == 4U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(no_context_on_an_empty_stack_is_two_queries_and_grows_with_the_stack) {
  BOOST_TEST(CallsOf([] { const NoContextGuard none; }) == 2U);
  const OwnContext a;
  SetStack({a.get()});
  const std::uint64_t one = CallsOf([] { const NoContextGuard none; });
  SetStack({a.get(), a.get()});
  BOOST_TEST(CallsOf([] { const NoContextGuard none; }) - one == 5U);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_refused_guard_calls_nothing) {
  BOOST_TEST(CallsOf([] {
               const ContextGuard guard(static_cast<CUcontext>(nullptr));
               static_cast<void>(guard.ok());
             }) == 0U);
}

#ifdef HAS_OWN_CALLOC

namespace {

// Guards in one another, the last of which is refused if there is no memory for it.
class Nest {
 public:
  CUresult Enter(CUcontext context, GuardMode mode = GuardMode::kElide) {
    guards_.push_back(std::make_unique<ContextGuard>(context, mode));
    return guards_.back()->result();
  }
  void EndInOrder(bool forward) {
    if (!forward) std::reverse(guards_.begin(), guards_.end());
    for (const auto& guard : guards_) static_cast<void>(guard->Leave());
    guards_.clear();
  }

 private:
  std::vector<std::unique_ptr<ContextGuard>> guards_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(deeper_than_sixteen_allocates) {
  const OwnContext a;
  const OwnContext b;
  for (const bool forward : {false, true}) {
    for (const int depth : {1, 16, 17, 1000}) {
      std::thread([&] {
        SetStack({a.get()});
        Nest nest;
        g_blocks = 0;
        for (int i = 0; i < depth; ++i) {
          BOOST_TEST(nest.Enter(i % 3 == 0 ? a.get() : b.get()) == CUDA_SUCCESS);
        }
        BOOST_TEST(g_blocks == (depth - 1) / 16);  // of 16 records each
        nest.EndInOrder(forward);
        BOOST_TEST((GetStack() == std::vector<CUcontext>{a.get()}));
        // The memory went back: the next one asks for it again.
        g_blocks = 0;
        for (int i = 0; i < 17; ++i) BOOST_TEST(nest.Enter(a.get()) == CUDA_SUCCESS);
        BOOST_TEST(g_blocks == 1);
        nest.EndInOrder(forward);
        SetStack({});
      }).join();
    }
  }
}

BOOST_AUTO_TEST_CASE(one_more_where_a_block_is_full_allocates_once) {
  const OwnContext a;
  std::thread([&] {
    SetStack({a.get()});
    Nest nest;
    for (int i = 0; i < 32; ++i) BOOST_TEST(nest.Enter(a.get()) == CUDA_SUCCESS);
    g_blocks = 0;
    for (int i = 0; i < 10; ++i) BOOST_TEST(ContextGuard(a.get()).ok());
    BOOST_TEST(g_blocks == 1);
    nest.EndInOrder(false);
    SetStack({});
  }).join();
}

// What a pair in line needs is near at any depth, once the first one there has brought it.
BOOST_AUTO_TEST_CASE(a_pair_is_in_line_at_any_depth) {
  const OwnContext a;
  const OwnContext b;
  std::thread([&] {
    SetStack({a.get()});
    auto& here = *cuguest::internal::CallingThread();
    Nest nest;
    for (int depth = 0; depth < 100; ++depth) {
      for (const CUcontext context : {a.get(), b.get()}) {
        BOOST_TEST(ContextGuard(context).ok());
        const unsigned first = here.first;
        BOOST_TEST(here.IsReady(), "at depth " << depth);
        BOOST_TEST(ContextGuard(context).ok());
        BOOST_TEST(here.first == first, "at depth " << depth);
      }
      BOOST_TEST(nest.Enter(depth % 3 == 0 ? a.get() : b.get()) == CUDA_SUCCESS);
    }
    nest.EndInOrder(false);
    BOOST_TEST(here.first == 0U);
    BOOST_TEST((GetStack() == std::vector<CUcontext>{a.get()}));
    SetStack({});
  }).join();
}

BOOST_AUTO_TEST_CASE(without_memory_the_seventeenth_is_refused) {
  const OwnContext a;
  const OwnContext b;
  for (const bool forward : {false, true}) {
    for (const int depth : {16, 32}) {  // a block is for 16
      std::thread([&] {
        SetStack({a.get()});
        Nest nest;
        for (int i = 0; i < depth; ++i) {
          BOOST_TEST(nest.Enter(i % 2 == 0 ? b.get() : a.get()) == CUDA_SUCCESS);
        }
        const auto inside = GetStack();
        g_has_memory = false;
        Sim::ResetCalls();
        for (const GuardMode mode : {GuardMode::kElide, GuardMode::kAlwaysPush}) {
          const ContextGuard refused(b.get(), mode);
          BOOST_TEST(refused.result() == CUDA_ERROR_OUT_OF_MEMORY);
          BOOST_TEST(refused.advice() != std::string());
        }
        BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 0U);
        ContextScope scope;
        BOOST_TEST(scope.Enter(ContextRef::Borrow(b.get())) == CUDA_ERROR_OUT_OF_MEMORY);
        BOOST_TEST(scope.Leave() == CUDA_ERROR_ILLEGAL_STATE);
        const ExactGuard exact(b.get());
        BOOST_TEST(exact.result() == CUDA_ERROR_OUT_OF_MEMORY);
        const NoContextGuard none;
        BOOST_TEST(none.result() == CUDA_ERROR_OUT_OF_MEMORY);
        const HostScope host;
        BOOST_TEST(host.result() == CUDA_ERROR_OUT_OF_MEMORY);
        const cuguest::CaptureModeGuard relaxed;
        BOOST_TEST(relaxed.result() == CUDA_ERROR_OUT_OF_MEMORY);
        BOOST_TEST(cuguest_push(b.get()) == CUDA_ERROR_OUT_OF_MEMORY);
        BOOST_TEST((GetStack() == inside));
        g_has_memory = true;
        BOOST_TEST(nest.Enter(b.get()) == CUDA_SUCCESS);
        g_has_memory = false;  // no end needs any
        nest.EndInOrder(forward);
        g_has_memory = true;
        BOOST_TEST((GetStack() == std::vector<CUcontext>{a.get()}));
        SetStack({});
      }).join();
    }
  }
}

#endif

BOOST_AUTO_TEST_SUITE_END()
