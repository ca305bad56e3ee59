// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread of a storm: the model of what its stack should be, what it owns, and the check
// after every operation that all is as the model says.

#ifndef CUGUEST_TEST_INTEROP_STORM_WORKER_H_
#define CUGUEST_TEST_INTEROP_STORM_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/incident.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "test/interop/storm/failure.h"
#include "test/interop/storm/random.h"
#include "test/interop/storm/world.h"

namespace storm {

using Numbers = std::vector<float>;

// What a thread works with in one place.
struct Lane {
  static constexpr std::size_t kCount = 64;  // floats in each buffer

  explicit Lane(const cuguest::ContextRef& context);

  cuguest::ContextRef context;
  cuguest::Stream stream;
  cuguest::Event event;
  cuguest::DeviceBuffer<float> x;
  cuguest::DeviceBuffer<float> y;
};

// A capture in progress, and what its graph is going to compute: all elements are equal.
struct Capture {
  int place;
  cuguest::Stream stream;
  cuguest::DeviceBuffer<float> x;
  cuguest::DeviceBuffer<float> y;
  float expected_x = 0;
  float expected_y = 0;
  int nodes = 0;
};

// How often something was done, and how long it took.
struct Tally {
  std::uint64_t count = 0;
  double seconds = 0;
  void Add(const Tally& other) {
    count += other.count;
    seconds += other.seconds;
  }
};
using Tallies = std::map<std::string_view, Tally>;  // by operation

class Worker {
 public:
  static constexpr int kMaxDepth = 6;
  static constexpr int kOwn = -1;  // the place that is the thread's own context

  Worker(World* world, int thread) : world_(world), thread_(thread) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Runs `operation`, and checks that nothing but what it says was changed. Throws Failure.
  template <typename Operation>
  void Do(Random random_numbers, const Operation& operation) {
    random = random_numbers;
    expected_.clear();
    operation(*this);
    Verify();
  }

  // Gives back all that the thread has, so that its stack is empty again.
  void Clear();

  [[nodiscard]] int thread() const { return thread_; }

  // For operations.
  [[nodiscard]] World& world() { return *world_; }
  [[nodiscard]] int PickPlace();
  [[nodiscard]] const cuguest::ContextRef& ContextOf(int place) const;
  [[nodiscard]] Lane& LaneOf(int place);
  [[nodiscard]] const cuguest::ContextRef& PickContext() { return ContextOf(PickPlace()); }

  // The operation causes exactly the incidents that it expects. `kind` may be left open.
  void ExpectIncident(std::optional<cuguest::Incident::Kind> kind) { expected_.push_back(kind); }

  [[nodiscard]] CUcontext top() const { return stack.empty() ? nullptr : stack.back().context; }
  [[nodiscard]] bool IsInStack(CUcontext context) const;
  void MakeOwn();
  void EndOwn();
  [[nodiscard]] bool has_own() const { return own_.get() != nullptr; }
  // Before and after a reset.
  void LeavePrimaries();
  void RefreshPrimaries();
  void EndCapture();

  // The model: bottom first.
  std::vector<cuguest::testing::StackProbe::Entry> stack;
  Random random{0};
  std::optional<Capture> capture;
  unsigned long long incidents = 0;  // expected and found
  Tallies tallies;

 private:
  void Verify();
  void VerifyStack() const;
  void VerifyIncidents();
  [[nodiscard]] std::string NameOf(CUcontext context) const;

  World* world_;
  int thread_;
  std::map<int, std::unique_ptr<Lane>> lanes_;  // by place
  cuguest::ContextRef own_;
  std::vector<std::optional<cuguest::Incident::Kind>> expected_;
};

// Keeps what guards report on the calling thread for its worker.
void RecordIncident(const cuguest::Incident& incident, void* user);
// What was kept, and keeps it no more.
std::vector<cuguest::Incident> TakeIncidents();

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_WORKER_H_
