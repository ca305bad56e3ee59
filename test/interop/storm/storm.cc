// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/storm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/incident_listener.h"
#include "test/interop/storm/plant.h"
#include "test/runtime/host_kernels.h"

namespace storm {
namespace {

using cudasim::Sim;
using Clock = std::chrono::steady_clock;

// How often the size of the process is taken, and how much it may grow: in bytes, of allocators and
// for each operation, and in files: each thread may have some open at that moment.
constexpr std::size_t kSizes = 20;
constexpr std::size_t kMostGrowth = std::size_t{64} << 20;
constexpr std::size_t kMostGrowthEach = 8;
constexpr std::size_t kMostDescriptors = 32;
constexpr std::chrono::seconds kStuck{90};  // without a step of any thread

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Operations Join(const Options& options, std::initializer_list<Operations> tables) {
  Operations all;
  for (const Operations& table : tables) {
    std::copy_if(table.begin(), table.end(), std::back_inserter(all),
                 [&](const Operation& operation) { return options.Does(operation.name); });
  }
  return all;
}

const Operation& PickFrom(const Operations& operations, Random* random) {
  int total = 0;
  for (const Operation& operation : operations) total += operation.weight;
  int left = random->Below(total);
  for (const Operation& operation : operations) {
    left -= operation.weight;
    if (left < 0) return operation;
  }
  return operations.back();
}

// Before a reset each thread leaves the primary contexts; after it, it looks at them anew.
constexpr Operation kLeave = {"leave for a reset", 0, [](Worker& w) { w.LeavePrimaries(); }};
constexpr Operation kReturn = {"return from a reset", 0, [](Worker& w) { w.RefreshPrimaries(); }};

}  // namespace

Storm::Storm(const Options& options)
    : options_(options),
      world_(options_),
      schedule_(options_),
      usual_(Join(options,
                  {StackOperations(), GuardOperations(), HostileOperations(), OwnershipOperations(),
                   WorkOperations(), CaptureOperations(), LibraryOperations()})),
      heavy_(Join(options, {HeavyOperations(), ProcessOperations()})) {}

bool Storm::IsReset(std::uint64_t step) const {
  return step > 0 && step % static_cast<std::uint64_t>(options_.heavy) == 0;
}

const Operation& Storm::Pick(Random* random, std::uint64_t step) const {
  if (IsReset(step)) return kReturn;
  if (IsReset(step + 1)) return kLeave;
  return PickFrom(random->OneIn(options_.heavy) ? heavy_ : usual_, random);
}

void Storm::TakeStep(Worker* worker, std::uint64_t step, std::uint64_t index) {
  Random random = Random::Of(options_.seed, static_cast<std::uint64_t>(worker->thread()), step);
  const Operation& operation = Pick(&random, step);
  const Clock::time_point start = Clock::now();
  try {
    worker->Do(random, [&](Worker& self) {
      if (IsReset(step) && schedule_.Leads(self.thread(), step)) world_.ResetPrimaries();
      operation.run(self);
      if (options_.plant.has_value() && options_.plant->index == index) {
        Commit(*options_.plant, self);
      }
    });
  } catch (const Failure& failure) {
    Fail(worker->thread(), step, index, operation.name, failure.what);
  }
  worker->tallies[operation.name].Add({1, SecondsSince(start)});
  steps_.fetch_add(1, std::memory_order_relaxed);
}

void Storm::TakeSteps(int thread, Worker* worker) {
  for (std::uint64_t step = 0;; ++step) {
    const std::uint64_t index = schedule_.IndexOf(thread, step);
    if (index >= options_.operations) return;
    // Everybody waits for the reset, which is its leader's step.
    if (IsReset(step) && !schedule_.Meet()) return;
    const bool leads = IsReset(step) && schedule_.Leads(thread, step);
    if (IsReset(step) && !leads && !schedule_.Meet()) return;
    if (!schedule_.Begin(thread, index)) return;
    TakeStep(worker, step, index);
    schedule_.End(index);
    if (leads && !schedule_.Meet()) return;
  }
}

void Storm::RunThread(int thread) {
  {
    Worker worker(&world_, thread);
    TakeSteps(thread, &worker);
    try {
      // Once no thread has a step left, which may be a reset, or has its turn in lockstep.
      if (schedule_.Leave()) worker.Clear();
    } catch (const Failure& failure) {
      Fail(thread, 0, options_.operations, "end of the thread", failure.what);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, tally] : worker.tallies) tallies_[name].Add(tally);
    incidents_ += worker.incidents;
  }
  running_.fetch_sub(1);
}

void Storm::Fail(int thread, std::uint64_t step, std::uint64_t index, const char* operation,
                 const std::string& what) {
  schedule_.Stop();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.has_value()) return;
  failure_ = FirstFailure{index, "(seed " + std::to_string(options_.seed) + ", thread " +
                                     std::to_string(thread) + ", step " + std::to_string(step) +
                                     ", " + operation + "): " + what};
}

// Ends the process where threads wait for each other for good.
void Storm::Watch() {
  std::uint64_t seen = 0;
  Clock::time_point since = Clock::now();
  while (running_.load() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::uint64_t now = steps_.load();
    if (now * kSizes >= options_.operations * (sizes_.size() + 1)) {
      sizes_.push_back(ProcessSize::Now());
    }
    if (now != seen) since = Clock::now();
    seen = now;
    if (Clock::now() - since < kStuck) continue;
    std::printf("%s%llu (seed %llu): no thread gets on\n", kFailedAt,
                static_cast<unsigned long long>(options_.operations),
                static_cast<unsigned long long>(options_.seed));
    std::fflush(stdout);
    std::_Exit(kFailed);
  }
}

bool Storm::Run() {
  const Footprint before = Footprint::Take(world_);
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < options_.threads; ++thread) {
    if (!options_.Runs(thread)) continue;
    running_.fetch_add(1);
    threads.emplace_back([this, thread] { RunThread(thread); });
  }
  Watch();
  for (std::thread& thread : threads) thread.join();
  const double seconds = SecondsSince(start);
  world_.ForgetAll();
  if (!failure_.has_value()) {
    const std::string left = before.Difference(Footprint::Take(world_));
    if (!left.empty()) Fail(-1, 0, options_.operations, "end of the storm", "left behind\n" + left);
  }
  CompareSizes();
  PrintTallies(seconds);
  if (!failure_.has_value()) return true;
  std::printf("%s%llu %s\n", kFailedAt, static_cast<unsigned long long>(failure_->index),
              failure_->text.c_str());
  return false;
}

// Once the first quarter has warmed it up, the process grows no more, but for what the simulation
// remembers of objects that are gone. With a real driver each context takes memory and files of the
// process, and there are more of them at one moment than at another.
void Storm::CompareSizes() {
  if (sizes_.size() < kSizes) return;
  std::printf("  resident MiB, open files:");
  for (std::size_t i = kSizes / 4; i < kSizes; i += kSizes / 4) {
    std::printf(" %zu, %zu;", sizes_[i].resident >> 20, sizes_[i].descriptors);
  }
  const ProcessSize& early = sizes_[kSizes / 4];
  const ProcessSize& late = sizes_.back();
  std::printf(" %zu, %zu at the end\n", late.resident >> 20, late.descriptors);
  if (!Sim::IsActive()) return;
#if !defined(__SANITIZE_ADDRESS__)  // it keeps what was freed
  if (late.resident > early.resident + kMostGrowth + kMostGrowthEach * options_.operations) {
    Fail(-1, 0, options_.operations, "end of the storm", "the process has grown");
  }
#endif
  if (late.descriptors > early.descriptors + kMostDescriptors) {
    Fail(-1, 0, options_.operations, "end of the storm", "files were left open");
  }
}

void Storm::PrintTallies(double seconds) const {
  std::printf("storm: seed %llu, %d threads, %d contexts and %d primary ones\n",
              static_cast<unsigned long long>(options_.seed), options_.threads, world_.contexts(),
              world_.devices());
  for (const auto& [name, tally] : tallies_) {
    std::printf("  %-22s %8llu  %9.2f us\n", std::string(name).c_str(),
                static_cast<unsigned long long>(tally.count),
                1e6 * tally.seconds / static_cast<double>(tally.count));
  }
  const auto steps = steps_.load();
  std::printf(
      "  %llu operations in %.2f s, %.0f a second; incidents caused and repaired: %llu; "
      "disturbances: %d\n",
      static_cast<unsigned long long>(steps), seconds, static_cast<double>(steps) / seconds,
      static_cast<unsigned long long>(incidents_), failure_.has_value() ? 1 : 0);
}

int RunStorm(const Options& options) {
  const auto driver = cuguest::Driver::GetInitialized();
  if (!driver.ok()) {
    std::printf("no driver to test on: %s\n", driver.status().ToString().c_str());
    return 77;
  }
  const cuguest_runtime_test::HostKernels host_kernels;
  const cuguest::IncidentListener listener(&RecordIncident);
  bool passed = false;
  try {
    passed = Storm(options).Run();
    const std::string left = WhatIsLeft();
    if (passed && !left.empty()) {
      throw Failure{"left behind\n" + left};
    }
  } catch (const Failure& failure) {
    std::printf("%s%llu (outside of the threads): %s\n", kFailedAt,
                static_cast<unsigned long long>(options.operations), failure.what.c_str());
    passed = false;
  }
  std::fflush(stdout);
  return passed ? 0 : kFailed;
}

}  // namespace storm
