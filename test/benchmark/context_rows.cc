// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards, and finding the context to work in, beside the driver's calls that do the same.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <dlfcn.h>

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

// Of the user's context.
struct Objects {
  Objects() : guard(TheWorld().user) {
    REQUIRE(driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(driver.MemAlloc(&pointer, 1 << 20) == CUDA_SUCCESS);
    static_cast<void>(guard.Leave());
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    driver.MemFree(pointer);
    driver.StreamDestroy(stream);
  }

  const ObjectDriver& driver = *TheWorld().driver;
  ContextGuard guard;
  CUstream stream = nullptr;
  CUdeviceptr pointer = 0;
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

Group Acquiring(const Objects& objects) {
  const ObjectDriver& driver = *TheWorld().driver;
  const CUstream stream = objects.stream;
  const CUdeviceptr pointer = objects.pointer;
  const auto ask_of_stream = [&driver, stream] {
    CUcontext context = nullptr;
    if (driver.StreamGetCtx != nullptr) driver.StreamGetCtx(stream, &context);
    return context;
  };
  const auto ask_of_pointer = [&driver, pointer] {
    CUcontext context = nullptr;
    driver.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
    return context;
  };
  const auto ask_as_a_guard = [&driver](CUcontext found) {
    AskForId(found);
    AskWhatIsCurrent(driver);
    AskWhatIsCurrent(driver);
  };
  const auto push_and_pop = [&driver](CUcontext found) {
    driver.CtxPushCurrent(found);
    driver.CtxPopCurrent(&found);
  };
  Group group = {kFinding, TheWorld().user, {1, 4, 16}, 1000, {}};
  // What people write, and what a guard calls.
  const auto add_by_hand = [&](const char* written, const char* called, const auto& ask) {
    group.Add(written, [ask, push_and_pop](std::size_t) { push_and_pop(ask()); });
    group.Add(called, [ask, ask_as_a_guard](std::size_t) { ask_as_a_guard(ask()); });
  };
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
  group.Add("`cuStreamGetCtx`",
            [ask_of_stream](std::size_t) { benchmark::DoNotOptimize(ask_of_stream()); });
  group.Add("`AcquireFromStream`",
            [stream](std::size_t) { benchmark::DoNotOptimize(AcquireFromStream(stream).ok()); });
  group.Add("`AcquiredGuard(AcquireFromStream(...))`",
            [stream](std::size_t) { const AcquiredGuard guard(AcquireFromStream(stream)); });
  add_by_hand("`cuStreamGetCtx`, push, pop", kCallsOfStream, ask_of_stream);
  group.Add("`AcquiredGuard(stream)`",
            [stream](std::size_t) { const AcquiredGuard guard(stream); });
  group.Add("`cuPointerGetAttribute`, the context",
            [ask_of_pointer](std::size_t) { benchmark::DoNotOptimize(ask_of_pointer()); });
  group.Add("`AcquireFromPointer`",
            [pointer](std::size_t) { benchmark::DoNotOptimize(AcquireFromPointer(pointer).ok()); });
  add_by_hand("`cuPointerGetAttribute`, push, pop", kCallsOfPointer, ask_of_pointer);
  group.Add("`AcquiredGuard(pointer)`",
            [pointer](std::size_t) { const AcquiredGuard guard(pointer); });
  return group;
}

Rows Make() {
  constexpr char kCurrent[] = "the context is current already";
  constexpr char kOther[] = "another context is current";
  const auto objects = std::make_shared<Objects>();
  return {
      {Guards(kCurrent, TheWorld().user), Guards(kOther, TheWorld().other), Acquiring(*objects)},
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
       {kFinding, "`AcquiredGuard(stream)`", 1, 1.5, kCallsOfStream},
       {kFinding, "`AcquiredGuard(stream)`", 16, 1.5, kCallsOfStream},
       {kFinding, "`AcquiredGuard(pointer)`", 1, 1.5, kCallsOfPointer}},
      objects};
}

const RowsOf g_rows(1, &Make);

}  // namespace
}  // namespace cuguest_benchmark
