// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A PerContext in a child of a fork, wherever the parent's threads were in it: another thread is
// stopped at each driver call and each lock that the library takes, or waits for the thread that
// forks, and that one is anywhere, or inside the cache itself: in what makes a value, in what ends
// one, or in a listener. In the child every function returns, values are found, none is made and
// none is dropped. What the parent does is as if nothing had been forked.

#include "cuguest/per_context.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/held_locks.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"
#include "test/support/stopped_thread.h"

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::IncidentListener;
using cuguest::PerContext;
using cuguest::PrimaryContext;
using cuguest_test::Fork;
using cuguest_test::MakeContext;
using cuguest_test::StoppedThread;

constexpr unsigned kSecondsToHang = 20;  // alarm() ends who takes longer

// -----------------------------------------------------------------------------
// Values
// -----------------------------------------------------------------------------

std::atomic<int> g_made{0};
std::atomic<int> g_destroyed{0};
std::atomic<int> g_given_up{0};

class Value {
 public:
  explicit Value(std::function<void()> at_end = nullptr) : at_end_(std::move(at_end)) { ++g_made; }
  Value(Value&& other) noexcept
      : at_end_(std::move(other.at_end_)), is_owner_(std::exchange(other.is_owner_, false)) {}
  ~Value() {
    if (!is_owner_) return;
    if (at_end_) at_end_();
    ++(is_given_up_ ? g_given_up : g_destroyed);
  }
  void Leak() noexcept { is_given_up_ = true; }

 private:
  std::function<void()> at_end_;
  bool is_owner_ = true;
  bool is_given_up_ = false;
};
using Cache = PerContext<Value>;

absl::StatusOr<Value> Make(const ContextRef&) { return Value(); }

// The cache has a value of `ready`, which nobody drops, and none of `never`.
struct World {
  std::unique_ptr<Cache> cache = std::make_unique<Cache>();
  ContextRef ready = Context(0);
  ContextRef never = Context(1);
  ContextRef own = Context(2);     // of the thread that forks
  ContextRef others = Context(3);  // of the other one

 private:
  static ContextRef Context(int index) {
    static const CUcontext s_contexts[] = {MakeContext(), MakeContext(), MakeContext(),
                                           MakeContext()};
    return ContextRef::Borrow(s_contexts[index]);
  }
};

// What the other thread does. It has no value there before and after it.
void Work(World* world) {
  Cache& cache = *world->cache;
  CHECK(cache.GetOrMake(world->others, &Make).ok());
  CHECK(cache.Forget(world->others));
  {
    const Cache::Pin pin = cache.GetOrMake(world->others, &Make).value();
    CHECK(cache.ForgetDestroyed(world->others));
  }
  static_cast<void>(cache.DropDead());
}

bool NamesTheFork(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition &&
         cuguest::CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED &&
         std::string(status.message()).find("forked") != std::string::npos;
}

void UseInChild(World* world) {
  Cache& cache = *world->cache;
  const int made = g_made;
  const int ended = g_destroyed + g_given_up;
  CHECK(NamesTheFork(cache.GetOrMake(world->never, &Make).status()));
  const std::size_t size = cache.size();
  for (const ContextRef* const context : {&world->ready, &world->own, &world->others}) {
    const bool is_there = static_cast<bool>(cache.Find(*context));
    CHECK(cache.GetOrMake(*context, &Make).ok() == is_there);
    CHECK(!cache.Forget(*context));
    CHECK(!cache.ForgetDestroyed(*context));
  }
  CHECK(cache.DropDead() == 0);
  CHECK(cache.ForgetAll() == 0);
  CHECK(cache.size() == size);
  CHECK(g_made == made);
  CHECK(g_destroyed + g_given_up == ended);
}

void UseAndEndInChild(World* world) {
  UseInChild(world);
  std::thread([world] { UseInChild(world); }).join();
  const int destroyed = g_destroyed;
  world->cache.reset();
  CHECK(g_destroyed == destroyed);
}

// -----------------------------------------------------------------------------
// Threads and forks
// -----------------------------------------------------------------------------

pid_t g_child = -1;  // the last one; in itself 0
bool IsChild() { return g_child == 0; }

void ForkHere() {
  std::fflush(stdout);
  g_child = fork();
  CHECK(g_child >= 0);
  if (IsChild()) alarm(kSecondsToHang);
}

// Both come back from where they forked. Here the child ends, with what it has to check.
void EndChild(const std::function<void()>& in_child) {
  if (IsChild()) {
    in_child();
    std::fflush(stdout);
    _exit(0);
  }
  CHECK(g_child > 0);
  int status = 0;
  CHECK(waitpid(g_child, &status, 0) == g_child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  g_child = -1;
}

// Calls run(fork) for each place of another thread that works with the cache, and once with none.
// `fork` forks while that thread is there.
using Forker = std::function<void()>;
void AtEachPlace(World* world, const std::function<void(const Forker&)>& run) {
  Sim::OnEveryCall([](const char*) { StoppedThread::Reach(); });
  cuguest_test::OnLockTaken(&StoppedThread::Reach);
  CHECK(world->cache->GetOrMake(world->ready, &Make).ok());
  const auto work = [world] { Work(world); };
  const int places = StoppedThread::CountPlaces(work);
  CHECK(places > (cuguest_test::SeesLocks() ? 30 : 15));
  run(&ForkHere);
  for (int place = 0; place < places; ++place) {
    run([&] {
      StoppedThread other(place, work);
      ForkHere();
      if (!IsChild()) other.End();
    });
  }
  std::printf("%d places\n", places);
}

// -----------------------------------------------------------------------------
// Scenarios
// -----------------------------------------------------------------------------

void AForkBesideACall() {
  World world;
  AtEachPlace(&world, [&](const Forker& fork) {
    fork();
    EndChild([&] { UseAndEndInChild(&world); });
  });
}

// The other thread has begun with the first value: it is inside a call, and there may be none yet.
void AForkBesideTheFirstCall() {
  Sim::OnEveryCall([](const char*) { StoppedThread::Reach(); });
  cuguest_test::OnLockTaken(&StoppedThread::Reach);
  World first;
  const int places = StoppedThread::CountPlaces([&first] { Work(&first); });
  for (int place = 0; place < places; ++place) {
    World world;
    StoppedThread other(place, [&world] { Work(&world); });
    ForkHere();
    if (!IsChild()) other.End();
    EndChild([&] { UseAndEndInChild(&world); });
  }
}

void AMakerThatForks() {
  World world;
  AtEachPlace(&world, [&](const Forker& fork) {
    for (const bool succeeds_in_child : {true, false}) {
      const int given_up = g_given_up;
      const auto pin =
          world.cache->GetOrMake(world.own, [&](const ContextRef&) -> absl::StatusOr<Value> {
            Value value;
            fork();
            if (IsChild()) UseInChild(&world);
            if (IsChild() && !succeeds_in_child) return absl::AbortedError("in the child");
            return value;
          });
      const int given_up_here = g_given_up - given_up;
      EndChild([&] {
        CHECK(succeeds_in_child ? NamesTheFork(ToStatus(pin)) : absl::IsAborted(pin.status()));
        CHECK(given_up_here == (succeeds_in_child ? 1 : 0));
        UseAndEndInChild(&world);
      });
      CHECK(pin.ok());
      CHECK(static_cast<bool>(world.cache->Find(world.own)));
      static_cast<void>(world.cache->Forget(world.own));  // pinned
    }
    CHECK(!static_cast<bool>(world.cache->Find(world.own)));
  });
}

// Calls run(fork) as AtEachPlace() does, where `fork` is called by what ends a value, or by a
// listener, which is called there.
void AtEachPlaceOfAnEnd(World* world, const std::function<void(const Forker&)>& run) {
  AtEachPlace(world, run);
  Forker fork;
  const auto call = [](const cuguest::Incident&, void* user) { (*static_cast<Forker*>(user))(); };
  const IncidentListener listener(+call, &fork);
  const CUcontext left_behind = MakeContext();
  AtEachPlace(world, [&](const Forker& in_listener) {
    int forks = 0;
    fork = [&] {
      if (forks++ == 0) in_listener();
    };
    run([left_behind] { CHECK(RAW(cuCtxPushCurrent)(left_behind) == CUDA_SUCCESS); });
  });
}

void AnEndInForgetThatForks() {
  World world;
  Cache& cache = *world.cache;
  const auto end = [&](const Forker& fork, const std::function<void()>& drop) {
    CHECK(cache.GetOrMake(world.own, [&](const ContextRef&) { return Value(fork); }).ok());
    drop();
    EndChild([&] { UseAndEndInChild(&world); });
    CHECK(!static_cast<bool>(cache.Find(world.own)));
  };
  AtEachPlaceOfAnEnd(
      &world, [&](const Forker& fork) { end(fork, [&] { CHECK(cache.Forget(world.own)); }); });
  AtEachPlace(&world, [&](const Forker& fork) {
    end(fork, [&] { CHECK(cache.ForgetDestroyed(world.own)); });
  });
}

void AnEndInForgetAllThatForks() {
  World world;
  Cache& cache = *world.cache;
  AtEachPlace(&world, [&](const Forker& fork) {
    CHECK(cache.GetOrMake(world.ready, &Make).ok());
    CHECK(cache.GetOrMake(world.own, [&](const ContextRef&) { return Value(fork); }).ok());
    CHECK(cache.ForgetAll() >= 1);
    EndChild([&] { UseAndEndInChild(&world); });
    CHECK(!static_cast<bool>(cache.Find(world.own)));
  });
}

// Of a primary context that was reset.
void AnEndInDropDeadThatForks() {
  World world;
  Cache& cache = *world.cache;
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  AtEachPlace(&world, [&](const Forker& fork) {
    const ContextRef context = ContextRef::Borrow(primary.get());
    CHECK(cache.GetOrMake(context, [&](const ContextRef&) { return Value(fork); }).ok());
    CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
    CHECK(cache.DropDead() == 1);
    EndChild([&] { UseAndEndInChild(&world); });
    CUcontext again = nullptr;
    CHECK(RAW(cuDevicePrimaryCtxRetain)(&again, 0) == CUDA_SUCCESS);
    CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  });
}

// What was dropped while it was pinned ends in a call that makes a value, before it is made.
void AnEndInGetOrMakeThatForks() {
  World world;
  Cache& cache = *world.cache;
  AtEachPlace(&world, [&](const Forker& fork) {
    auto pin = cache.GetOrMake(world.own, [&](const ContextRef&) {
      return Value([&] {
        if (g_child == -1) fork();
      });
    });
    CHECK(pin.ok());
    CHECK(cache.ForgetDestroyed(world.own));
    *pin = Cache::Pin();
    const ContextRef next = ContextRef::Borrow(MakeContext());
    const auto made = cache.GetOrMake(next, [](const ContextRef&) {
      CHECK(!IsChild());
      return Value();
    });
    EndChild([&] {
      CHECK(NamesTheFork(ToStatus(made)));
      UseAndEndInChild(&world);
    });
    CHECK(made.ok());
    static_cast<void>(cache.ForgetDestroyed(next));
  });
}

void AnEndWithTheCacheThatForks() {
  World world;
  CHECK(RAW(cuCtxPushCurrent)(world.own.get()) == CUDA_SUCCESS);
  for (const ContextRef* const context : {&world.ready, &world.own, &world.others}) {
    CHECK(world.cache
              ->GetOrMake(*context,
                          [context, &world](const ContextRef&) {
                            return Value(context == &world.own ? &ForkHere : nullptr);
                          })
              .ok());
  }
  world.cache.reset();
  const auto check = [] {
    CHECK(g_destroyed == 1);
    CHECK(g_given_up == 2);
  };
  EndChild(check);
  check();
}

// The other thread waits for what the thread that forks makes, and then for what it ends.
void AForkWithAWaitingThread() {
  World world;
  Cache& cache = *world.cache;
  CHECK(cache.GetOrMake(world.ready, &Make).ok());
  const auto fork_with = [](const std::function<void()>& waits) {
    const auto before = cuguest_test::LocksTaken();
    auto* const other = new std::thread(waits);
    while (cuguest_test::SeesLocks() && cuguest_test::LocksTaken() == before) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ForkHere();
    return other;
  };
  const auto join = [](std::thread* other) {
    other->join();
    delete other;
  };
  std::thread* other = nullptr;
  const auto made = cache.GetOrMake(world.own, [&](const ContextRef&) {
    other = fork_with([&] {
      const auto pin = cache.GetOrMake(world.own, [](const ContextRef&) -> absl::StatusOr<Value> {
        CHECK(false);
        return Value();
      });
      CHECK(pin.ok());
    });
    return Value([&] {
      if (!IsChild()) other = fork_with([&] { CHECK(!cache.Forget(world.own)); });
    });
  });
  EndChild([&] {
    CHECK(NamesTheFork(ToStatus(made)));
    UseAndEndInChild(&world);
  });
  join(other);
  CHECK(made.ok());
  const ContextRef own = world.own;
  static_cast<void>(cache.Forget(own));
  const_cast<Cache::Pin&>(*made) = Cache::Pin();
  static_cast<void>(cache.Forget(own));
  EndChild([&] { UseAndEndInChild(&world); });
  join(other);
}

// A listener is called when GetOrMake() enters the context: the thread closes what another one has
// ended, and finds what a callee has left behind.
void AnEntryThatForks() {
  World world;
  Forker fork;
  int forks = 0;
  const auto call = [](const cuguest::Incident& incident, void* user) {
    if (incident.kind != cuguest::Incident::Kind::kElsewhere) (*static_cast<Forker*>(user))();
  };
  const IncidentListener listener(+call, &fork);
  const CUcontext callers = MakeContext();
  AtEachPlace(&world, [&](const Forker& in_listener) {
    fork = [&] {
      ++forks;
      in_listener();
    };
    std::optional<cuguest::ContextGuard> guard(std::in_place, callers);
    CHECK(RAW(cuCtxPushCurrent)(world.never.get()) == CUDA_SUCCESS);
    std::thread([&] { guard.reset(); }).join();
    const auto pin = world.cache->GetOrMake(world.own, [](const ContextRef&) {
      CHECK(!IsChild());
      return Value();
    });
    EndChild([&] {
      CHECK(NamesTheFork(ToStatus(pin)));
      UseAndEndInChild(&world);
    });
    CHECK(pin.ok());
    static_cast<void>(world.cache->ForgetDestroyed(world.own));
  });
  CHECK(forks > 1);
}

// Where a guard's calls work in a child, as those of a driver of the host's own may: nothing is
// added to the entries of the parent, which would pass for the child's.
void AClaimInAChild() {
  using Table = cuguest::internal::PerContextTable;
  const World world;
  constexpr Table::Type kNumber = {4, 4, [](const Table::Type&, void*, bool) {}};
  Table table(kNumber);
  const cuguest::ContextGuard guard(world.ready);
  {
    Table::Making making(&table, world.ready, guard.result());
    CHECK(making.error().ok());
    CHECK(making.Publish().ok());
    Table::Unpin(making.held().stripe);
  }
  Fork([&] {
    const Table::Making making(&table, world.never, guard.result());
    const absl::Status status = ToStatus(making.error());
    CHECK(NamesTheFork(status));
    CHECK(status.message().find("make the value of a context in a forked child") == 0);
    CHECK(!table.Forget(world.ready, /*is_dead=*/true));
  });
}

// So that also a child finds it, whatever has become of the locks.
void WhatIsThereIsFoundWithoutALock() {
  World world;
  CHECK(world.cache->GetOrMake(world.ready, &Make).ok());
  const auto before = cuguest_test::LocksTaken();
  Sim::ResetCalls();
  for (int i = 0; i < 100; ++i) {
    CHECK(world.cache->GetOrMake(world.ready, &Make).ok());
    CHECK(static_cast<bool>(world.cache->Find(world.ready)));
  }
  CHECK(world.cache->size() == 1);
  CHECK(Sim::TotalCalls() == 0);
  CHECK(cuguest_test::LocksTaken() == before);
}

// The parent has not used CUDA: the cache is the child's, too.
void AForkBeforeTheFirstUse() {
  CHECK(cuguest::Driver::Get().ok());
  const cuguest::HostScope host;
  Cache cache;
  CHECK(!cache.Forget(ContextRef()));
  CHECK(cache.DropDead() == 0);
  const auto use = [&cache] {
    const ContextRef context = ContextRef::Borrow(MakeContext());
    CHECK(cache.GetOrMake(context, &Make).ok());
    CHECK(cache.size() == 1);
    CHECK(cache.Forget(context));
    CHECK(g_destroyed == 1);
  };
  Fork(use);
  use();
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"a_fork_beside_a_call", &AForkBesideACall, {}, 0, on},
          {"a_fork_beside_the_first_call", &AForkBesideTheFirstCall, {}, 0, on},
          {"a_maker_that_forks", &AMakerThatForks, {}, 0, on},
          {"an_end_in_forget_that_forks", &AnEndInForgetThatForks, {}, 0, on},
          {"an_end_in_forget_all_that_forks", &AnEndInForgetAllThatForks, {}, 0, on},
          {"an_end_in_drop_dead_that_forks", &AnEndInDropDeadThatForks, {}, 0, on},
          {"an_end_in_get_or_make_that_forks", &AnEndInGetOrMakeThatForks, {}, 0, on},
          {"an_end_with_the_cache_that_forks", &AnEndWithTheCacheThatForks, {}, 0, on},
          {"an_entry_that_forks", &AnEntryThatForks, {}, 0, on},
          {"a_claim_in_a_child", &AClaimInAChild},
          {"what_is_there_is_found_without_a_lock", &WhatIsThereIsFoundWithoutALock, {}, 0, on},
          {"a_fork_with_a_waiting_thread", &AForkWithAWaitingThread, {}, 0, on},
          {"a_fork_before_the_first_use", &AForkBeforeTheFirstUse},
      });
}
