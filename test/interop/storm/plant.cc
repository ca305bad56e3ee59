// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/plant.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "cuguest/context_guard.h"
#include "cuguest/objects/device_buffer.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

void LeakPush(Worker& worker) {
  REQUIRE_CALL(RAW(cuCtxPushCurrent)(worker.world().place(0).get()));
}

void LeakMemory(Worker& worker) {
  auto buffer =
      Value(cuguest::DeviceBuffer<char>::Allocate(worker.world().place(0), std::size_t{1} << 29));
  static_cast<void>(buffer.Leak());
}

// Whether one of them was refused: something captures there.
bool WaitForContexts(Worker& worker) {
  bool is_refused = false;
  for (int place = 0; place < worker.world().places(); ++place) {
    const cuguest::ContextGuard guard(worker.world().place(place));
    is_refused |= RAW(cuCtxSynchronize)() != CUDA_SUCCESS;
  }
  return is_refused;
}

// Threads that run freely capture now and then.
void LoseCaptures(Worker& worker) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!WaitForContexts(worker) && !worker.world().options().lockstep &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

void Race(Worker& worker) {
  Require(worker.world().options().lockstep, "the threads run one at a time");
}

void Crash(Worker&) { std::raise(SIGKILL); }

struct Kind {
  const char* name;
  void (*commit)(Worker& worker);
};
constexpr Kind kKinds[] = {{"leak_push", &LeakPush},
                           {"leak_memory", &LeakMemory},
                           {"lose_capture", &LoseCaptures},
                           {"race", &Race},
                           {"crash", &Crash}};

}  // namespace

bool IsPlant(const std::string& kind) {
  for (const Kind& known : kKinds) {
    if (kind == known.name) return true;
  }
  return false;
}

void Commit(const Plant& plant, Worker& worker) {
  for (const Kind& known : kKinds) {
    if (plant.kind == known.name) known.commit(worker);
  }
}

}  // namespace storm
