// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How costs grow with the process: with the contexts that are alive, with scopes inside each other,
// with threads, and with the kernels of a module; and the memory of the process that a context and
// a thread of it take, while they are there and once they are gone.
//
// With --check it fails if a curve that is promised flat is not (on a real driver), or if something
// stays behind (on any). docs/growth_picture.py draws the curves of the table that it prints.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/code_image.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/driver.h"
#include "cuguest/module.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "test/benchmark/harness.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Driver;
using cuguest::Module;
using cuguest::PerContext;
using cuguest::SharedContext;
using cuguest_benchmark::Require;
using cuguest_benchmark::Take;
using Cache = PerContext<const void*>;
using Body = std::function<void(benchmark::State&)>;

// Contexts that are made as they are needed, and stay.
class Contexts {
 public:
  explicit Contexts(const Driver& driver) : driver_(driver) {}
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
  ~Contexts() {
    for (const CUcontext context : all_) driver_.CtxDestroy(context);
  }
  const std::vector<CUcontext>& AtLeast(int count) {
    while (all_.size() < static_cast<std::size_t>(count)) {
      all_.push_back(cuguest_benchmark::MakeContext(driver_));
      REQUIRE(all_.back() != nullptr);
    }
    return all_;
  }

 private:
  const Driver& driver_;
  std::vector<CUcontext> all_;
};

// Each of `size` contexts has a value and a holder, and `work` is done for one after another.
struct Alive {
  Alive(Contexts* contexts, int size) {
    const std::vector<CUcontext>& all = contexts->AtLeast(size);
    for (int i = 0; i < size; ++i) {
      refs.push_back(ContextRef::Borrow(all[static_cast<std::size_t>(i)]));
      holders.push_back(Take(SharedContext::Attach(refs.back())));
      REQUIRE(cache.GetOrMake(refs.back(), &MakeValue).ok());
    }
  }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() {
    for (const ContextRef& ref : refs) cache.Forget(ref);
  }
  static absl::StatusOr<const void*> MakeValue(const ContextRef& context) { return context.get(); }
  const ContextRef& Next() { return refs[turn++ % refs.size()]; }

  std::vector<ContextRef> refs;
  std::vector<SharedContext> holders;
  Cache cache;
  std::size_t turn = 0;
};

template <typename Work>
Body WithContexts(Contexts* contexts, int size, Work work) {
  const auto alive = std::make_shared<Alive>(contexts, size);
  return [alive, work](benchmark::State& state) {
    for (auto _ : state) work(*alive);
  };
}

// A guard inside `size` others, which take turns between two contexts.
Body Nested(Contexts* contexts, int size) {
  const std::vector<CUcontext>& all = contexts->AtLeast(2);
  const ContextRef refs[] = {ContextRef::Borrow(all[0]), ContextRef::Borrow(all[1])};
  return [size, refs](benchmark::State& state) {
    std::deque<ContextGuard> outer;
    for (int i = 0; i < size; ++i) Require(outer.emplace_back(refs[i % 2]).ok(), "a nested guard");
    const ContextRef inner = refs[size % 2];
    for (auto _ : state) benchmark::DoNotOptimize(ContextGuard(inner).result());
    while (!outer.empty()) outer.pop_back();
  };
}

// A guard by reference into a context that is the thread's own.
Body OfThread(Contexts* contexts, int size) {
  const int most = 8;  // contexts: more threads share them
  const std::vector<CUcontext> all = contexts->AtLeast(std::min(size, most));
  return [all](benchmark::State& state) {
    const auto at = static_cast<std::size_t>(state.thread_index()) % all.size();
    const ContextRef ref = ContextRef::Borrow(all[at]);
    const ContextGuard mine(ref);
    for (auto _ : state) benchmark::DoNotOptimize(ContextGuard(ref).result());
  };
}

// A kernel by its name, of a module of `size`.
Body OfModule(Contexts* contexts, int size) {
  contexts->AtLeast(1);
  std::string code = ".version 6.0\n.target sm_50\n.address_size 64\n";
  for (int i = 0; i < size; ++i) {
    code += ".visible .entry kernel_" + std::to_string(i) + "() { ret; }\n";
  }
  const auto module = std::make_shared<Module>(
      Take(Module::Load(Take(cuguest::CodeImage::FromPtx(code, "growth")))));
  return [module, name = "kernel_" + std::to_string(size / 2)](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(module->GetKernel(name).ok());
  };
}

struct Curve {
  const char* name;
  const char* of;
  std::vector<int> sizes;
  std::function<Body(Contexts*, int)> make;
  double flat = 0;  // the most that the last size may take of the first; 0: not promised
  bool has_threads = false;
};

std::vector<Curve> Curves(bool is_real) {
  // 64 contexts take half of an H100's memory.
  std::vector<int> contexts = {1, 4, 16, 64};
  if (!is_real) contexts.push_back(128);
  return {
      {"ContextGuard(ContextRef), another current", "contexts", contexts,
       [](Contexts* all, int size) {
         return WithContexts(all, size, [](Alive& alive) {
           benchmark::DoNotOptimize(ContextGuard(alive.Next()).result());
         });
       },
       1.5},
      {"PerContext::GetOrMake", "contexts", contexts,
       [](Contexts* all, int size) {
         return WithContexts(all, size, [](Alive& alive) {
           benchmark::DoNotOptimize(alive.cache.GetOrMake(alive.Next(), &Alive::MakeValue).ok());
         });
       },
       3},
      {"SharedContext::Attach(ContextRef), dropped", "contexts", contexts,
       [](Contexts* all, int size) {
         return WithContexts(all, size, [](Alive& alive) {
           benchmark::DoNotOptimize(SharedContext::Attach(alive.Next()).get());
         });
       },
       1.5},
      {"SharedContext::Attach(handle), dropped", "contexts", contexts,
       [](Contexts* all, int size) {
         return WithContexts(all, size, [](Alive& alive) {
           benchmark::DoNotOptimize(SharedContext::Attach(alive.Next().get()).get());
         });
       },
       1.5},
      {"ContextGuard(ContextRef), another current", "scopes", {1, 15, 64, 512}, &Nested, 2.5},
      {"ContextGuard(ContextRef), its own current", "threads", {1, 4, 16}, &OfThread, 0, true},
      {"Module::GetKernel", "kernels", {1, 10, 100, 1000}, &OfModule},
  };
}

std::string KeyOf(const Curve& curve, int size) {
  return std::string(curve.name) + " of " + curve.of + " " + std::to_string(size);
}

// One size after another: how many contexts are shared is a matter of the whole process.
void Measure(const char* program, const std::vector<Curve>& curves, Contexts* contexts,
             const cuguest_benchmark::Options& options, cuguest_benchmark::Times* times) {
  for (const Curve& curve : curves) {
    for (const int size : curve.sizes) {
      if (options.smoke && size > 20) continue;
      benchmark::ClearRegisteredBenchmarks();
      cuguest_benchmark::Register(KeyOf(curve, size), curve.has_threads ? size : 1, options,
                                  curve.make(contexts, size));
      cuguest_benchmark::Run(program, times);
    }
  }
  benchmark::ClearRegisteredBenchmarks();
}

bool PrintCurves(const std::vector<Curve>& curves, const cuguest_benchmark::Times& times,
                 bool checks) {
  bool kept = true;
  std::string promises;
  std::printf("\n| operation | with | 1 | | | | |\n|---|---|---:|---:|---:|---:|---:|\n");
  for (const Curve& curve : curves) {
    std::printf("| `%s` | %s |", curve.name, curve.of);
    for (const int size : curve.sizes) {
      std::printf(" %d: %.1f |", size, times.Best(KeyOf(curve, size)));
    }
    for (std::size_t i = curve.sizes.size(); i < 5; ++i) std::printf(" |");
    std::printf("\n");
    if (curve.flat == 0) continue;
    const double ratio = times.Best(KeyOf(curve, curve.sizes.back())) /
                         times.Best(KeyOf(curve, curve.sizes.front()));
    const bool holds = !checks || ratio <= curve.flat;
    kept = kept && holds;
    char line[200];
    std::snprintf(line, sizeof(line), "%s: %s with %d %s: %.2f of one, at most %.1f promised\n",
                  holds ? "kept" : "BROKEN", curve.name, curve.sizes.back(), curve.of, ratio,
                  curve.flat);
    if (checks) promises += line;
  }
  std::printf("\nnanoseconds (best of 9) with so many contexts, scopes, threads or kernels\n\n%s",
              promises.c_str());
  return kept;
}

// Of the process's heap.
std::size_t BytesInUse() {
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Memory {
  double while_there;
  double once_gone;
  double by_the_next;  // more than that, once as many others have come and gone
};

// For each of `count`; the first, which also pays for what the process has once, is not counted.
template <typename Make>
Memory MemoryOf(int count, Make make) {
  using Kept = decltype(make(0));
  static_cast<void>(make(0));
  std::vector<Kept> all;
  all.reserve(static_cast<std::size_t>(count));
  std::size_t bytes[5] = {BytesInUse()};
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 0) {
      for (int each = 0; each < count; ++each) all.push_back(make(each));
    } else {
      while (!all.empty()) all.pop_back();
    }
    bytes[i + 1] = BytesInUse();
  }
  const auto each = [&](std::size_t from, std::size_t to) {
    return (static_cast<double>(to) - static_cast<double>(from)) / count;
  };
  return {each(bytes[0], bytes[1]), each(bytes[0], bytes[2]), each(bytes[2], bytes[4])};
}

bool PrintMemory(Contexts* contexts, bool smoke) {
  const int count = smoke ? 4 : 64;
  const std::vector<CUcontext> all = contexts->AtLeast(count);
  const auto ref = [&](int i) { return ContextRef::Borrow(all[static_cast<std::size_t>(i)]); };
  Cache cache;
  struct Value {
    Cache* cache;
    ContextRef ref;
    Value(Cache* of, const ContextRef& context) : cache(of), ref(context) {
      REQUIRE(cache->GetOrMake(ref, &Alive::MakeValue).ok());
    }
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;
    ~Value() { cache->Forget(ref); }
  };
  const struct {
    const char* what;
    Memory memory;
  } kRows[] = {
      {"a value of `PerContext`",
       MemoryOf(count, [&](int i) { return std::make_unique<Value>(&cache, ref(i)); })},
      {"a context that is attached",
       MemoryOf(count, [&](int i) { return Take(SharedContext::Attach(ref(i))); })},
      {"a thread that had a guard and has ended",
       MemoryOf(count * 4,
                [&](int i) {
                  std::thread([&] {
                    Require(ContextGuard(ref(i % count)).ok(), "a guard");
                  }).join();
                  return 0;
                })},
  };
  std::printf(
      "\n| bytes of the heap, for each | while it is there | kept for the next | more by the next "
      "|\n|---|---:|---:|---:|\n");
  bool kept = true;
  for (const auto& row : kRows) {
    std::printf("| %s | %.0f | %.0f | %.0f |\n", row.what, row.memory.while_there,
                row.memory.once_gone, row.memory.by_the_next);
    kept = kept && row.memory.by_the_next < 8;
  }
  std::printf("\n");
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  const Driver* const driver = cuguest_benchmark::FindDriver();
  if (driver == nullptr) return 77;
  const bool is_real = !cudasim::Sim::IsActive();
  const std::vector<Curve> curves = Curves(is_real);
  Contexts contexts(*driver);
  const bool is_clean = PrintMemory(&contexts, options.smoke);  // before anything is kept
  cuguest_benchmark::Times times;
  Measure(argv[0], curves, &contexts, options, &times);
  const bool is_flat = PrintCurves(curves, times, options.check && is_real);
  return is_flat && is_clean ? 0 : 1;
}
