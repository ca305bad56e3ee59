// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/benchmark/growth_curves.h"

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "test/benchmark/growth_copies.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {
namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Module;
using cuguest::ObjectDriver;
using cuguest::PrimaryContext;
using cuguest::SharedContext;

template <typename Work>
Body WithContexts(Contexts* contexts, int size, Work work) {
  const auto alive = std::make_shared<Alive>(contexts, size);
  return [alive, work](benchmark::State& state) {
    for (auto _ : state) work(*alive);
  };
}

template <typename Work>
Body AfterContexts(Contexts* contexts, int size, Work work) {
  static const auto destroyed = std::make_shared<Destroyed>(contexts);
  while (destroyed->count < size) destroyed->One();
  return [work](benchmark::State& state) {
    for (auto _ : state) work(destroyed->alive);
  };
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

}  // namespace

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

}  // namespace cuguest_benchmark
