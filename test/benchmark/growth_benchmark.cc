// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How costs grow with the process: with the contexts that are alive and that were destroyed, with
// scopes inside each other, with threads that are there and that have ended, with copies of
// cuguest, with devices and with the kernels of a module; and the memory of the process that a
// context, a thread and a copy take, while they are there and once they are gone.
//
// With --check it fails if a curve that is promised flat is not (on a real driver), or if something
// stays behind (on any). docs/growth_picture.py draws the curves of the table that it prints.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/module.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/benchmark/harness.h"
#include "test/support/files.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::Module;
using cuguest::ObjectDriver;
using cuguest::PerContext;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest_benchmark::Require;
using cuguest_benchmark::Take;
using Cache = PerContext<const void*>;
using Body = std::function<void(benchmark::State&)>;

// Contexts that are made as they are needed, on so many devices in turn, and stay.
class Contexts {
 public:
  explicit Contexts(const ObjectDriver& driver, int devices = 1)
      : driver_(driver), devices_(devices) {}
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
  ~Contexts() {
    for (const CUcontext context : all_) driver_.CtxDestroy(context);
  }
  const std::vector<CUcontext>& AtLeast(int count) {
    while (all_.size() < static_cast<std::size_t>(count)) {
      const int device = static_cast<int>(all_.size()) % devices_;
      all_.push_back(cuguest_benchmark::MakeContext(driver_, device));
      REQUIRE(all_.back() != nullptr);
    }
    return all_;
  }
  const ObjectDriver& driver() const { return driver_; }

 private:
  const ObjectDriver& driver_;
  const int devices_;
  std::vector<CUcontext> all_;
};

// Each of `size` contexts has a value, a holder and memory, and `work` is done for one after
// another.
struct Alive {
  Alive(Contexts* contexts, int size) {
    const std::vector<CUcontext>& all = contexts->AtLeast(size);
    for (int i = 0; i < size; ++i) {
      refs.push_back(ContextRef::Borrow(all[static_cast<std::size_t>(i)]));
      holders.push_back(Take(SharedContext::Attach(refs.back())));
      REQUIRE(cache.GetOrMake(refs.back(), &MakeValue).ok());
      const ContextGuard guard(refs.back());
      REQUIRE(contexts->driver().MemAlloc(&pointers.emplace_back(), 4096) == CUDA_SUCCESS);
    }
  }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() {
    for (const ContextRef& ref : refs) cache.Forget(ref);
  }
  static absl::StatusOr<const void*> MakeValue(const ContextRef& context) { return context.get(); }
  const ContextRef& Next() { return refs[turn++ % refs.size()]; }
  CUdeviceptr NextPointer() { return pointers[turn++ % pointers.size()]; }

  std::vector<ContextRef> refs;
  std::vector<SharedContext> holders;
  std::vector<CUdeviceptr> pointers;  // which go with their contexts
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

// Beside one that stays, contexts that had a value and a holder before they were destroyed.
struct Destroyed {
  explicit Destroyed(Contexts* contexts) : alive(contexts, 1), driver(contexts->driver()) {}
  void One() {
    const CUcontext context = cuguest_benchmark::MakeContext(driver);
    const ContextRef ref = ContextRef::Borrow(context);
    REQUIRE(alive.cache.GetOrMake(ref, &Alive::MakeValue).ok());
    REQUIRE(SharedContext::Attach(context).Release().ok());
    alive.cache.Forget(ref);
    REQUIRE(driver.CtxDestroy(context) == CUDA_SUCCESS);
    ++count;
  }

  Alive alive;
  const Driver& driver;
  int count = 0;
};

template <typename Work>
Body AfterContexts(Contexts* contexts, int size, Work work) {
  static const auto destroyed = std::make_shared<Destroyed>(contexts);
  while (destroyed->count < size) destroyed->One();
  return [work](benchmark::State& state) {
    for (auto _ : state) work(destroyed->alive);
  };
}

void RunThread(const ContextRef& ref) {
  std::thread([&] { Require(ContextGuard(ref).ok(), "a guard"); }).join();
}

// A guard after `size` threads that had one, too.
Body AfterThreads(Contexts* contexts, int size) {
  const ContextRef ref = ContextRef::Borrow(contexts->AtLeast(1)[0]);
  static int s_count = 0;
  for (; s_count < size; ++s_count) RunThread(ref);
  return [ref](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ContextGuard(ref).result());
  };
}

// Device after device, whose primary contexts are held.
template <typename Work>
Body WithDevices(int size, Work work) {
  std::vector<PrimaryContext> held;
  for (int i = 0; i < size; ++i) {
    held.push_back(Take(PrimaryContext::Retain(Device::Borrow(i))));
  }
  const auto all = std::make_shared<std::vector<PrimaryContext>>(std::move(held));
  return [all, work](benchmark::State& state) {
    std::size_t turn = 0;
    for (auto _ : state) work((*all)[turn++ % all->size()]);
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

constexpr int kDevices = 8;  // of the simulation

// What is measured of each of several copies, as they are loaded and unloaded.
constexpr const char kLoading[] = "dlopen of a library with a copy";
constexpr const char kFirstGuard[] = "the first ContextGuard of a copy";
constexpr const char kLookUps[] = "of that what the driver is asked for its functions";
constexpr const char kFirstAttach[] = "then the first SharedContext::Attach of the copy";
constexpr const char kAttach[] = "SharedContext::Attach(handle), Release() in a copy";
constexpr const char kUnloading[] = "dlclose of a library with a copy";
constexpr const char* kOfCopies[] = {kLoading,     kFirstGuard, kLookUps,
                                     kFirstAttach, kAttach,     kUnloading};

struct Curve {
  const char* name;
  const char* of;
  std::vector<int> sizes;
  std::function<Body(Contexts*, int)> make;  // nullptr: of copies, see MeasureCopies()
  double flat = 0;  // the most that the last size may take of the first; 0: not promised
  bool has_threads = false;
};

void AttachByHandle(Alive& alive) {
  benchmark::DoNotOptimize(SharedContext::Attach(alive.Next().get()).get());
}

// What is done in contexts in turn, of one device and of several.
const struct {
  const char* name;
  void (*work)(Alive&);
  double flat;
} kInContexts[] = {
    {"ContextGuard(ContextRef), another current",
     [](Alive& alive) { benchmark::DoNotOptimize(ContextGuard(alive.Next()).result()); }, 1.5},
    {"PerContext::GetOrMake",
     [](Alive& alive) {
       benchmark::DoNotOptimize(alive.cache.GetOrMake(alive.Next(), &Alive::MakeValue).ok());
     },
     3},
    {"SharedContext::Attach(ContextRef), dropped",
     [](Alive& alive) { benchmark::DoNotOptimize(SharedContext::Attach(alive.Next()).get()); },
     1.5},
    {"SharedContext::Attach(handle), dropped", &AttachByHandle, 1.2},
    {"AcquireFromPointer",
     [](Alive& alive) {
       benchmark::DoNotOptimize(cuguest::AcquireFromPointer(alive.NextPointer()).ok());
     },
     1.5},
};

std::vector<Curve> Curves(bool is_real, const ObjectDriver& driver) {
  // 64 contexts take half of an H100's memory, and each takes a tenth of a second.
  std::vector<int> contexts = {1, 4, 16, 64};
  if (!is_real) contexts.push_back(128);
  const std::vector<int> destroyed =
      is_real ? std::vector<int>{1, 10} : std::vector<int>{1, 1000, 100000};
  const std::vector<int> ended =
      is_real ? std::vector<int>{1, 1000} : std::vector<int>{1, 1000, 100000};
  std::vector<Curve> curves;
  for (const auto& one : kInContexts) {
    curves.push_back(
        {one.name, "contexts", contexts,
         [work = one.work](Contexts* all, int size) { return WithContexts(all, size, work); },
         one.flat});
  }
  const std::vector<Curve> others = {
      {"ContextGuard(ContextRef), another current", "scopes", {1, 16, 18, 72, 504}, &Nested, 1.1},
      {"ContextGuard(ContextRef), its own current", "threads", {1, 4, 16}, &OfThread, 0, true},
      {"Module::GetKernel", "kernels", {1, 10, 100, 1000}, &OfModule},
      {"PerContext::Find", "destroyed", destroyed,
       [](Contexts* all, int size) {
         return AfterContexts(all, size, [](Alive& alive) {
           benchmark::DoNotOptimize(alive.cache.Find(alive.Next()));
         });
       },
       2},
      {"PerContext::Forget, GetOrMake", "destroyed", destroyed,
       [](Contexts* all, int size) {
         return AfterContexts(all, size, [](Alive& alive) {
           alive.cache.Forget(alive.Next());
           benchmark::DoNotOptimize(alive.cache.GetOrMake(alive.Next(), &Alive::MakeValue).ok());
         });
       },
       2},
      {"SharedContext::Attach(handle), dropped", "destroyed", destroyed,
       [](Contexts* all, int size) { return AfterContexts(all, size, &AttachByHandle); }, 1.5},
      {"ContextGuard(ContextRef), another current", "ended", ended, &AfterThreads, 1.5},
  };
  curves.insert(curves.end(), others.begin(), others.end());
  for (const char* name : kOfCopies) curves.push_back({name, "copies", {1, 4, 16, 64}, nullptr});
  const int device_count = Take(cuguest::CountDevices());
  std::vector<int> devices;
  for (int count = 1; count <= device_count; count *= 2) devices.push_back(count);
  if (devices.size() < 2) return curves;
  const auto on_each = std::make_shared<Contexts>(driver, devices.back());
  for (const auto& one : kInContexts) {
    curves.push_back({one.name, "devices", devices,
                      [work = one.work, on_each](Contexts*, int size) {
                        return WithContexts(on_each.get(), size, work);
                      },
                      one.flat});
  }
  curves.push_back({"AcquiredGuard(device), another current", "devices", devices,
                    [](Contexts*, int size) {
                      return WithDevices(size, [](const PrimaryContext& primary) {
                        benchmark::DoNotOptimize(cuguest::AcquiredGuard(primary.device()).ok());
                      });
                    },
                    1.5});
  curves.push_back({"SharedContext::Attach(ContextRef) of a primary, dropped", "devices", devices,
                    [](Contexts*, int size) {
                      return WithDevices(size, [](const PrimaryContext& primary) {
                        benchmark::DoNotOptimize(SharedContext::Attach(primary.context()).get());
                      });
                    },
                    1.5});
  return curves;
}

std::string KeyOf(const std::string& name, const std::string& of, int size) {
  return name + " of " + of + " " + std::to_string(size);
}
std::string KeyOf(const Curve& curve, int size) { return KeyOf(curve.name, curve.of, size); }

// Files of one library, each of which the dynamic linker takes for another one.
class CopyFiles {
 public:
  explicit CopyFiles(int count)
      : folder_(std::filesystem::temp_directory_path() /
                ("cuguest-growth-" + std::to_string(getpid()))) {
    const std::string original = cuguest_test::FindBeside("test/plugin_a.so");
    Require(!original.empty(), "test/plugin_a.so is not there");
    std::filesystem::create_directories(folder_);
    for (int i = 0; i < count; ++i) std::filesystem::copy_file(original, At(i));
  }
  CopyFiles(const CopyFiles&) = delete;
  CopyFiles& operator=(const CopyFiles&) = delete;
  ~CopyFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string At(int i) const { return folder_ / ("copy_" + std::to_string(i) + ".so"); }

 private:
  std::filesystem::path folder_;
};

// One of them, loaded: see test/process/fixtures/plugin.cc.
class Copy {
 public:
  explicit Copy(const std::string& path) : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    Require(library_ != nullptr, "a copy is not loaded");
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { REQUIRE(dlclose(library_) == 0); }
  void Enter(CUcontext context) const {
    REQUIRE(Find<bool (*)(CUcontext)>("PluginEnter")(context));
  }
  void AttachAndRelease(CUcontext context) const {
    void* const holder = Find<void* (*)(CUcontext)>("PluginAttach")(context);
    REQUIRE(holder != nullptr && Find<bool (*)(void*)>("PluginDetach")(holder));
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_;
};

// As each copy does when it is first used.
void LookUpEntries(const Driver& driver) {
#define LOOK_UP(Name, since, suffix, parameters) \
  if (since <= driver.version)                   \
    benchmark::DoNotOptimize(driver.lookup("cu" #Name, since, driver.lookup_user));
  CUGUEST_REQUIRED_ENTRIES(LOOK_UP)
  CUGUEST_OPTIONAL_ENTRIES(LOOK_UP)
#undef LOOK_UP
}

// The best of some rounds, of the last of so many copies.
void MeasureCopies(Contexts* contexts, bool smoke, std::map<std::string, double>* best) {
  const int most = smoke ? 4 : 64;
  const int rounds = smoke ? 1 : 5;
  const CopyFiles files(most);
  const CUcontext context = contexts->AtLeast(1)[0];
  const SharedContext holder = Take(SharedContext::Attach(context));
  const auto take = [&](const char* what, int size, const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    const auto [place, is_first] = best->emplace(KeyOf(what, "copies", size), 0);
    if (is_first || time.count() < place->second) place->second = time.count();
  };
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Copy>> copies;
    for (int size = 1; size <= most; ++size) {
      take(kLoading, size, [&] { copies.push_back(std::make_unique<Copy>(files.At(size - 1))); });
      const auto use = [&] { copies.back()->AttachAndRelease(context); };
      take(kFirstGuard, size, [&] { copies.back()->Enter(context); });
      take(kLookUps, size, [&] { LookUpEntries(contexts->driver()); });
      take(kFirstAttach, size, use);
      for (int again = 0; again < 50; ++again) take(kAttach, size, use);
    }
    for (int size = most; size > 0; --size) {
      take(kUnloading, size, [&] { copies.pop_back(); });
    }
  }
}

// One size after another: how many contexts are shared is a matter of the whole process.
void Measure(const char* program, const std::vector<Curve>& curves, Contexts* contexts,
             const cuguest_benchmark::Options& options, cuguest_benchmark::Times* times) {
  for (const Curve& curve : curves) {
    for (const int size : curve.sizes) {
      if (curve.make == nullptr || (options.smoke && size > 20)) continue;
      benchmark::ClearRegisteredBenchmarks();
      cuguest_benchmark::Register(KeyOf(curve, size), curve.has_threads ? size : 1, options,
                                  curve.make(contexts, size));
      cuguest_benchmark::Run(program, times);
    }
  }
  benchmark::ClearRegisteredBenchmarks();
}

bool PrintCurves(const std::vector<Curve>& curves, const cuguest_benchmark::Times& times,
                 const std::map<std::string, double>& of_copies, bool checks) {
  const auto best = [&](const Curve& curve, int size) {
    const auto found = of_copies.find(KeyOf(curve, size));
    return found != of_copies.end() ? found->second : times.Best(KeyOf(curve, size));
  };
  bool kept = true;
  std::string promises;
  std::printf("\n| operation | with | 1 | | | | |\n|---|---|---:|---:|---:|---:|---:|\n");
  for (const Curve& curve : curves) {
    std::printf("| `%s` | %s |", curve.name, curve.of);
    for (const int size : curve.sizes) {
      std::printf(" %d: %.1f |", size, best(curve, size));
    }
    for (std::size_t i = curve.sizes.size(); i < 5; ++i) std::printf(" |");
    std::printf("\n");
    if (curve.flat == 0) continue;
    const double ratio = best(curve, curve.sizes.back()) / best(curve, curve.sizes.front());
    const bool holds = !checks || ratio <= curve.flat;
    kept = kept && holds;
    char line[200];
    std::snprintf(line, sizeof(line), "%s: %s with %d %s: %.2f of one, at most %.1f promised\n",
                  holds ? "kept" : "BROKEN", curve.name, curve.sizes.back(), curve.of, ratio,
                  curve.flat);
    if (checks) promises += line;
  }
  std::printf(
      "\nnanoseconds (best of 9; of copies, best of 5) with so many contexts, scopes, threads, "
      "kernels, copies or devices, or after so many contexts that were destroyed or threads that "
      "have ended\n\n%s",
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
  double by_the_next;  // more than that, once as many others have come and gone: least of three
};

// For each of `count`; the first, which also pays for what the process has once, is not counted.
template <typename Make>
Memory MemoryOf(int count, Make make) {
  using Kept = decltype(make(0));
  static_cast<void>(make(0));
  std::vector<Kept> all;
  all.reserve(static_cast<std::size_t>(count));
  const auto each = [&](std::size_t from, std::size_t to) {
    return (static_cast<double>(to) - static_cast<double>(from)) / count;
  };
  const std::size_t before = BytesInUse();
  std::size_t while_there = 0;
  std::vector<std::size_t> once_gone;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < count; ++i) all.push_back(make(i));
    if (round == 0) while_there = BytesInUse();
    while (!all.empty()) all.pop_back();
    once_gone.push_back(BytesInUse());
  }
  // What leaks grows in every round; gaps that the allocator leaves do in some.
  double growth = each(once_gone[0], once_gone[1]);
  for (std::size_t i = 2; i < once_gone.size(); ++i) {
    growth = std::min(growth, each(once_gone[i - 1], once_gone[i]));
  }
  return {each(before, while_there), each(before, once_gone[0]), growth};
}

bool PrintMemory(Contexts* contexts, bool smoke, bool is_real) {
  const int count = smoke ? 4 : 64;
  const int that_go = smoke ? 4 : is_real ? 8 : 50000;
  Destroyed destroyed(contexts);
  const std::vector<CUcontext> all = contexts->AtLeast(count);
  const int copies_count = 64;  // with few, lists of the dynamic linker grow by more for each
  const CopyFiles files(copies_count);
  const auto load = [&](int i) {
    auto copy = std::make_unique<Copy>(files.At(i));
    copy->AttachAndRelease(all[0]);
    return copy;
  };
  for (int round = 0; round < 2; ++round) {  // the dynamic linker keeps room for as many
    std::vector<std::unique_ptr<Copy>> copies;
    for (int i = 0; i < copies_count; ++i) copies.push_back(load(i));
  }
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
    bool is_drivers = false;  // a real driver keeps memory of its own for it
  } kRows[] = {
      {"a value of `PerContext`",
       MemoryOf(count, [&](int i) { return std::make_unique<Value>(&cache, ref(i)); })},
      {"a context that is attached",
       MemoryOf(count, [&](int i) { return Take(SharedContext::Attach(ref(i))); })},
      {"a context that had both and was destroyed",
       MemoryOf(that_go,
                [&](int) {
                  destroyed.One();
                  return 0;
                }),
       is_real},
      {"a thread that had a guard and has ended", MemoryOf(smoke     ? 16
                                                           : is_real ? 500
                                                                     : 50000,
                                                           [&](int i) {
                                                             RunThread(ref(i % count));
                                                             return 0;
                                                           })},
      {"a copy of cuguest that has attached", MemoryOf(copies_count, load), is_real},
  };
  std::printf(
      "\n| bytes of the heap, for each | while it is there | kept for the next | more by the next "
      "|\n|---|---:|---:|---:|\n");
  bool kept = true;
  for (const auto& row : kRows) {
    std::printf("| %s | %.0f | %.0f | %.0f |\n", row.what, row.memory.while_there,
                row.memory.once_gone, row.memory.by_the_next);
    kept = kept && (row.is_drivers || row.memory.by_the_next < 8);
  }
  std::printf("\n");
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  const bool is_real = !cudasim::Sim::IsActive();
  if (!is_real) cudasim::Sim::SetDeviceCount(kDevices);
  const ObjectDriver* const driver = cuguest_benchmark::FindDriver();
  if (driver == nullptr) return 77;
  const std::vector<Curve> curves = Curves(is_real, *driver);
  Contexts contexts(*driver);
  const bool is_clean = PrintMemory(&contexts, options.smoke, is_real);  // before anything is kept
  cuguest_benchmark::Times times;
  Measure(argv[0], curves, &contexts, options, &times);
  std::map<std::string, double> of_copies;
  MeasureCopies(&contexts, options.smoke, &of_copies);
  const bool is_flat = PrintCurves(curves, times, of_copies, options.check && is_real);
  return is_flat && is_clean ? 0 : 1;
}
