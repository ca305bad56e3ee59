// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that make, attach, copy and give back shared contexts at random, beside a host that makes
// and destroys contexts of its own; all of them at a few handles, which the driver gives out again
// and again, and which the threads also have from before. At the end of each round nobody moves,
// and the model looks: what was made for sharing and is held is alive, has one count, and is nobody
// else's; what nobody holds is gone; what is the host's is as the host left it.
//
//   CUGUEST_TEST_SEEDS     how many, from 1 on
//   CUGUEST_TEST_ROUNDS    of each seed

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/shared_context.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(random_sharing, *cuguest_test::OnlySim())

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::SharedContext;
using cuguest_test::TheDriver;

constexpr int kThreads = 4;
constexpr int kSteps = 12;  // of a thread in a round

int NumberOr(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// What all threads know: handles of contexts that there are or were, and which were made for
// sharing.
class Known {
 public:
  void Add(const ContextRef& context, bool is_shared) {
    const std::lock_guard<std::mutex> lock(mutex_);
    refs_.push_back(context);
    if (refs_.size() > 8) refs_.erase(refs_.begin());
    if (is_shared) shared_.insert(context.id());
  }
  ContextRef Any(std::mt19937* random) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return refs_.empty() ? ContextRef() : refs_[(*random)() % refs_.size()];
  }
  bool IsShared(const ContextRef& context) const { return shared_.count(context.id()) != 0; }

 private:
  std::mutex mutex_;
  std::vector<ContextRef> refs_;
  std::set<unsigned long long> shared_;
};

// Of calls that cannot fail. The test's own macros are not for threads.
std::atomic<int> g_failed{0};
void Expect(CUresult code) {
  if (code != CUDA_SUCCESS) ++g_failed;
}

void DestroyOfHost(std::vector<ContextRef>* of_host) {
  Expect(TheDriver().CtxDestroy(of_host->back().get()));
  of_host->pop_back();
}

class Player {
 public:
  Player(Known* known, unsigned seed) : known_(known), random_(seed) {}

  void Play() {
    for (int i = 0; i < kSteps; ++i) Step();
  }

  std::vector<SharedContext> held;
  std::vector<ContextRef> of_host;  // alive, and destroyed by this thread alone

 private:
  void Step() {
    switch (random_() % 8) {
      case 0:
        return Keep(SharedContext::Create(Device::Borrow(0)), true);
      case 1:
      case 2:
        return Keep(SharedContext::Attach(known_->Any(&random_).get()), false);
      case 3:
        return Keep(SharedContext::Attach(known_->Any(&random_)), false);
      case 4:
        if (!held.empty() && held.size() < 4) held.push_back(held[random_() % held.size()]);
        return;
      case 5:
        return MakeOrDestroy();
      default:
        if (held.empty()) return;
        std::swap(held[random_() % held.size()], held.back());
        held.pop_back();
    }
  }

  void Keep(SharedContext made, bool is_new) {
    if (!made.ok()) return;
    if (is_new) known_->Add(made.context(), true);
    if (held.size() < 4) held.push_back(std::move(made));
  }

  void MakeOrDestroy() {
    if (!of_host.empty()) return DestroyOfHost(&of_host);
    CUcontext context = nullptr;
    CUcontext popped = nullptr;
    Expect(TheDriver().CtxCreate(&context, 0, 0));
    Expect(TheDriver().CtxPopCurrent(&popped));
    of_host.push_back(ContextRef::Borrow(context));
    known_->Add(of_host.back(), false);
  }

  Known* const known_;
  std::mt19937 random_;
};

// Nobody moves. The number of contexts that are held and were made for sharing.
std::size_t Look(const std::vector<Player>& players, const Known& known) {
  std::map<unsigned long long, std::vector<const SharedContext*>> held;
  std::set<unsigned long long> of_host;
  for (const Player& player : players) {
    for (const SharedContext& one : player.held) held[one.context().id()].push_back(&one);
    for (const ContextRef& one : player.of_host) {
      of_host.insert(one.id());
      BOOST_TEST_REQUIRE(one.IsAlive());
    }
  }
  std::size_t shared = 0;
  for (const auto& [id, holders] : held) {
    const SharedContext& one = *holders.front();
    const bool is_shared = known.IsShared(one.context());
    BOOST_TEST_REQUIRE(one.context().IsAlive() == (is_shared || of_host.count(id) != 0));
    BOOST_TEST_REQUIRE((one.owner() == SharedContext::Owner::kShared) == is_shared);
    for (const SharedContext* const holder : holders) {
      BOOST_TEST_REQUIRE(holder->use_count() == holders.size());
    }
    if (is_shared) ++shared;
  }
  BOOST_TEST_REQUIRE(cudasim::Sim::Live().contexts == shared + of_host.size());
  return shared;
}

void PlayRounds(unsigned seed, int rounds) {
  Known known;
  std::vector<Player> players;
  for (unsigned i = 0; i < kThreads; ++i) players.emplace_back(&known, seed * kThreads + i);
  std::atomic<int> round{0};
  std::atomic<int> playing{0};
  std::vector<std::thread> threads;
  for (Player& player : players) {
    threads.emplace_back([&, rounds] {
      for (int mine = 1; mine <= rounds; ++mine) {
        while (round < mine) std::this_thread::yield();
        player.Play();
        --playing;
      }
    });
  }
  std::size_t shared = 0;
  for (int i = 1; i <= rounds; ++i) {
    playing = kThreads;
    round = i;
    while (playing != 0) std::this_thread::yield();
    shared += Look(players, known);
  }
  for (std::thread& thread : threads) thread.join();
  for (Player& player : players) {
    player.held.clear();
    while (!player.of_host.empty()) DestroyOfHost(&player.of_host);
  }
  BOOST_TEST(shared > 0U);
  BOOST_TEST(g_failed == 0);
  BOOST_TEST(cudasim::Sim::Live().contexts == 0U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(
    no_reference_is_stale,
    *cuguest_test::NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const int seeds = NumberOr("CUGUEST_TEST_SEEDS", 4);
  const int rounds = NumberOr("CUGUEST_TEST_ROUNDS", 500);
  for (int seed = 1; seed <= seeds; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) { PlayRounds(static_cast<unsigned>(seed), rounds); }
  }
}

BOOST_AUTO_TEST_SUITE_END()
