// SPDX-License-Identifier: Apache-2.0
//
// What a guard costs beside what people write today, in one run: with the context
// current already, with another current, and with none, from 1, 4 and 16 threads in one
// context. It ends with a table of nanoseconds a scope and of ratios to a bare push and
// pop, as Markdown, and with the driver calls a scope where the simulation counts them.
//
// With --check it fails if a guard costs more than it promises (on a real driver; the
// simulation's times mean nothing).

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/testing/sim.h"
#include "test/benchmark/harness.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::GuardMode;
using cuguest::PrimaryContext;
using cuguest::testing::Sim;
using cuguest_benchmark::kThreads;

// What every thread works with. Filled before the first measurement.
struct World {
  const Driver* driver;
  CUcontext user;     // a context of cuCtxCreate, which the scopes enter
  CUcontext other;    // what the caller has current instead
  CUcontext primary;  // of device 0: the only context that the runtime's idiom can name
  ContextRef user_ref;
  int (*cuda_get_device)(int*) = nullptr;  // the real runtime, if there is one
  int (*cuda_set_device)(int) = nullptr;
};
World g_world;

// The idioms: each enters `target`, and comes back.
struct Raw {
  static constexpr char kName[] = "push, pop";
  static void Scope(CUcontext target) {
    CUcontext popped;
    g_world.driver->CtxPushCurrent(target);
    g_world.driver->CtxPopCurrent(&popped);
  }
};

struct Guard {
  static constexpr char kName[] = "ContextGuard";
  static void Scope(CUcontext target) { const ContextGuard guard(target); }
};

struct GuardByRef {
  static constexpr char kName[] = "ContextGuard(ContextRef)";
  static void Scope(CUcontext) { const ContextGuard guard(g_world.user_ref); }
};

struct GuardAlways {
  static constexpr char kName[] = "ContextGuard, kAlwaysPush";
  static void Scope(CUcontext target) { const ContextGuard guard(target, GuardMode::kAlwaysPush); }
};

struct GetSet {
  static constexpr char kName[] = "get, set, set";
  static void Scope(CUcontext target) {
    CUcontext before;
    g_world.driver->CtxGetCurrent(&before);
    g_world.driver->CtxSetCurrent(target);
    g_world.driver->CtxSetCurrent(before);
  }
};

struct RuntimeIdiom {
  static constexpr char kName[] = "cudaGetDevice, Set, Set";
  static void Scope(CUcontext) {
    int before = 0;
    g_world.cuda_get_device(&before);
    g_world.cuda_set_device(0);
    g_world.cuda_set_device(before);
  }
};

struct TwoQueries {
  static constexpr char kName[] = "two queries, the floor";
  static void Scope(CUcontext) {
    CUcontext current;
    g_world.driver->CtxGetCurrent(&current);
    benchmark::DoNotOptimize(current);
    g_world.driver->CtxGetCurrent(&current);
    benchmark::DoNotOptimize(current);
  }
};

enum class Caller { kTarget, kOther, kNone, kPrimary };
constexpr std::pair<Caller, const char*> kCallers[] = {
    {Caller::kTarget, "context current already"},
    {Caller::kOther, "another current"},
    {Caller::kNone, "none current"},
    {Caller::kPrimary, "the primary current already"},
};

CUcontext TargetOf(Caller caller) {
  return caller == Caller::kPrimary ? g_world.primary : g_world.user;
}

// A thread whose stack holds what the caller has current.
class CallerStack {
 public:
  explicit CallerStack(Caller caller)
      : context_(caller == Caller::kOther  ? g_world.other
                 : caller == Caller::kNone ? nullptr
                                           : TargetOf(caller)) {
    if (context_ != nullptr) g_world.driver->CtxPushCurrent(context_);
  }
  ~CallerStack() {
    CUcontext popped = nullptr;
    if (context_ != nullptr) g_world.driver->CtxPopCurrent(&popped);
  }

 private:
  CUcontext context_;
};

template <typename Idiom>
void Measure(benchmark::State& state, Caller caller) {
  const CallerStack stack(caller);
  const CUcontext target = TargetOf(caller);
  for (auto _ : state) Idiom::Scope(target);
}

template <typename I>
double SecondsOf(CUcontext target, int scopes) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < scopes; ++i) I::Scope(target);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The ratio to a bare push and pop on one thread: the median over pairs that were measured
// back to back, so that a machine whose speed drifts does not matter.
template <typename I>
double PairedRatio(Caller caller, int scopes) {
  const CallerStack stack(caller);
  const CUcontext target = TargetOf(caller);
  std::vector<double> ratios;
  for (int pair = 0; pair < 401; ++pair) {
    const double raw = SecondsOf<Raw>(target, scopes);
    ratios.push_back(SecondsOf<I>(target, scopes) / raw);
  }
  std::nth_element(ratios.begin(), ratios.begin() + 200, ratios.end());
  return ratios[200];
}

struct Idiom {
  const char* name;
  void (*measure)(benchmark::State&, Caller);
  double (*paired_ratio)(Caller, int scopes);
  void (*scope)(CUcontext);
  bool (*applies)(Caller);
};

template <typename I>
constexpr Idiom Describe(bool (*applies)(Caller)) {
  return {I::kName, &Measure<I>, &PairedRatio<I>, &I::Scope, applies};
}

bool Always(Caller) { return true; }
bool IsCurrent(Caller caller) { return caller == Caller::kTarget; }
bool NamesUser(Caller caller) { return caller != Caller::kPrimary; }
bool HasRuntime(Caller caller) {
  return caller == Caller::kPrimary && g_world.cuda_set_device != nullptr;
}

constexpr Idiom kIdioms[] = {
    Describe<Raw>(&Always),
    Describe<Guard>(&Always),
    Describe<GuardByRef>(&NamesUser),
    Describe<GuardAlways>(&Always),
    Describe<GetSet>(&Always),
    Describe<TwoQueries>(&IsCurrent),
    Describe<RuntimeIdiom>(&HasRuntime),
};

std::string KeyOf(Caller caller, const Idiom& idiom, int threads) {
  return std::to_string(static_cast<int>(caller)) + "/" + idiom.name + "/" +
         std::to_string(threads);
}

void RegisterAll(const cuguest_benchmark::Options& options) {
  for (const auto& [caller, words] : kCallers) {
    for (const Idiom& idiom : kIdioms) {
      if (!idiom.applies(caller)) continue;
      for (const int threads : kThreads) {
        cuguest_benchmark::Register(
            KeyOf(caller, idiom, threads), threads, options,
            [&idiom, caller = caller](benchmark::State& state) { idiom.measure(state, caller); });
      }
    }
  }
}

// The times, and the ratios to a bare push and pop.
class Collector : public cuguest_benchmark::Times {
 public:
  // `scopes`: how many make one half of a pair.
  explicit Collector(int scopes) : scopes_(scopes) {}
  // Measured when it is first asked for.
  double Ratio(const Idiom& idiom, Caller caller, int threads) {
    const auto [ratio, is_new] = ratios_.try_emplace(KeyOf(caller, idiom, threads), 0);
    if (!is_new) return ratio->second;
    const double raw = Best(KeyOf(caller, kIdioms[0], threads));
    ratio->second = threads == 1 ? idiom.paired_ratio(caller, scopes_)
                    : raw > 0    ? Best(KeyOf(caller, idiom, threads)) / raw
                                 : 0;
    return ratio->second;
  }

 private:
  const int scopes_;
  std::map<std::string, double> ratios_;
};

unsigned long long CallsOf(const Idiom& idiom, Caller caller) {
  const CallerStack stack(caller);
  Sim::ResetCalls();
  idiom.scope(TargetOf(caller));
  return Sim::TotalCalls();
}

void PrintTable(Collector& collector) {
  const bool sim = Sim::IsActive();
  for (const auto& [caller, words] : kCallers) {
    std::printf("\n| %-27s |  1 thread |  4 threads | 16 threads |%s\n", words,
                sim ? " driver calls |" : "");
    std::printf("|:----------------------------|----------:|-----------:|-----------:|%s\n",
                sim ? "-------------:|" : "");
    for (const Idiom& idiom : kIdioms) {
      if (!idiom.applies(caller)) continue;
      std::printf("| %-27s |", idiom.name);
      for (const int threads : kThreads) {
        std::printf(" %.1f ns, %.2fx |", collector.Best(KeyOf(caller, idiom, threads)),
                    collector.Ratio(idiom, caller, threads));
      }
      if (sim) std::printf(" %llu |", CallsOf(idiom, caller));
      std::printf("\n");
    }
  }
}

// What the guards promise.
struct Promise {
  const char* idiom;
  Caller caller;
  int threads;
  double most;  // of a push and pop
};
constexpr Promise kPromises[] = {
    {Guard::kName, Caller::kTarget, 1, 0.6},        {Guard::kName, Caller::kTarget, 16, 0.05},
    {Guard::kName, Caller::kOther, 1, 1.35},        {GuardByRef::kName, Caller::kTarget, 1, 0.9},
    {GuardByRef::kName, Caller::kTarget, 16, 0.05}, {GuardByRef::kName, Caller::kOther, 1, 1.85},
    {GuardAlways::kName, Caller::kTarget, 1, 1.75},
};

bool Check(Collector& collector) {
  bool kept = true;
  for (const Promise& promise : kPromises) {
    const Idiom& idiom =
        *std::find_if(std::begin(kIdioms), std::end(kIdioms),
                      [&](const Idiom& one) { return std::string(one.name) == promise.idiom; });
    const double ratio = collector.Ratio(idiom, promise.caller, promise.threads);
    std::printf("%s: %s, %s, %d thread(s): %.3fx of a push and pop, at most %.2fx promised\n",
                ratio <= promise.most ? "kept" : "BROKEN", promise.idiom,
                kCallers[static_cast<int>(promise.caller)].second, promise.threads, ratio,
                promise.most);
    kept = kept && ratio <= promise.most;
  }
  return kept;
}

// The runtime is measured where one can be loaded; it needs a real driver.
void FindRuntime() {
  if (Sim::IsActive()) return;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"}) {
    void* runtime = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (runtime == nullptr) continue;
    g_world.cuda_get_device = reinterpret_cast<int (*)(int*)>(dlsym(runtime, "cudaGetDevice"));
    g_world.cuda_set_device = reinterpret_cast<int (*)(int)>(dlsym(runtime, "cudaSetDevice"));
    return;
  }
  std::printf("no libcudart could be loaded: the runtime's idiom is not measured\n");
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  g_world.driver = cuguest_benchmark::FindDriver();
  if (g_world.driver == nullptr) return 77;
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0)).value();
  g_world.primary = primary.get();
  for (CUcontext* context : {&g_world.user, &g_world.other}) {
    *context = cuguest_benchmark::MakeContext(*g_world.driver);
    if (*context == nullptr) return 1;
  }
  g_world.user_ref = ContextRef::Borrow(g_world.user);
  FindRuntime();

  RegisterAll(options);
  Collector collector(options.smoke ? 10 : 2000);
  cuguest_benchmark::Run(argv[0], &collector);
  PrintTable(collector);
  std::printf(
      "\nnanoseconds a scope (best of 9), and the ratio to a bare push and pop (one thread: median "
      "of 401 pairs measured back to back)\n");
  const bool kept = !options.check || Sim::IsActive() || Check(collector);
  g_world.driver->CtxDestroy(g_world.user);
  g_world.driver->CtxDestroy(g_world.other);
  return kept ? 0 : 1;
}
