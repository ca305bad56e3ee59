// SPDX-License-Identifier: Apache-2.0
//
// What taking and giving back a unit of a context costs: SharedContext beside the driver's
// own cuCtxAttach and cuCtxDetach, from 1, 4 and 16 threads that all share one context. It
// ends with a table of nanoseconds a pair, and of ratios to the driver's, as Markdown.
//
// With --check it fails if a unit costs more than it promises (on a real driver; the
// simulation's times mean nothing).
//
// The driver's pair corrupts the driver's heap when threads share a context, and sooner or
// later aborts. So it is measured in a process of its own, which says how it fares while it
// runs; what it said last counts, whether or not it came to its end.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/driver.h"
#include "cuguest/shared_context.h"
#include "cuguest/testing/sim.h"
#include "test/benchmark/harness.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Driver;
using cuguest::SharedContext;
using cuguest::testing::Sim;
using cuguest_benchmark::kThreads;

// What every thread works with. Filled before the first measurement.
struct World {
  const Driver* driver;
  CUcontext context;
  const SharedContext* shared;  // a unit that is held throughout
};
World g_world;

struct ByHandle {
  static constexpr char kName[] = "SharedContext::Attach(handle), dropped";
  static void Pair() { benchmark::DoNotOptimize(SharedContext::Attach(g_world.context)->get()); }
};

struct Detached {
  static constexpr char kName[] = "SharedContext::Attach(handle), Detach()";
  static void Pair() {
    auto attached = SharedContext::Attach(g_world.context);
    benchmark::DoNotOptimize(attached->Detach().ok());
  }
};

struct Copied {
  static constexpr char kName[] = "SharedContext copied, dropped";
  static void Pair() {
    const SharedContext copy = *g_world.shared;
    benchmark::DoNotOptimize(copy.get());
  }
};

struct Primary {
  static constexpr char kName[] = "cuDevicePrimaryCtxRetain, Release";
  static void Pair() {
    CUcontext primary = nullptr;
    g_world.driver->DevicePrimaryCtxRetain(&primary, 0);
    g_world.driver->DevicePrimaryCtxRelease(0);
  }
};

struct Idiom {
  const char* name;
  void (*measure)(benchmark::State&);
};

template <typename I>
constexpr Idiom Describe() {
  return {I::kName, [](benchmark::State& state) {
            for (auto _ : state) I::Pair();
          }};
}

constexpr Idiom kIdioms[] = {Describe<ByHandle>(), Describe<Detached>(), Describe<Copied>(),
                             Describe<Primary>()};

std::string KeyOf(const Idiom& idiom, int threads) {
  return std::string(idiom.name) + "/" + std::to_string(threads);
}

// The driver's pair.

constexpr char kDriversPair[] = "--drivers-pair";
constexpr char kNanoseconds[] = "nanoseconds: ";

void AttachAndDetach(std::atomic<unsigned long long>* pairs) {
  for (;;) {
    CUcontext attached = nullptr;
    if (RAW(cuCtxAttach)(&attached, 0) != CUDA_SUCCESS) return;  // another one destroyed it
    if (RAW(cuCtxDetach)(attached) != CUDA_SUCCESS) return;
    pairs->store(pairs->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

// In a process of its own, which ends before anything of a corrupted heap is freed.
[[noreturn]] void MeasureDriversPair(const Driver& driver, int thread_count, int milliseconds) {
  struct alignas(64) Count {
    std::atomic<unsigned long long> pairs{0};
  };
  const CUcontext context = cuguest_benchmark::MakeContext(driver);
  std::vector<Count> counts(static_cast<size_t>(thread_count));
  for (Count& count : counts) {
    std::thread([&driver, context, &count] {
      driver.CtxPushCurrent(context);  // the pair works on what is current
      AttachAndDetach(&count.pairs);
    }).detach();
  }
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double, std::nano> passed{0};
  while (passed < std::chrono::milliseconds(milliseconds)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    passed = std::chrono::steady_clock::now() - begin;
    unsigned long long pairs = 0;
    for (const Count& count : counts) pairs += count.pairs.load(std::memory_order_relaxed);
    if (pairs == 0) continue;
    std::printf("%s%f\n", kNanoseconds, passed.count() * thread_count / double(pairs));
    std::fflush(stdout);
  }
  _exit(0);
}

struct DriversPair {
  double nanoseconds = 0;  // 0: it said nothing
  bool crashed = false;
};

DriversPair RunDriversPair(int threads, bool smoke) {
  const cuguest_test::Ended ended =
      cuguest_test::RunSelf({kDriversPair, std::to_string(threads), smoke ? "5" : "300"});
  const size_t last = ended.output.rfind(kNanoseconds);
  DriversPair pair;
  pair.crashed = ended.code != 0;
  if (last != std::string::npos) {
    pair.nanoseconds = std::atof(ended.output.c_str() + last + std::strlen(kNanoseconds));
  }
  return pair;
}

void PrintTable(const cuguest_benchmark::Times& times, const DriversPair* drivers) {
  std::printf(
      "\n| one context                             | 1 thread | 4 threads | 16 threads |\n"
      "|:----------------------------------------|---------:|----------:|-----------:|\n"
      "| %-39s |",
      "cuCtxAttach, cuCtxDetach");
  for (size_t i = 0; i < std::size(kThreads); ++i) {
    if (drivers[i].nanoseconds == 0) {
      std::printf(" crashed |");
    } else {
      std::printf(" %.1f ns |", drivers[i].nanoseconds);
    }
  }
  std::printf("\n");
  for (const Idiom& idiom : kIdioms) {
    std::printf("| %-39s |", idiom.name);
    for (const int threads : kThreads) std::printf(" %.1f ns |", times.Best(KeyOf(idiom, threads)));
    std::printf("\n");
  }
  std::printf("\nnanoseconds that a thread waits for a pair (best of 9)\n");
  for (size_t i = 0; i < std::size(kThreads); ++i) {
    if (!drivers[i].crashed) continue;
    std::printf("cuCtxAttach, cuCtxDetach, %d threads: the process crashed%s\n", kThreads[i],
                drivers[i].nanoseconds == 0 ? "" : " after this was measured");
  }
}

bool Check(const cuguest_benchmark::Times& times, const DriversPair& driver, int threads) {
  constexpr double kLeast = 20;
  if (driver.nanoseconds == 0) {
    std::printf("not checked: with %d threads the driver's pair crashed at once\n", threads);
    return true;
  }
  const double gain = driver.nanoseconds / times.Best(KeyOf(kIdioms[0], threads));
  std::printf(
      "%s: %s, %d threads: %.1f times as fast as the driver's pair, at least %.0f promised\n",
      gain >= kLeast ? "kept" : "BROKEN", kIdioms[0].name, threads, gain, kLeast);
  return gain >= kLeast;
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  g_world.driver = cuguest_benchmark::FindDriver();
  if (g_world.driver == nullptr) return 77;
  if (argc == 4 && std::strcmp(argv[1], kDriversPair) == 0) {
    MeasureDriversPair(*g_world.driver, std::atoi(argv[2]), std::atoi(argv[3]));
  }
  DriversPair drivers[std::size(kThreads)];
  for (size_t i = 0; i < std::size(kThreads); ++i) {
    drivers[i] = RunDriversPair(kThreads[i], options.smoke);
  }
  g_world.context = cuguest_benchmark::MakeContext(*g_world.driver);
  CUcontext primary = nullptr;
  if (g_world.context == nullptr ||
      g_world.driver->DevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS) {
    return 1;
  }
  bool kept = true;
  {
    const auto shared = SharedContext::Attach(g_world.context);
    if (!shared.ok()) return 1;
    g_world.shared = &*shared;
    for (const Idiom& idiom : kIdioms) {
      for (const int threads : kThreads) {
        cuguest_benchmark::Register(KeyOf(idiom, threads), threads, options, idiom.measure);
      }
    }
    cuguest_benchmark::Times times;
    cuguest_benchmark::Run(argv[0], &times);
    PrintTable(times, drivers);
    kept = !options.check || Sim::IsActive() || Check(times, drivers[1], kThreads[1]);
  }
  g_world.driver->DevicePrimaryCtxRelease(0);
  g_world.driver->CtxDestroy(g_world.context);
  return kept ? 0 : 1;
}
