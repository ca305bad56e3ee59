// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A PerContext where the driver cannot be called, or cannot tell incarnations apart: at the end
// of the process (exit_order_test.cc has the order), in a forked child, in a stream
// callback, and below CUDA 12.0; and where the kernel refuses membarrier. Values are given up
// rather than destroyed, and nothing crashes or hangs.

#include "cuguest/per_context.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"
#include "test/support/system_calls.h"

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::PerContext;
using cuguest_test::MakeContext;

int g_destroyed = 0;
int g_given_up = 0;

// Owns a stream.
class Worker {
 public:
  static absl::StatusOr<Worker> Make(const ContextRef&) {
    Worker worker;
    const CUresult code =
        (*ObjectDriver::Get())->StreamCreate(&worker.stream_, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "create a stream");
    worker.is_owner_ = true;
    return worker;
  }
  Worker(Worker&& other) noexcept
      : stream_(other.stream_), is_owner_(std::exchange(other.is_owner_, false)) {}
  ~Worker() {
    if (!is_owner_) return;
    if (stream_ == nullptr) {
      ++g_given_up;
    } else {
      ++g_destroyed;
      CHECK((*ObjectDriver::Get())->StreamDestroy(stream_) == CUDA_SUCCESS);
    }
  }
  void Leak() noexcept { stream_ = nullptr; }

 private:
  Worker() = default;
  CUstream stream_ = nullptr;
  bool is_owner_ = false;
};
using Cache = PerContext<Worker>;

void Say(const char* when) {
  std::printf("%s: %d destroyed, %d given up, %llu incidents\n", when, g_destroyed, g_given_up,
              cuguest::IncidentCount());
  std::fflush(stdout);
}

bool g_in_scenario = false;
struct SaysWhenItEnds {
  const char* when;
  ~SaysWhenItEnds() {
    if (g_in_scenario) Say(when);
  }
};

// From before cuInit, so destroyed when the driver has ended. It reports after the cache.
SaysWhenItEnds g_after_early{"cache from before cuInit"};
Cache g_early;

void StaticCachesThroughTheEnd() {
  g_in_scenario = true;
  const CUcontext context = MakeContext();
  static const SaysWhenItEnds after_late{"cache from after cuInit"};
  static Cache late;
  static auto& leaked = *new Cache;
  for (Cache* cache : {&g_early, &late, &leaked}) {
    CHECK(cache->GetOrMake(context, &Worker::Make).ok());
  }
  // So that the cache knows at its end that the context goes on.
  CHECK((*ObjectDriver::Get())->CtxPushCurrent(context) == CUDA_SUCCESS);
  Say("main");
}

// fork() while nobody is inside a call: the child can find, and make no more.
void AForkedChild() {
  const CUcontext context = MakeContext();
  const CUcontext other = MakeContext();
  const ContextRef ref = ContextRef::Borrow(context);
  const ContextRef other_ref = ContextRef::Borrow(other);
  std::optional<Cache> cache(std::in_place);
  CHECK(cache->GetOrMake(ref, &Worker::Make).ok());
  cuguest_test::Fork([&] {
    CHECK(cache->Find(ref));
    CHECK(!cache->Find(context));
    for (const absl::Status& status : {cache->GetOrMake(other_ref, &Worker::Make).status(),
                                       cache->GetOrMake(other, &Worker::Make).status()}) {
      CHECK(cuguest::CodeOf(status) == CUDA_ERROR_NOT_INITIALIZED);
    }
    CHECK(cache->DropDead() == 0);
    cache.reset();
    Say("child");
  });
  CHECK(cache->ForgetAll() == 1);
  cache.reset();
  Say("parent");
}

struct Callback {
  Cache* cache;
  Cache* ending;
  ContextRef known;
  ContextRef unknown;
  bool found;
  bool forgot;
  bool refused;
  std::size_t dead;
};

void CUDA_CB InHostFunction(void* data) {
  auto* seen = static_cast<Callback*>(data);
  seen->found = static_cast<bool>(seen->cache->Find(seen->known));
  seen->refused = cuguest::CodeOf(seen->cache->GetOrMake(seen->unknown, &Worker::Make).status()) ==
                  CUDA_ERROR_NOT_PERMITTED;
  seen->dead = seen->cache->DropDead();
  seen->forgot = seen->cache->Forget(seen->known);
  delete seen->ending;
}

void InAStreamCallback() {
  const CUcontext context = MakeContext();
  const ContextRef ref = ContextRef::Borrow(context);
  Cache cache;
  auto* ending = new Cache;
  for (Cache* each : {&cache, ending}) CHECK(each->GetOrMake(ref, &Worker::Make).ok());
  Callback seen{&cache, ending, ref, ContextRef::Borrow(MakeContext()), false, false, false, 99};
  {
    const cuguest::ContextGuard guard(ref);
    CUstream stream = nullptr;
    CHECK((*ObjectDriver::Get())->StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(RAW(cuLaunchHostFunc)(stream, &InHostFunction, &seen) == CUDA_SUCCESS);
    CHECK((*ObjectDriver::Get())->StreamSynchronize(stream) == CUDA_SUCCESS);
  }
  CHECK(seen.found);
  CHECK(seen.refused);
  CHECK(seen.dead == 0);
  CHECK(seen.forgot);
  Say("callback");
}

// Every id is 0 there: contexts are told apart by their handles.
void BelowCuda12() {
  Sim::SetDriverVersion(11080);
  const CUcontext a = MakeContext();
  const CUcontext b = MakeContext();
  const ContextRef ref = ContextRef::Borrow(a);
  const ContextRef other = ContextRef::Borrow(b);
  CHECK(ref.id() == 0);
  Cache cache;
  CHECK(cache.GetOrMake(a, &Worker::Make).ok());
  CHECK(cache.GetOrMake(b, &Worker::Make).ok());
  CHECK(cache.Find(a).get() != cache.Find(b).get());
  CHECK(cache.GetOrMake(ref, &Worker::Make)->get() == cache.Find(a).get());
  CHECK(cache.size() == 2);
  CHECK((*ObjectDriver::Get())->CtxDestroy(b) == CUDA_SUCCESS);
  CHECK(cache.ForgetDestroyed(other));
  CHECK(cache.Forget(ref));
  CHECK(!cache.Find(a));
  // A primary context that is active again looks as before its reset.
  const ObjectDriver& driver = *ObjectDriver::Get().value();
  CUcontext primary = nullptr;
  CHECK(driver.DevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(cache.GetOrMake(primary, &Worker::Make).ok());
  CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  CHECK(driver.DevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(cache.DropDead() == 0);
  CHECK(cache.Find(primary));
  CHECK(cache.ForgetDestroyed(ContextRef::Borrow(primary)));
  Say("below 12.0");
}

void UseAndForget(Cache* cache, const ContextRef& context) {
  {
    const auto pin = cache->GetOrMake(context, &Worker::Make);
    CHECK(pin.ok());
    CHECK(cache->Forget(context));
    CHECK(g_destroyed + g_given_up == 0);  // pinned
  }
  CHECK(!cache->Find(context));
  CHECK(!cache->Forget(context));
}

// A system call filter from before the first value on: fences are full ones.
void MembarrierIsRefused() {
  const ContextRef context = ContextRef::Borrow(MakeContext());
  Cache cache;
  CHECK(cuguest_test::RefuseMembarrier());
  UseAndForget(&cache, context);
  Say("refused");
}

// A filter that came when pins were already counted without fences: what is dropped now may be
// pinned by a thread that nobody can see, so it stays, and is not made anew in its place.
void MembarrierIsRefusedLater() {
  const ContextRef context = ContextRef::Borrow(MakeContext());
  static auto& cache = *new Cache;  // its value is not given up
  CHECK(cache.GetOrMake(context, &Worker::Make).ok());
  CHECK(cuguest_test::RefuseMembarrier());
  CHECK(cache.Forget(context));
  CHECK(!cache.Find(context));
  CHECK(cache.GetOrMake(context, &Worker::Make).ok());
  CHECK(cache.size() == 1);
  Say("refused later");
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"static_caches_through_the_end",
           &StaticCachesThroughTheEnd,
           {"main: 0 destroyed, 0 given up, 0 incidents",
            "cache from after cuInit: 1 destroyed, 0 given up, 0 incidents",
            "cache from before cuInit: 1 destroyed, 1 given up, 0 incidents"}},
          {"a_forked_child",
           &AForkedChild,
           {"child: 0 destroyed, 1 given up, 0 incidents",
            "parent: 1 destroyed, 0 given up, 0 incidents"}},
          {"in_a_stream_callback",
           &InAStreamCallback,
           {"callback: 0 destroyed, 1 given up, 0 incidents"}},
          {"below_cuda_12",
           &BelowCuda12,
           {"below 12.0: 1 destroyed, 2 given up, 0 incidents"},
           0,
           cuguest_test::On::kSimulation},
          {"membarrier_is_refused",
           &MembarrierIsRefused,
           {"refused: 1 destroyed, 0 given up, 0 incidents"},
           0,
           cuguest_test::On::kAnyDriver,
           {},
           &cuguest_test::SkipWithoutFilters},
          {"membarrier_is_refused_later",
           &MembarrierIsRefusedLater,
           {"refused later: 0 destroyed, 0 given up, 0 incidents"},
           0,
           cuguest_test::On::kAnyDriver,
           {},
           &cuguest_test::SkipWithoutFilters},
      });
}
