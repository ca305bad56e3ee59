// SPDX-License-Identifier: Apache-2.0
//
// What taking and giving back a unit of a context costs: SharedContext beside the driver's
// own cuCtxAttach and cuCtxDetach, from 1, 4 and 16 threads that all share one context. It
// ends with a table of nanoseconds a pair, and of ratios to the driver's, as Markdown.
//
// With --check it fails if a unit costs more than it promises (on a real driver; the
// simulation's times mean nothing). The driver's pair is not measured with 16 threads:
// there it corrupts its heap and aborts.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <cstdio>
#include <string>

#include "cuguest/driver.h"
#include "cuguest/shared_context.h"
#include "cuguest/testing/sim.h"
#include "test/benchmark/harness.h"
#include "test/support/raw_driver.h"

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

struct DriversPair {
  static constexpr char kName[] = "cuCtxAttach, cuCtxDetach";
  static constexpr int kMostThreads = 4;
  static void Pair() {
    CUcontext attached = nullptr;
    RAW(cuCtxAttach)(&attached, 0);
    RAW(cuCtxDetach)(attached);
  }
};

struct ByHandle {
  static constexpr char kName[] = "SharedContext::Attach(handle), dropped";
  static constexpr int kMostThreads = 16;
  static void Pair() { benchmark::DoNotOptimize(SharedContext::Attach(g_world.context)->get()); }
};

struct Detached {
  static constexpr char kName[] = "SharedContext::Attach(handle), Detach()";
  static constexpr int kMostThreads = 16;
  static void Pair() {
    auto attached = SharedContext::Attach(g_world.context);
    benchmark::DoNotOptimize(attached->Detach().ok());
  }
};

struct Copied {
  static constexpr char kName[] = "SharedContext copied, dropped";
  static constexpr int kMostThreads = 16;
  static void Pair() {
    const SharedContext copy = *g_world.shared;
    benchmark::DoNotOptimize(copy.get());
  }
};

struct Primary {
  static constexpr char kName[] = "cuDevicePrimaryCtxRetain, Release";
  static constexpr int kMostThreads = 16;
  static void Pair() {
    CUcontext primary = nullptr;
    g_world.driver->DevicePrimaryCtxRetain(&primary, 0);
    g_world.driver->DevicePrimaryCtxRelease(0);
  }
};

struct Idiom {
  const char* name;
  int most_threads;
  void (*measure)(benchmark::State&);
};

template <typename I>
constexpr Idiom Describe() {
  return {I::kName, I::kMostThreads, [](benchmark::State& state) {
            g_world.driver->CtxPushCurrent(g_world.context);  // the driver's pair needs it
            for (auto _ : state) I::Pair();
            CUcontext popped = nullptr;
            g_world.driver->CtxPopCurrent(&popped);
          }};
}

constexpr Idiom kIdioms[] = {
    Describe<DriversPair>(), Describe<ByHandle>(), Describe<Detached>(),
    Describe<Copied>(),      Describe<Primary>(),
};

std::string KeyOf(const Idiom& idiom, int threads) {
  return std::string(idiom.name) + "/" + std::to_string(threads);
}

// How many times as long the driver's pair takes.
double Gain(const cuguest_benchmark::Times& times, const Idiom& idiom, int threads) {
  return times.Best(KeyOf(kIdioms[0], threads)) / times.Best(KeyOf(idiom, threads));
}

void PrintTable(const cuguest_benchmark::Times& times) {
  std::printf(
      "\n| one context                             |  1 thread | 4 threads | 16 threads |\n");
  std::printf("|:----------------------------------------|----------:|----------:|-----------:|\n");
  for (const Idiom& idiom : kIdioms) {
    std::printf("| %-39s |", idiom.name);
    for (const int threads : kThreads) {
      if (threads > idiom.most_threads) {
        std::printf(" aborts |");
      } else if (threads > kIdioms[0].most_threads) {
        std::printf(" %.1f ns |", times.Best(KeyOf(idiom, threads)));
      } else {
        std::printf(" %.1f ns, 1/%.2f |", times.Best(KeyOf(idiom, threads)),
                    Gain(times, idiom, threads));
      }
    }
    std::printf("\n");
  }
  std::printf(
      "\nnanoseconds that a thread waits for a pair (best of 9), and the part of the driver's "
      "pair that this is\n");
}

bool Check(const cuguest_benchmark::Times& times) {
  constexpr double kLeast = 20;
  const double gain = Gain(times, kIdioms[1], 4);
  std::printf(
      "%s: %s, 4 threads: %.1f times as fast as the driver's pair, at least %.0f promised\n",
      gain >= kLeast ? "kept" : "BROKEN", kIdioms[1].name, gain, kLeast);
  return gain >= kLeast;
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  g_world.driver = cuguest_benchmark::FindDriver();
  if (g_world.driver == nullptr) return 77;
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
        if (threads > idiom.most_threads) continue;
        cuguest_benchmark::Register(KeyOf(idiom, threads), threads, options, idiom.measure);
      }
    }
    cuguest_benchmark::Times times;
    cuguest_benchmark::Run(argv[0], &times);
    PrintTable(times);
    kept = !options.check || Sim::IsActive() || Check(times);
  }
  g_world.driver->DevicePrimaryCtxRelease(0);
  g_world.driver->CtxDestroy(g_world.context);
  return kept ? 0 : 1;
}
