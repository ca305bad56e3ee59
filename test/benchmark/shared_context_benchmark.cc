// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What taking and releasing a reference to a context costs: SharedContext beside the driver's
// own cuCtxAttach and cuCtxDetach, from 1, 4 and 16 threads that all share one context. It
// ends with a table of nanoseconds a pair, and of ratios to the driver's, as Markdown.
//
// With --check it fails if a reference costs more than it promises (on a real driver; the
// simulation's times mean nothing).
//
// The driver does not count atomically: threads that share a context lose references, and when
// the count gets to zero in that way the context is destroyed under them; the calls fail
// from then on, and sooner or later the process aborts. So the pair is measured in a
// process of its own, which says how it fares while it runs; what it said last counts,
// whether or not it came to its end. Once as anybody would call it, failures and all; and
// once with the count raised by a million first, which keeps the context alive.

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

#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/shared_context.h"
#include "test/benchmark/harness.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::Driver;
using cuguest::SharedContext;
using cuguest_benchmark::kThreads;

// What every thread works with. Filled before the first measurement.
struct World {
  const Driver* driver;
  CUcontext context;
  const SharedContext* shared;  // a reference that is held throughout
};
World g_world;

struct ByHandle {
  static constexpr char kName[] = "SharedContext::Attach(handle), dropped";
  static void Pair() { benchmark::DoNotOptimize(SharedContext::Attach(g_world.context).get()); }
};

struct Released {
  static constexpr char kName[] = "SharedContext::Attach(handle), Release()";
  static void Pair() {
    auto attached = SharedContext::Attach(g_world.context);
    benchmark::DoNotOptimize(attached.Release().ok());
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

constexpr Idiom kIdioms[] = {Describe<ByHandle>(), Describe<Released>(), Describe<Copied>(),
                             Describe<Primary>()};

std::string KeyOf(const Idiom& idiom, int threads) {
  return std::string(idiom.name) + "/" + std::to_string(threads);
}

// The driver's pair.

constexpr char kDriversPair[] = "--drivers-pair";
constexpr char kReport[] = "pairs, failed, nanoseconds:";

struct alignas(64) Progress {
  std::atomic<unsigned long long> pairs{0};
  std::atomic<unsigned long long> failed{0};  // of them
};

void Count(std::atomic<unsigned long long>* count) {
  count->store(count->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void AttachAndDetach(Progress* progress) {
  for (;;) {
    CUcontext attached = nullptr;
    const bool fine = RAW(cuCtxAttach)(&attached, 0) == CUDA_SUCCESS &&
                      RAW(cuCtxDetach)(attached) == CUDA_SUCCESS;
    if (!fine) Count(&progress->failed);
    Count(&progress->pairs);
  }
}

// In a process of its own, which ends before anything of a corrupted heap is freed.
[[noreturn]] void MeasureDriversPair(const Driver& driver, int thread_count, int units,
                                     int milliseconds) {
  const CUcontext context = cuguest_benchmark::MakeContext(driver);
  driver.CtxPushCurrent(context);
  for (int i = 0; i < units; ++i) {
    CUcontext attached = nullptr;
    RAW(cuCtxAttach)(&attached, 0);
  }
  std::vector<Progress> all(static_cast<size_t>(thread_count));
  for (Progress& progress : all) {
    std::thread([&driver, context, &progress] {
      driver.CtxPushCurrent(context);  // the pair works on what is current
      AttachAndDetach(&progress);
    }).detach();
  }
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double, std::nano> passed{0};
  while (passed < std::chrono::milliseconds(milliseconds)) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    passed = std::chrono::steady_clock::now() - begin;
    unsigned long long pairs = 0;
    unsigned long long failed = 0;
    for (const Progress& progress : all) {
      pairs += progress.pairs.load(std::memory_order_relaxed);
      failed += progress.failed.load(std::memory_order_relaxed);
    }
    char line[100];  // not through stdio, which uses the heap
    const int length =
        std::snprintf(line, sizeof(line), "%s %llu %llu %f\n", kReport, pairs, failed,
                      passed.count() * thread_count / static_cast<double>(std::max(pairs, 1ULL)));
    static_cast<void>(!write(STDOUT_FILENO, line, static_cast<size_t>(length)));
  }
  _exit(0);
}

struct DriversPair {
  unsigned long long pairs = 0;  // 0: it said nothing
  unsigned long long failed = 0;
  double nanoseconds = 0;
  bool crashed = false;

  // Long enough that starting the threads does not count.
  bool IsMeasured() const { return pairs >= 10'000; }
};

// The longest of a few attempts.
DriversPair RunDriversPair(int threads, int units, bool smoke) {
  DriversPair longest;
  for (int attempt = 0; attempt < (smoke ? 1 : 5) && !longest.IsMeasured(); ++attempt) {
    const cuguest_test::Ended ended = cuguest_test::RunSelf(
        {kDriversPair, std::to_string(threads), std::to_string(units), smoke ? "5" : "300"});
    DriversPair pair;
    pair.crashed = ended.code != 0;
    const size_t last = ended.output.rfind(kReport);
    if (last != std::string::npos) {
      std::sscanf(ended.output.c_str() + last + std::strlen(kReport), "%llu %llu %lf", &pair.pairs,
                  &pair.failed, &pair.nanoseconds);
    }
    if (attempt == 0 || pair.pairs > longest.pairs) longest = pair;
  }
  return longest;
}

// With each number of threads.
struct DriversPairs {
  const char* name;
  int units;
  DriversPair pair[std::size(kThreads)];
};

void PrintTable(const cuguest_benchmark::Times& times, const std::vector<DriversPairs>& drivers) {
  std::printf(
      "\n| one context                             | 1 thread | 4 threads | 16 threads |\n"
      "|:----------------------------------------|---------:|----------:|-----------:|\n");
  for (const DriversPairs& variant : drivers) {
    std::printf("| %-39s |", variant.name);
    for (const DriversPair& pair : variant.pair) {
      if (pair.IsMeasured()) std::printf(" %.1f ns", pair.nanoseconds);
      if (pair.failed > 0) std::printf(" (%.0f %% failed)", 100.0 * pair.failed / pair.pairs);
      std::printf("%s |", pair.crashed ? " crashed" : "");
    }
    std::printf("\n");
  }
  for (const Idiom& idiom : kIdioms) {
    std::printf("| %-39s |", idiom.name);
    for (const int threads : kThreads) std::printf(" %.1f ns |", times.Best(KeyOf(idiom, threads)));
    std::printf("\n");
  }
  std::printf("\nnanoseconds that a thread waits for a pair (best of 9)\n");
}

bool Check(const cuguest_benchmark::Times& times, const DriversPairs& drivers, double least) {
  constexpr size_t kFour = 1;
  const DriversPair& pair = drivers.pair[kFour];
  if (!pair.IsMeasured()) {
    std::printf("not checked: %s, 4 threads: it crashed at once\n", drivers.name);
    return true;
  }
  const double gain = pair.nanoseconds / times.Best(KeyOf(kIdioms[0], kThreads[kFour]));
  std::printf("%s: %s, 4 threads: %.1f times as fast as %s, at least %.0f promised\n",
              gain >= least ? "kept" : "BROKEN", kIdioms[0].name, gain, drivers.name, least);
  return gain >= least;
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  g_world.driver = cuguest_benchmark::FindDriver();
  if (g_world.driver == nullptr) return 77;
  if (argc == 5 && std::strcmp(argv[1], kDriversPair) == 0) {
    MeasureDriversPair(*g_world.driver, std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  }
  std::vector<DriversPairs> drivers = {{"cuCtxAttach, cuCtxDetach", 0, {}},
                                       {"the same, count raised beforehand", 1'000'000, {}}};
  for (DriversPairs& variant : drivers) {
    for (size_t i = 0; i < std::size(kThreads); ++i) {
      variant.pair[i] = RunDriversPair(kThreads[i], variant.units, options.smoke);
    }
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
    g_world.shared = &shared;
    for (const Idiom& idiom : kIdioms) {
      for (const int threads : kThreads) {
        cuguest_benchmark::Register(KeyOf(idiom, threads), threads, options, idiom.measure);
      }
    }
    cuguest_benchmark::Times times;
    cuguest_benchmark::Run(argv[0], &times);
    PrintTable(times, drivers);
    if (options.check && !Sim::IsActive()) {
      const bool as_it_is = Check(times, drivers[0], 20);
      kept = Check(times, drivers[1], 2) && as_it_is;
    }
  }
  g_world.driver->DevicePrimaryCtxRelease(0);
  g_world.driver->CtxDestroy(g_world.context);
  return kept ? 0 : 1;
}
