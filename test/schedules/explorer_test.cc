// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The explorer explores what it says: as many interleavings as there are, and of the classic litmus
// tests of memory models the outcomes that C++ allows and no others.

#include <array>
#include <functional>
#include <utility>

#include "test/schedules/cases.h"
#include "test/schedules/concurrency.h"

namespace {

using schedules::Bounds;
using schedules::Case;
using schedules::Expect;
using schedules::Group;
using schedules::kUnbounded;
using schedules::Require;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

constexpr Bounds kEvery = {};
constexpr Bounds kWeak = {kUnbounded, kUnbounded};

// Three atomics, a mutex, and what the threads read.
struct State {
  cuguest::internal::Atomic<int> x{0};
  cuguest::internal::Atomic<int> y{0};
  cuguest::internal::Atomic<int> z{0};
  cuguest::internal::Mutex mutex;
  cuguest::internal::Mutex other_mutex;
  cuguest::internal::ConditionVariable changed;
  std::array<int, 4> read{};
};

using Body = std::function<void(State&)>;

class Litmus : public schedules::Program {
 public:
  Litmus(std::vector<Body> threads, Body finish)
      : threads_(std::move(threads)), finish_(std::move(finish)) {}
  int Threads() const override { return static_cast<int>(threads_.size()); }
  void Run(int thread) override { threads_[static_cast<std::size_t>(thread)](state_); }
  void Finish() override { finish_(state_); }

 private:
  State state_;
  std::vector<Body> threads_;
  Body finish_;
};

// Expects that `happens` is, or is not, the outcome of some execution.
Group Outcome(const char* name, Bounds bounds, bool is_possible, const std::vector<Body>& threads,
              const std::function<bool(State&)>& happens, std::uint64_t executions = 0) {
  const Body finish = [happens](State& state) { Require(!happens(state), "it happens"); };
  const Expect expect = is_possible ? Expect::kFailure : Expect::kSuccess;
  return {name,
          {{name, [=] { return std::make_unique<Litmus>(threads, finish); }, bounds, executions}},
          expect};
}

bool Never(State&) { return false; }

Group Count(const char* name, Bounds bounds, const std::vector<Body>& threads,
            std::uint64_t executions) {
  return Outcome(name, bounds, false, threads, &Never, executions);
}

std::vector<Body> StoreBuffering(std::memory_order order) {
  return {[=](State& s) {
            s.x.store(1, order);
            s.read[0] = s.y.load(order);
          },
          [=](State& s) {
            s.y.store(1, order);
            s.read[1] = s.x.load(order);
          }};
}
bool BothReadZero(State& s) { return s.read[0] == 0 && s.read[1] == 0; }

std::vector<Body> MessagePassing(std::memory_order store, std::memory_order load) {
  return {[=](State& s) {
            s.x.store(1, kRelaxed);
            s.y.store(1, store);
          },
          [=](State& s) {
            s.read[0] = s.y.load(load);
            s.read[1] = s.x.load(kRelaxed);
          }};
}
bool MessageWithoutContent(State& s) { return s.read[0] == 1 && s.read[1] == 0; }

// The message is read from an exchange by a third thread, which continues the release sequence.
std::vector<Body> ReleaseSequence(std::memory_order exchange) {
  return {[](State& s) {
            s.x.store(1, kRelaxed);
            s.y.store(1, kRelease);
          },
          [=](State& s) { s.y.fetch_add(1, exchange); },
          [](State& s) {
            s.read[0] = s.y.load(kAcquire) == 2 ? 1 : 0;
            s.read[1] = s.x.load(kRelaxed);
          }};
}

std::vector<Body> IndependentReads(std::memory_order store, std::memory_order load) {
  return {[=](State& s) { s.x.store(1, store); }, [=](State& s) { s.y.store(1, store); },
          [=](State& s) {
            s.read[0] = s.x.load(load);
            s.read[1] = s.y.load(load);
          },
          [=](State& s) {
            s.read[2] = s.y.load(load);
            s.read[3] = s.x.load(load);
          }};
}
bool StoresInTwoOrders(State& s) { return s.read == std::array<int, 4>{1, 0, 1, 0}; }

void IncrementBadly(State& s) { s.x.store(s.x.load() + 1); }
void IncrementTwice(State& s) {
  s.x.fetch_add(1);
  s.x.fetch_add(1);
}
void IncrementOwn(State& s) {
  auto& own = schedules::ThisThread() == 0 ? s.x : s.y;
  own.fetch_add(1);
  own.fetch_add(1);
}
void IncrementLocked(State& s) {
  const std::lock_guard<cuguest::internal::Mutex> lock(s.mutex);
  IncrementBadly(s);
}

std::vector<Group> Groups() {
  const Bounds no_preemption = {0};
  const Bounds one_preemption = {1};
  const Bounds two_preemptions = {2};
  return {
      // Of the orders of 2 + 2 dependent steps there are 6; of independent ones, one is enough.
      Count("dependent_steps_are_interleaved", kEvery, {&IncrementTwice, &IncrementTwice}, 6),
      Count("independent_steps_are_not", kEvery, {&IncrementOwn, &IncrementOwn}, 1),
      Count("three_threads", kEvery, {&IncrementTwice, &IncrementTwice, &IncrementTwice}, 90),
      Count("sections_are_not_interleaved", kEvery, {&IncrementLocked, &IncrementLocked}, 2),
      // One of the two goes first, and is preempted after its first step or not; so is the other.
      Count("without_preemption", no_preemption, {&IncrementTwice, &IncrementTwice}, 2),
      Count("with_one_preemption", one_preemption, {&IncrementTwice, &IncrementTwice}, 4),
      Count("with_two_preemptions", two_preemptions, {&IncrementTwice, &IncrementTwice}, 6),

      Outcome("a_lost_update_is_found", kEvery, true, {&IncrementBadly, &IncrementBadly},
              [](State& s) { return s.x.load() == 1; }),
      Outcome("not_without_preemption", no_preemption, false, {&IncrementBadly, &IncrementBadly},
              [](State& s) { return s.x.load() == 1; }),
      Outcome("with_one_it_is", one_preemption, true, {&IncrementBadly, &IncrementBadly},
              [](State& s) { return s.x.load() == 1; }),
      Outcome("a_mutex_excludes", kWeak, false, {&IncrementLocked, &IncrementLocked},
              [](State& s) { return s.x.load() != 2; }),
      Outcome("a_deadlock_is_found", kEvery, true,
              {[](State& s) {
                 s.mutex.lock();
                 s.other_mutex.lock();
               },
               [](State& s) {
                 s.other_mutex.lock();
                 s.mutex.lock();
               }},
              &Never),
      Outcome("a_wait_ends", kWeak, false,
              {[](State& s) {
                 std::unique_lock<cuguest::internal::Mutex> lock(s.mutex);
                 s.changed.wait(lock, [&] { return s.x.load(kRelaxed) == 1; });
               },
               [](State& s) {
                 {
                   const std::lock_guard<cuguest::internal::Mutex> lock(s.mutex);
                   s.x.store(1, kRelaxed);
                 }
                 s.changed.notify_all();
               }},
              &Never),
      Outcome("a_lost_wake_up_is_found", kEvery, true,
              {[](State& s) {
                 std::unique_lock<cuguest::internal::Mutex> lock(s.mutex);
                 s.changed.wait(lock, [&] { return s.x.load(kRelaxed) == 1; });
               },
               [](State& s) {
                 s.x.store(1, kRelaxed);
                 s.changed.notify_all();
               }},
              &Never),
      Outcome("an_endless_loop_is_found", kEvery, true, {[](State& s) {
                while (s.x.load() == 0) {
                }
              }},
              &Never),

      Outcome("store_buffering_interleaved", kEvery, false, StoreBuffering(kRelaxed),
              &BothReadZero),
      Outcome("store_buffering_relaxed", kWeak, true, StoreBuffering(kRelaxed), &BothReadZero),
      Outcome("store_buffering_release_acquire", kWeak, true,
              {[](State& s) {
                 s.x.store(1, kRelease);
                 s.read[0] = s.y.load(kAcquire);
               },
               [](State& s) {
                 s.y.store(1, kRelease);
                 s.read[1] = s.x.load(kAcquire);
               }},
              &BothReadZero),
      Outcome("store_buffering_sequential", kWeak, false, StoreBuffering(kSeqCst), &BothReadZero),
      Outcome("message_passing_relaxed", kWeak, true, MessagePassing(kRelaxed, kRelaxed),
              &MessageWithoutContent),
      Outcome("message_passing_no_acquire", kWeak, true, MessagePassing(kRelease, kRelaxed),
              &MessageWithoutContent),
      Outcome("message_passing_no_release", kWeak, true, MessagePassing(kRelaxed, kAcquire),
              &MessageWithoutContent),
      Outcome("message_passing", kWeak, false, MessagePassing(kRelease, kAcquire),
              &MessageWithoutContent),
      Outcome("release_sequence", kWeak, false, ReleaseSequence(kRelaxed), &MessageWithoutContent),
      Outcome("coherence", kWeak, false,
              {[](State& s) {
                 s.x.store(1, kRelaxed);
                 s.x.store(2, kRelaxed);
               },
               [](State& s) {
                 s.read[0] = s.x.load(kRelaxed);
                 s.read[1] = s.x.load(kRelaxed);
               }},
              [](State& s) { return s.read[0] > s.read[1]; }),
      Outcome("modification_reads_the_newest", kWeak, false,
              {[](State& s) { s.x.fetch_add(1, kRelaxed); },
               [](State& s) { s.x.fetch_add(1, kRelaxed); }},
              [](State& s) { return s.x.load() != 2; }),
      Outcome("causality_through_a_third", kWeak, false,
              {[](State& s) {
                 s.x.store(1, kRelaxed);
                 s.y.store(1, kRelease);
               },
               [](State& s) {
                 if (s.y.load(kAcquire) == 1) s.z.store(1, kRelease);
               },
               [](State& s) {
                 s.read[0] = s.z.load(kAcquire);
                 s.read[1] = s.x.load(kRelaxed);
               }},
              &MessageWithoutContent),
      Outcome("independent_reads_acquire", kWeak, true, IndependentReads(kRelease, kAcquire),
              &StoresInTwoOrders),
      Outcome("independent_reads_sequential", kWeak, false, IndependentReads(kSeqCst, kSeqCst),
              &StoresInTwoOrders),
      Outcome("exchange_acquires_and_releases", kWeak, false,
              {[](State& s) {
                 s.x.store(1, kRelaxed);
                 s.y.fetch_add(1, kAcqRel);
               },
               [](State& s) {
                 s.read[0] = s.y.fetch_add(1, kAcqRel);
                 s.read[1] = s.x.load(kRelaxed);
               }},
              &MessageWithoutContent),
  };
}

}  // namespace

std::vector<schedules::Group> schedules::Groups() { return ::Groups(); }
