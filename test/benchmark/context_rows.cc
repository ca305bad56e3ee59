// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards, and finding the context to work in, beside the driver's calls that do the same.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <deque>
#include <memory>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/objects/driver.h"
#include "test/benchmark/table.h"
#include "test/support/files.h"

namespace cuguest_benchmark {
namespace {

using cuguest::AcquireCurrent;
using cuguest::AcquiredGuard;
using cuguest::AcquireFromPointer;
using cuguest::AcquireFromStream;
using cuguest::AcquireOn;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::GuardMode;
using cuguest::ObjectDriver;

const Device kFirst = Device::Borrow(0);

// What guards call, elided and not.
constexpr char kCallsOfHandle[] = "query, query";
constexpr char kCallsOfRef[] = "query, `cuCtxGetId`, query";
constexpr char kSwitchesOfHandle[] = "query, push, pop, query";
constexpr char kCallsOfStream[] = "what `AcquiredGuard(stream)` calls";
constexpr char kCallsOfPointer[] = "what `AcquiredGuard(pointer)` calls";
constexpr char kSwitchesOfRef[] = "query, `cuCtxGetId`, push, pop, query";

// A library of guard_plugin.cc.
struct Plugin {
  void (*enter)(CUcontext, int);
  int (*enter_and_ask)(CUcontext, int);
};
const Plugin& ThePlugin() {
  static const Plugin s_plugin = [] {
    void* const library = dlopen(cuguest_test::FindBeside("test/benchmark_guard_plugin.so").c_str(),
                                 RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    Plugin plugin;
    plugin.enter = reinterpret_cast<decltype(plugin.enter)>(dlsym(library, "EnterAndLeave"));
    plugin.enter_and_ask =
        reinterpret_cast<decltype(plugin.enter_and_ask)>(dlsym(library, "EnterAskAndLeave"));
    return plugin;
  }();
  return s_plugin;
}
constexpr char kInPlugin[] = "`ContextGuard(handle)` in a library that was loaded";
constexpr char kAskedInPlugin[] = "the same, and `ok()`";

// A stream and memory of a context.
struct Objects {
  explicit Objects(CUcontext context) {
    const ContextGuard guard(context);
    REQUIRE(driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(driver.MemAlloc(&pointer, 1 << 20) == CUDA_SUCCESS);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    driver.MemFree(pointer);
    driver.StreamDestroy(stream);
  }

  const ObjectDriver& driver = *TheWorld().driver;
  CUstream stream = nullptr;
  CUdeviceptr pointer = 0;
};

// The user's, and those of each thread's own context.
struct AllObjects {
  AllObjects() {
    for (const CUcontext context : TheWorld().own) own.emplace_back(context);
  }
  [[nodiscard]] const Objects& OfThread(std::size_t thread) const {
    return own[thread % kOwnContexts];
  }

  Objects user{TheWorld().user};
  std::deque<Objects> own;
};

void AskWhatIsCurrent(const ObjectDriver& driver) {
  CUcontext context = nullptr;
  driver.CtxGetCurrent(&context);
  benchmark::DoNotOptimize(context);
}

// Into the user's context and back. What a guard calls is a row, too: the rest of it is cuguest's.
Group Guards(const char* title, CUcontext current) {
  const ObjectDriver& driver = *TheWorld().driver;
  const CUcontext user = TheWorld().user;
  const ContextRef ref = TheWorld().user_ref;
  Group group = {title, current, {1, 4, 16}, 1000, {}};
  group.Add("push, pop", [&driver, user](std::size_t) {
    CUcontext popped;
    driver.CtxPushCurrent(user);
    driver.CtxPopCurrent(&popped);
  });
  if (current == user) {
    group.Add(kCallsOfHandle, [&driver](std::size_t) {
      AskWhatIsCurrent(driver);
      AskWhatIsCurrent(driver);
    });
    group.Add(kCallsOfRef, [&driver, user](std::size_t) {
      AskWhatIsCurrent(driver);
      AskForId(user);
      AskWhatIsCurrent(driver);
    });
  } else {
    const auto enter_and_leave = [&driver, user] {
      CUcontext popped;
      driver.CtxPushCurrent(user);
      driver.CtxPopCurrent(&popped);
      AskWhatIsCurrent(driver);
    };
    group.Add(kSwitchesOfHandle, [&driver, enter_and_leave](std::size_t) {
      AskWhatIsCurrent(driver);
      enter_and_leave();
    });
    group.Add(kSwitchesOfRef, [&driver, user, enter_and_leave](std::size_t) {
      AskWhatIsCurrent(driver);
      AskForId(user);
      enter_and_leave();
    });
  }
  group.Add("get, set, set", [&driver, user](std::size_t) {
    CUcontext before;
    driver.CtxGetCurrent(&before);
    driver.CtxSetCurrent(user);
    driver.CtxSetCurrent(before);
  });
  group.Add("`ContextGuard(handle)`", [user](std::size_t) { const ContextGuard guard(user); });
  group.Add("`ContextGuard(ContextRef)`", [ref](std::size_t) { const ContextGuard guard(ref); });
  group.Add("`ContextGuard`, `kAlwaysPush`",
            [user](std::size_t) { const ContextGuard guard(user, GuardMode::kAlwaysPush); });
  group.rows.push_back({kInPlugin, [user](int, int times) { ThePlugin().enter(user, times); }});
  group.rows.push_back({kAskedInPlugin, [user](int, int times) {
                          REQUIRE(ThePlugin().enter_and_ask(user, times) == times);
                        }});
  return group;
}

constexpr char kFinding[] = "finding a context, which is current";
constexpr char kFindingOwn[] = "finding each thread's own context, which is current";

// How a context is found of a stream or a pointer: what people write, what a guard calls, and the
// guard. `add(name, work)` adds a row; `ask(thread)` has the context, `enter(thread)` the guard.
template <typename Add, typename Ask, typename Enter>
void AddWayIn(const Add& add, const char* written, const char* called, const char* guard,
              const Ask& ask, const Enter& enter) {
  const ObjectDriver& driver = *TheWorld().driver;
  add(written, [&driver, ask](std::size_t thread) {
    CUcontext found = ask(thread);
    driver.CtxPushCurrent(found);
    driver.CtxPopCurrent(&found);
  });
  add(called, [&driver, ask](std::size_t thread) {
    AskForId(ask(thread));
    AskWhatIsCurrent(driver);
    AskWhatIsCurrent(driver);
  });
  add(guard, enter);
}

// `of(thread)` has the Objects.
template <typename Add, typename Of>
void AddWaysIn(const Add& add, const Of& of) {
  const ObjectDriver& driver = *TheWorld().driver;
  AddWayIn(
      add, "`cuStreamGetCtx`, push, pop", kCallsOfStream, "`AcquiredGuard(stream)`",
      [&driver, of](std::size_t thread) {
        CUcontext context = nullptr;
        if (driver.StreamGetCtx != nullptr) driver.StreamGetCtx(of(thread).stream, &context);
        return context;
      },
      [of](std::size_t thread) { const AcquiredGuard guard(of(thread).stream); });
  AddWayIn(
      add, "`cuPointerGetAttribute`, push, pop", kCallsOfPointer, "`AcquiredGuard(pointer)`",
      [&driver, of](std::size_t thread) {
        CUcontext context = nullptr;
        driver.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, of(thread).pointer);
        return context;
      },
      [of](std::size_t thread) { const AcquiredGuard guard(of(thread).pointer); });
}

Group Acquiring(const AllObjects& objects) {
  const ObjectDriver& driver = *TheWorld().driver;
  const CUstream stream = objects.user.stream;
  const CUdeviceptr pointer = objects.user.pointer;
  Group group = {kFinding, TheWorld().user, {1, 4, 16}, 1000, {}};
  group.Add("`cuCtxGetCurrent`, `cuCtxGetDevice`, `cuCtxGetId`", [&driver](std::size_t) {
    CUcontext context = nullptr;
    CUdevice device = 0;
    unsigned long long id = 0;
    driver.CtxGetCurrent(&context);
    driver.CtxGetDevice(&device);
    if (driver.CtxGetId != nullptr) driver.CtxGetId(context, &id);
    benchmark::DoNotOptimize(id);
  });
  group.Add("`AcquireCurrent`",
            [](std::size_t) { benchmark::DoNotOptimize(AcquireCurrent(kFirst).ok()); });
  group.Add("`AcquireOn`", [](std::size_t) { benchmark::DoNotOptimize(AcquireOn(kFirst).ok()); });
  group.Add("`AcquireFromStream(0)`",
            [](std::size_t) { benchmark::DoNotOptimize(AcquireFromStream(nullptr).ok()); });
  group.Add("`AcquireFromStream`",
            [stream](std::size_t) { benchmark::DoNotOptimize(AcquireFromStream(stream).ok()); });
  group.Add("`AcquiredGuard(AcquireFromStream(...))`",
            [stream](std::size_t) { const AcquiredGuard guard(AcquireFromStream(stream)); });
  group.Add("`AcquireFromPointer`",
            [pointer](std::size_t) { benchmark::DoNotOptimize(AcquireFromPointer(pointer).ok()); });
  AddWaysIn([&group](const char* name, const auto& work) { group.Add(name, work); },
            [&objects](std::size_t) -> const Objects& { return objects.user; });
  return group;
}

Group AcquiringOwn(const AllObjects& objects) {
  Group group = {kFindingOwn, TheWorld().user, {1, 16}, 1000, {}};
  AddWaysIn([&group](const char* name, const auto& work) { group.AddInOwn(name, work); },
            [&objects](std::size_t thread) -> const Objects& { return objects.OfThread(thread); });
  return group;
}

Rows Make() {
  constexpr char kCurrent[] = "the context is current already";
  constexpr char kOther[] = "another context is current";
  const auto objects = std::make_shared<AllObjects>();
  return {{Guards(kCurrent, TheWorld().user), Guards(kOther, TheWorld().other), Acquiring(*objects),
           AcquiringOwn(*objects)},
          {{kCurrent, "`ContextGuard(handle)`", 1, 0.65},
           {kCurrent, "`ContextGuard(handle)`", 16, 0.05},
           {kCurrent, "`ContextGuard(ContextRef)`", 1, 1.1},
           {kCurrent, "`ContextGuard(ContextRef)`", 16, 0.05},
           {kCurrent, "`ContextGuard`, `kAlwaysPush`", 1, 1.95},
           {kOther, "`ContextGuard(handle)`", 1, 1.95},
           {kOther, "`ContextGuard(ContextRef)`", 1, 2.3},
           {kOther, "`ContextGuard(handle)`", 16, 1.55},
           {kOther, "`ContextGuard(ContextRef)`", 16, 2.1},
           {kCurrent, "`ContextGuard(handle)`", 1, 1.6, kCallsOfHandle},
           {kCurrent, "`ContextGuard(ContextRef)`", 1, 1.3, kCallsOfRef},
           {kCurrent, "`ContextGuard(ContextRef)`", 16, 1.4, kCallsOfRef},
           {kOther, "`ContextGuard(handle)`", 1, 1.4, kSwitchesOfHandle},
           {kOther, "`ContextGuard(ContextRef)`", 1, 1.4, kSwitchesOfRef},
           {kFinding, "`AcquiredGuard(stream)`", 1, 1.4, kCallsOfStream},
           {kFinding, "`AcquiredGuard(stream)`", 16, 1.5, kCallsOfStream},
           {kFinding, "`AcquiredGuard(pointer)`", 1, 1.4, kCallsOfPointer},
           {kFindingOwn, "`AcquiredGuard(stream)`", 16, 1.5, kCallsOfStream}},
          objects};
}

const RowsOf g_rows(1, &Make);

}  // namespace
}  // namespace cuguest_benchmark
