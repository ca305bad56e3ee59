// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/benchmark/growth_curves.h"

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "test/benchmark/growth_copies.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {
namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::Module;
using cuguest::ObjectDriver;
using cuguest::PrimaryContext;
using cuguest::SharedContext;

template <typename Work>
Bodies AfterContexts(Contexts* contexts, int size, Work work) {
  static const auto destroyed = std::make_shared<Destroyed>(contexts);
  while (destroyed->count < size) destroyed->One();
  return {[work](benchmark::State& state) {
    for (auto _ : state) work(destroyed->alive);
  }};
}

// A guard after `size` threads that had one, too.
Bodies AfterThreads(Contexts* contexts, int size) {
  const ContextRef ref = ContextRef::Borrow(contexts->AtLeast(1)[0]);
  static int s_count = 0;
  for (; s_count < size; ++s_count) RunThread(ref);
  return {[ref](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ContextGuard(ref).result());
  }};
}

// A guard inside `size` others, which take turns between two contexts.
Bodies Nested(Contexts* contexts, int size) {
  const std::vector<CUcontext>& all = contexts->AtLeast(2);
  const ContextRef refs[] = {ContextRef::Borrow(all[0]), ContextRef::Borrow(all[1])};
  return {[size, refs](benchmark::State& state) {
    std::deque<ContextGuard> outer;
    for (int i = 0; i < size; ++i) Require(outer.emplace_back(refs[i % 2]).ok(), "a nested guard");
    const ContextRef inner = refs[size % 2];
    for (auto _ : state) benchmark::DoNotOptimize(ContextGuard(inner).result());
    while (!outer.empty()) outer.pop_back();
  }};
}

// A guard by reference into a context that is the thread's own.
Bodies OfThread(Contexts* contexts, int size) {
  const int most = 8;  // contexts: more threads share them
  const std::vector<CUcontext> all = contexts->AtLeast(std::min(size, most));
  return {[all](benchmark::State& state) {
    const auto at = static_cast<std::size_t>(state.thread_index()) % all.size();
    const ContextRef ref = ContextRef::Borrow(all[at]);
    const ContextGuard mine(ref);
    for (auto _ : state) benchmark::DoNotOptimize(ContextGuard(ref).result());
  }};
}

// A kernel by its name, of a module of `size`.
Bodies OfModule(Contexts* contexts, int size) {
  contexts->AtLeast(1);
  std::string code = ".version 6.0\n.target sm_50\n.address_size 64\n";
  for (int i = 0; i < size; ++i) {
    code += ".visible .entry kernel_" + std::to_string(i) + "() { ret; }\n";
  }
  const auto module = std::make_shared<Module>(
      Take(Module::Load(Take(cuguest::CodeImage::FromPtx(code, "growth")))));
  return {[module, name = "kernel_" + std::to_string(size / 2)](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(module->GetKernel(name).ok());
  }};
}

void AttachByHandle(Alive& alive) {
  benchmark::DoNotOptimize(SharedContext::Attach(alive.Next().get()).get());
}

// The primary contexts of the first devices, which are held. They are taken in turn.
struct Primaries {
  Primaries(const Driver& of, int size) : driver(of) {
    for (int i = 0; i < size; ++i) {
      held.push_back(Take(PrimaryContext::Retain(Device::Borrow(i))));
    }
  }
  const PrimaryContext& Next() { return held[turn++ % held.size()]; }

  const Driver& driver;
  std::vector<PrimaryContext> held;
  std::size_t turn = 0;
};

void AskForCurrent(const Driver& driver) {
  CUcontext context = nullptr;
  driver.CtxGetCurrent(&context);
  benchmark::DoNotOptimize(context);
}

// Below CUDA 12.0 for the version, which tells as well whether `context` is alive.
void AskForId(const Driver& driver, CUcontext context) {
  unsigned long long id = 0;
  unsigned version = 0;
  if (driver.CtxGetId != nullptr) {
    driver.CtxGetId(context, &id);
  } else {
    driver.CtxGetApiVersion(context, &version);
  }
  benchmark::DoNotOptimize(id);
  benchmark::DoNotOptimize(version);
}

void PushAndPop(const Driver& driver, CUcontext context) {
  CUcontext popped = nullptr;
  driver.CtxPushCurrent(context);
  driver.CtxPopCurrent(&popped);
}

// Of a device whose primary context is held.
CUcontext RetainAgain(const Driver& driver, CUdevice device) {
  unsigned flags = 0;
  int is_active = 0;
  CUcontext context = nullptr;
  driver.DevicePrimaryCtxGetState(device, &flags, &is_active);
  driver.DevicePrimaryCtxRetain(&context, device);
  AskForId(driver, context);
  return context;
}

// What is done in contexts that `Place` has, in turn.
template <typename Place>
struct Operation {
  const char* name;
  void (*work)(Place&);
  void (*calls)(Place&);  // the driver's calls of `work`, in their order; nullptr: it makes none
  double flat;            // see Curve
};

// Of one device and of several.
const Operation<Alive> kInContexts[] = {
    {"ContextGuard(ContextRef), another current",
     [](Alive& alive) { benchmark::DoNotOptimize(ContextGuard(alive.Next()).result()); },
     [](Alive& alive) {
       const CUcontext context = alive.Next().get();
       AskForCurrent(alive.driver);
       AskForId(alive.driver, context);
       PushAndPop(alive.driver, context);
       AskForCurrent(alive.driver);
     },
     1.5},
    {"PerContext::GetOrMake",
     [](Alive& alive) {
       benchmark::DoNotOptimize(alive.cache.GetOrMake(alive.Next(), &Alive::MakeValue).ok());
     },
     nullptr, 3},
    {"SharedContext::Attach(ContextRef), dropped",
     [](Alive& alive) { benchmark::DoNotOptimize(SharedContext::Attach(alive.Next()).get()); },
     [](Alive& alive) { AskForId(alive.driver, alive.Next().get()); }, 1.5},
    {"SharedContext::Attach(handle), dropped", &AttachByHandle,
     [](Alive& alive) { AskForId(alive.driver, alive.Next().get()); }, 1.2},
    {"AcquireFromPointer",
     [](Alive& alive) {
       benchmark::DoNotOptimize(cuguest::AcquireFromPointer(alive.NextPointer()).ok());
     },
     [](Alive& alive) {
       CUcontext context = nullptr;
       alive.driver.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT,
                                        alive.NextPointer());
       AskForId(alive.driver, context);
     },
     1.5},
};

const Operation<Primaries> kInPrimaries[] = {
    {"AcquiredGuard(device), another current",
     [](Primaries& primaries) {
       benchmark::DoNotOptimize(cuguest::AcquiredGuard(primaries.Next().device()).ok());
     },
     [](Primaries& primaries) {
       const CUdevice device = primaries.Next().device().get();
       AskForCurrent(primaries.driver);
       PushAndPop(primaries.driver, RetainAgain(primaries.driver, device));
       AskForCurrent(primaries.driver);
       primaries.driver.DevicePrimaryCtxRelease(device);
     },
     1.5},
    {"SharedContext::Attach(ContextRef) of a primary, dropped",
     [](Primaries& primaries) {
       benchmark::DoNotOptimize(SharedContext::Attach(primaries.Next().context()).get());
     },
     [](Primaries& primaries) {
       const PrimaryContext& primary = primaries.Next();
       int count = 0;
       AskForId(primaries.driver, primary.get());
       primaries.driver.DeviceGetCount(&count);
       AskForId(primaries.driver, RetainAgain(primaries.driver, primary.device().get()));
       primaries.driver.DevicePrimaryCtxRelease(primary.device().get());
     },
     1.5},
};

// The entries that `work` calls, on the simulation.
std::vector<std::string> CallsOf(const std::function<void()>& work) {
  static std::vector<std::string> s_calls;
  s_calls.clear();
  Sim::OnEveryCall([](const char* entry) { s_calls.emplace_back(entry); });
  work();
  Sim::OnEveryCall(nullptr);
  return s_calls;
}

// On the simulation: that the calls of `operation` are those that it makes.
template <typename Place>
void CheckCalls(Place& place, int size, const Operation<Place>& operation) {
  if (!Sim::IsActive()) return;
  const auto round = [&](void (*work)(Place&)) {
    for (int i = 0; i < size && work != nullptr; ++i) work(place);
  };
  round(operation.work);  // once: the first may look for things
  const bool are_same =
      CallsOf([&] { round(operation.work); }) == CallsOf([&] { round(operation.calls); });
  Require(are_same, (std::string("other calls than those of ") + operation.name).c_str());
}

template <typename Place>
Bodies InTurn(const std::shared_ptr<Place>& place, int size, const Operation<Place>& operation) {
  CheckCalls(*place, size, operation);
  const auto repeat = [place](void (*work)(Place&)) -> Body {
    return [place, work](benchmark::State& state) {
      for (auto _ : state) work(*place);
    };
  };
  return {repeat(operation.work), operation.calls != nullptr ? repeat(operation.calls) : Body()};
}

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
    curves.push_back({one.name, "contexts", contexts,
                      [one](Contexts* all, int size) {
                        return InTurn(std::make_shared<Alive>(all, size), size, one);
                      },
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
                      [one, on_each](Contexts*, int size) {
                        return InTurn(std::make_shared<Alive>(on_each.get(), size), size, one);
                      },
                      one.flat});
  }
  for (const auto& one : kInPrimaries) {
    curves.push_back({one.name, "devices", devices,
                      [one, on_each](Contexts*, int size) {
                        const Driver& driver = on_each->driver();
                        return InTurn(std::make_shared<Primaries>(driver, size), size, one);
                      },
                      one.flat});
  }
  return curves;
}

std::string KeyOf(const std::string& name, const std::string& of, int size) {
  return name + " of " + of + " " + std::to_string(size);
}
std::string KeyOf(const Curve& curve, int size) { return KeyOf(curve.name, curve.of, size); }
std::string KeyOfCalls(const Curve& curve, int size) { return "calls, " + KeyOf(curve, size); }

}  // namespace cuguest_benchmark
