// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every object that holds something, ended elsewhere than it was made: on another thread, after its
// own thread has ended, and in a forked child, also with another thread inside of any of its
// functions at the fork. The stacks and capture modes of both threads are what they were, what is
// bound to its thread reports kElsewhere and nothing else reports anything, the driver has back
// what was held, and a child neither crashes nor waits for a thread that it does not have.
//
// fork_test.cc has what the objects say in a child, and the tests of each object what they say on
// another thread.

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/primary_context.h"
#include "cuguest/testing/stack_probe.h"
#include "test/process/elsewhere.h"
#include "test/support/held_locks.h"
#include "test/support/leaks_on_purpose.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"
#include "test/support/stopped_thread.h"

namespace {

using namespace cuguest_elsewhere;
using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest_test::Fork;
using cuguest_test::StoppedThread;

constexpr unsigned kSecondsToHang = 20;  // alarm() ends who takes longer

// An exact guard's memory is lost if its thread ends first (exact_guard.h).
bool LosesMemory(const Row& row) {
  const std::string name = row.name;
  return name == "ExactGuard" || name == "NoContextGuard" || name == "cuguest_no_context_guard";
}

// -----------------------------------------------------------------------------
// Threads
// -----------------------------------------------------------------------------

// A thread that does one thing after the other, with a context current.
class Worker {
 public:
  explicit Worker(CUcontext context) : thread_([this] { Run(); }) {
    Do([&] {
      CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
      stack_ = cuguest::testing::StackProbe::Take().stack();
    });
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    Do(nullptr);
    thread_.join();
  }

  // Returns when it is done.
  void Do(std::function<void()> work) {
    std::unique_lock<std::mutex> lock(mutex_);
    work_ = std::move(work);
    has_work_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !has_work_; });
  }

  // Closes what another thread has ended, and checks that nothing of it is left.
  void CheckUndisturbed() {
    Do([this] {
      CHECK(
          ContextGuard(stack_.back().context, cuguest::GuardMode::kElide, cuguest::Location::Here())
              .ok());
      CHECK(cuguest::testing::StackProbe::Take().stack() == stack_);
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
      CHECK(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
      CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool ends = false; !ends;) {
      changed_.wait(lock, [this] { return has_work_; });
      if (work_) work_();
      ends = !work_;
      has_work_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // null: the end
  bool has_work_ = false;
  std::vector<cuguest::testing::StackProbe::Entry> stack_;
  std::thread thread_;
};

// How an object ends. The object is gone in the end, whatever its function said.
enum class How { kByFunction, kByDestructor, kMoved };
constexpr How kWays[] = {How::kByFunction, How::kByDestructor, How::kMoved};

void End(Made object, How how) {
  if (how == How::kByFunction) object->End();
  if (how == How::kMoved) object->Move();
  object.reset();
}

// Calls check(row) for each row of this driver, and looks at what is left.
template <typename Check>
void ForEachRow(World* world, const Check& check) {
  const int version = (*cuguest::Driver::Get())->version;
  const int devices = cuguest::CountDevices().value();
  if (devices > 1) {
    auto primary = cuguest::PrimaryContext::Retain(Device::Borrow(1));
    world->peer = ContextRef::Borrow(primary.Leak());
  }
  for (const Row& row : Rows()) {
    if (row.version > version || row.devices > devices) continue;
    std::printf("%s\n", row.name);  // in which it fails
    const auto live = Sim::Live();
    check(row);
    world->cache->ForgetAll();
    CHECK(Sim::Live() == live);
    CHECK(cuguest::IncidentCount() == cuguest::IncidentCount(cuguest::Incident::Kind::kElsewhere));
  }
}

unsigned long long Elsewhere() {
  return cuguest::IncidentCount(cuguest::Incident::Kind::kElsewhere);
}

void OnAnotherThread() {
  World world;
  Worker own(world.callers);
  Worker another(world.others);
  ForEachRow(&world, [&](const Row& row) {
    for (const How how : kWays) {
      const unsigned long long before = Elsewhere();
      Made object;
      own.Do([&] { object = row.make(world); });
      CHECK(object != nullptr);
      another.Do([&] { End(std::move(object), how); });
      another.CheckUndisturbed();
      own.CheckUndisturbed();
      CHECK(Elsewhere() - before == (row.scopes));
    }
  });
}

// What may be moved is not bound to where that is done.
void MovedOnAnotherThread() {
  World world;
  Worker own(world.callers);
  Worker another(world.others);
  ForEachRow(&world, [&](const Row& row) {
    Made object;
    own.Do([&] { object = row.make(world); });
    another.Do([&] { object->Move(); });
    another.CheckUndisturbed();
    own.Do([&] { object->End(); });
    object.reset();
    own.CheckUndisturbed();
    CHECK(Elsewhere() == 0);
  });
}

void AfterItsThread() {
  World world;
  Worker another(world.others);
  ForEachRow(&world, [&](const Row& row) {
    for (const How how : kWays) {
      Made object;
      {
        Worker own(world.callers);
        own.Do([&] {
          std::optional<cuguest_test::LeaksOnPurpose> leaks;
          if (LosesMemory(row)) leaks.emplace();
          object = row.make(world);
        });
      }
      CHECK(object != nullptr);
      another.Do([&] { End(std::move(object), how); });
      another.CheckUndisturbed();
    }
  });
}

// -----------------------------------------------------------------------------
// Forks
// -----------------------------------------------------------------------------

// Ends what threads share, too.
void EndAllInChild(const Row& row, World* world, Made objects[], How how) {
  alarm(kSecondsToHang);
  const unsigned long long incidents = cuguest::IncidentCount();
  End(std::move(objects[0]), how);
  std::thread([&] { End(std::move(objects[1]), how); }).join();
  static_cast<void>(row.make(*world));
  CHECK(!world->cache->GetOrMake(world->other, &MakeStream).ok());
  world->cache->Forget(world->home);
  world->cache->DropDead();
  world->cache->ForgetAll();
  world->cache.reset();
  CHECK(!world->module->GetKernel("k").ok());
  world->module->ForgetDestroyed(world->home);
  CHECK(!world->module->Release().ok());
  world->module.reset();
  CHECK(cuguest::IncidentCount() - incidents == row.reports_in_child);
}

void InAForkedChild() {
  World world;
  Worker own(world.callers);
  ForEachRow(&world, [&](const Row& row) {
    for (const How how : kWays) {
      own.Do([&] {
        Made objects[2] = {row.make(world), row.make(world)};
        CHECK(objects[0] != nullptr && objects[1] != nullptr);
        Fork([&] { EndAllInChild(row, &world, objects, how); });
        End(std::move(objects[1]), how);
        End(std::move(objects[0]), how);
      });
      own.CheckUndisturbed();
      CHECK(Elsewhere() == 0);
    }
  });
}

void WithAThreadInside() {
  World world;
  Worker own(world.callers);
  Sim::OnEveryCall([](const char* entry) {
    cuguest_test::RequireNoLock(entry);
    StoppedThread::Reach();
  });
  cuguest_test::OnLockTaken(&StoppedThread::Reach);
  ForEachRow(&world, [&](const Row& row) {
    const auto work = [&] {
      for (const How how : kWays) {
        Made object = row.make(world);
        if (object != nullptr) End(std::move(object), how);
      }
    };
    const int places = StoppedThread::CountPlaces(work);
    // Some make no driver call, and one takes no lock either.
    CHECK(places > 0 || !cuguest_test::SeesLocks() || row.name == std::string("LastErrorScope"));
    for (int place = 0; place < places; ++place) {
      const How how = kWays[place % 3];
      own.Do([&] {
        Made objects[2] = {row.make(world), row.make(world)};
        StoppedThread stopped(place, work);
        Fork([&] { EndAllInChild(row, &world, objects, how); });
        stopped.End();
        End(std::move(objects[1]), how);
        End(std::move(objects[0]), how);
      });
    }
    own.CheckUndisturbed();
  });
  std::printf("%d forks\n", StoppedThread::stops());
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"on_another_thread", &OnAnotherThread, {}, 0, on},
          {"moved_on_another_thread", &MovedOnAnotherThread, {}, 0, on},
          {"after_its_thread", &AfterItsThread, {}, 0, on},
          {"in_a_forked_child", &InAForkedChild, {}, 0, on},
          {"with_a_thread_inside", &WithAThreadInside, {}, 0, on},
      });
}
