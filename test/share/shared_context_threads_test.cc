// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of SharedContext what several threads do at once, at random and stopped inside a driver call.

#include "cuguest/shared_context.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "test/share/watch.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(shared_context_threads)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::SharedContext;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::Watch;
using Owner = SharedContext::Owner;

SharedContext Create() { return SharedContext::Create(Device::Borrow(0)); }
SharedContext Attach(CUcontext context) { return SharedContext::Attach(context); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_million_rounds_by_64_threads) {
  constexpr int kThreads = 64;
  constexpr int kRounds = 1'000'000 / kThreads;
  const OwnContext theirs;
  const SharedContext ours = Create();
  const SharedContext foreign = Attach(theirs.get());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const SharedContext& mine = i % 2 == 0 ? ours : foreign;
      for (int round = 0; round < kRounds; ++round) {
        auto attached = SharedContext::Attach(mine.get());
        if (!attached.ok() || attached.use_count() < 2) ++wrong;
        if (round % 16 != 0) continue;
        const SharedContext copy = attached;
        if (!attached.Release().ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(ours.use_count() == 1);
  BOOST_TEST(foreign.use_count() == 1);
}

// The creator leaves while others copy and drop all the time: the count moves to them,
// and the last of them is the last holder.
BOOST_AUTO_TEST_CASE(creator_releases_while_others_copy) {
  constexpr int kThreads = 4;
  const int rounds = Sim::IsActive() ? 500 : 20;
  for (int round = 0; round < rounds; ++round) {
    SharedContext first = Create();
    Watch watch(first.get());
    std::vector<SharedContext> theirs(kThreads, first);
    BOOST_TEST(first.use_count() == 1u + kThreads);
    std::atomic<int> at_work{0};
    std::vector<std::thread> threads;
    for (SharedContext& mine : theirs) {
      threads.emplace_back([&mine, &at_work] {
        for (int i = 0; i < 300; ++i) {
          SharedContext copy = mine;
          if (i == 30) ++at_work;
          mine = std::move(copy);
        }
      });
    }
    while (at_work < kThreads / 2) std::this_thread::yield();
    first = SharedContext();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(theirs[0].use_count() == std::uint64_t{kThreads});
    BOOST_TEST(watch.IsAlive());
    SharedContext newcomer = Attach(theirs[0].get());
    theirs.resize(1);
    BOOST_TEST(newcomer.use_count() == 2u);
    theirs.clear();
    BOOST_TEST(watch.IsAlive());
    newcomer = SharedContext();
    BOOST_TEST(!watch.IsAlive());
  }
}

// The count goes to zero and back all the time: contexts are made, shared, and
// destroyed by the last holder, and attaching one that is on its way out is refused.
BOOST_AUTO_TEST_CASE(the_last_holder_races_with_newcomers) {
  const int rounds = Sim::IsActive() ? 2000 : 20;
  for (int round = 0; round < rounds; ++round) {
    SharedContext shared = Create();
    Watch watch(shared.get());
    const CUcontext context = shared.get();
    const ContextRef ref = shared.context();
    std::atomic<bool> go{false};
    std::atomic<int> joined{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        const auto attached = SharedContext::Attach(ref);
        if (!attached.ok()) return;
        ++joined;
        const ContextGuard guard(attached.get());  // alive as long as we hold it
        unsigned flags = 0;
        if (RAW(cuCtxGetFlags)(&flags) != CUDA_SUCCESS) joined = -100;
      });
    }
    go = true;
    shared = SharedContext();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(joined >= 0, "a context was destroyed while it was attached");
    BOOST_TEST(!watch.IsAlive());
    BOOST_TEST(!SharedContext::Attach(context).ok());
  }
}

namespace {

std::atomic<int> g_stage{0};
thread_local bool t_stops = false;
thread_local int* t_calls = nullptr;

void Await(int stage) {
  while (g_stage < stage) std::this_thread::yield();
}

}  // namespace

// The last holder is in the driver's call that destroys it. Once that is over, the next context is
// made at its handle.
BOOST_AUTO_TEST_CASE(attach_refuses_context_being_destroyed, *OnlySim()) {
  g_stage = 0;
  SharedContext made = Create();
  const ContextRef ref = made.context();
  Sim::OnEveryCall([](const char* entry) {
    if (t_calls != nullptr) ++*t_calls;
    if (!t_stops || std::string(entry) != "cuCtxDestroy") return;
    g_stage = 1;
    Await(2);
  });
  std::thread last([&] {
    t_stops = true;
    BOOST_TEST(made.Release().ok());
  });
  Await(1);
  int calls = 0;
  t_calls = &calls;
  for (const auto& refused : {Attach(ref.get()), SharedContext::Attach(ref)}) {
    BOOST_TEST((refused.error().reason == cuguest::Error::Reason::kClosing));
    BOOST_TEST(refused.error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  t_calls = nullptr;
  BOOST_TEST(calls == 0);
  g_stage = 2;
  last.join();
  Sim::OnEveryCall(nullptr);
  SharedContext next = Create();
  BOOST_TEST(next.get() == ref.get());
  BOOST_TEST(Attach(ref.get()).use_count() == 2U);
  if (cuguest_test::HasDriver(12000)) BOOST_TEST(!SharedContext::Attach(ref).ok());
  BOOST_TEST(next.Release().ok());
}

// A holder of the handle from before asks the driver what is there, between the driver's making it
// and its maker's counting it: both count in one place, and the last one destroys it.
BOOST_AUTO_TEST_CASE(create_and_attach_count_together,
                     *OnlySim() *
                         cuguest_test::NeedsDriver(12000,
                                                   "cuCtxGetId: without ids it is counted apart")) {
  g_stage = 0;
  SharedContext made = Create();
  const CUcontext handle = made.get();
  BOOST_TEST(made.Release().ok());
  Sim::OnEveryCall([](const char* entry) {
    if (!t_stops || std::string(entry) != "cuCtxGetId") return;
    t_stops = false;
    g_stage = 1;
    Await(2);
  });
  SharedContext next;
  std::thread makes([&] {
    t_stops = true;
    next = Create();
  });
  Await(1);
  SharedContext attached = Attach(handle);
  g_stage = 2;
  makes.join();
  Sim::OnEveryCall(nullptr);
  BOOST_TEST(attached.ok());
  BOOST_TEST(next.get() == handle);
  BOOST_TEST(next.use_count() == 2U);
  BOOST_TEST((attached.owner() == Owner::kShared));
  const ContextRef ref = next.context();
  BOOST_TEST(next.Release().ok());
  BOOST_TEST(ref.IsAlive());
  BOOST_TEST(attached.Release().ok());
  BOOST_TEST(!ref.IsAlive());
}

BOOST_AUTO_TEST_SUITE_END()
