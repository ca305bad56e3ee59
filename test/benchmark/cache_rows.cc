// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// References to contexts, and what is found for one: values of a PerContext, functions of kernels.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/module.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/benchmark/table.h"

namespace cuguest_benchmark {
namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::Driver;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::ObjectDriver;
using cuguest::PerContext;
using cuguest::SharedContext;

// What is looked up: as large as a handle.
using Value = const void*;
using Cache = PerContext<Value>;

absl::StatusOr<Value> MakeValue(const ContextRef& context) { return Value(context.get()); }

constexpr char kCode[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";

// Of the user's context.
struct Objects {
  Objects() : own(kMostThreads) {
    REQUIRE(cache.GetOrMake(ref, &MakeValue).ok());
    for (Cache& each : own) REQUIRE(each.GetOrMake(ref, &MakeValue).ok());
    map[ref.id()] = std::make_shared<Value>(ref.get());
    REQUIRE(kernel.FunctionIn(ref).ok());
    if (driver.LibraryLoadData != nullptr &&
        driver.LibraryLoadData(&library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
            CUDA_SUCCESS) {
      driver.LibraryGetKernel(&raw_kernel, library, "nothing");
    }
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    if (library != nullptr) driver.LibraryUnload(library);
    cache.Forget(ref);
    for (Cache& each : own) each.Forget(ref);
  }

  const ObjectDriver& driver = *TheWorld().driver;
  ContextRef ref = TheWorld().user_ref;
  Cache cache;
  std::vector<Cache> own;  // one for each thread
  // What people write, keyed by id so that it is at least right.
  std::mutex mutex;
  std::unordered_map<unsigned long long, std::shared_ptr<Value>> map;
  SharedContext shared = Take(SharedContext::Attach(TheWorld().user));
  Module module = Take(Module::Load(Take(CodeImage::FromPtx(kCode, "nothing"))));
  Kernel kernel = Take(module.GetKernel("nothing"));
  CUlibrary library = nullptr;
  CUkernel raw_kernel = nullptr;  // nullptr below CUDA 12.0
};

constexpr char kValue[] = "`PerContext::GetOrMake(ContextRef)`";
constexpr char kValueAlone[] = "`PerContext::GetOrMake(ContextRef)`, a cache for each thread";

Group Values(Objects& objects) {
  Group group = {"a value of a context", TheWorld().user, {1, 4, 16}, 1000, {}};
  group.Add("a map under a mutex", [&objects](std::size_t) {
    std::shared_ptr<Value> value;
    {
      const std::lock_guard<std::mutex> lock(objects.mutex);
      value = objects.map.find(objects.ref.id())->second;
    }
    benchmark::DoNotOptimize(*value);
  });
  group.Add(kValue, [&objects](std::size_t) {
    benchmark::DoNotOptimize(**objects.cache.GetOrMake(objects.ref, &MakeValue));
  });
  group.Add(kValueAlone, [&objects](std::size_t thread) {
    benchmark::DoNotOptimize(**objects.own[thread].GetOrMake(objects.ref, &MakeValue));
  });
  group.Add("`PerContext::Find(ContextRef)`", [&objects](std::size_t) {
    benchmark::DoNotOptimize(*objects.cache.Find(objects.ref));
  });
  group.Add("`PerContext::GetOrMake(CUcontext)`", [&objects](std::size_t) {
    benchmark::DoNotOptimize(**objects.cache.GetOrMake(objects.ref.get(), &MakeValue));
  });
  return group;
}

constexpr char kFunction[] = "`Kernel::FunctionIn(ContextRef)`";

Group Functions(Objects& objects) {
  Group group = {"a kernel's function in a context", TheWorld().user, {1, 4, 16}, 1000, {}};
  group.Add("`cuKernelGetFunction`", [&objects](std::size_t) {
    CUfunction function = nullptr;
    if (objects.raw_kernel != nullptr) {
      objects.driver.KernelGetFunction(&function, objects.raw_kernel);
    }
    benchmark::DoNotOptimize(function);
  });
  group.Add(kFunction, [&objects](std::size_t) {
    benchmark::DoNotOptimize(*objects.kernel.FunctionIn(objects.ref));
  });
  group.Add("`Kernel::FunctionIn(CUcontext)`", [&objects](std::size_t) {
    benchmark::DoNotOptimize(*objects.kernel.FunctionIn(objects.ref.get()));
  });
  return group;
}

// cuCtxAttach and cuCtxDetach are in shared_context_benchmark.cc: they crash.
Group References(Objects& objects) {
  Group group = {"a reference to a context", TheWorld().user, {1, 4, 16}, 1000, {}};
  group.Add("`cuDevicePrimaryCtxRetain`, `Release`", [&objects](std::size_t) {
    CUcontext primary = nullptr;
    objects.driver.DevicePrimaryCtxRetain(&primary, 0);
    objects.driver.DevicePrimaryCtxRelease(0);
  });
  group.Add("a `SharedContext` copied, destroyed", [&objects](std::size_t) {
    const SharedContext copy = objects.shared;
    benchmark::DoNotOptimize(copy.get());
  });
  group.Add("`SharedContext::Attach(handle)`, destroyed", [&objects](std::size_t) {
    benchmark::DoNotOptimize(SharedContext::Attach(objects.ref.get()).get());
  });
  return group;
}

Rows Make() {
  const auto objects = std::make_shared<Objects>();
  Rows rows = {{Values(*objects), Functions(*objects), References(*objects)}, {}, objects};
  Promise value = {rows.groups[0].title, kValue, 1, 18};
  value.is_nanoseconds = true;
  Promise function = {rows.groups[1].title, kFunction, 1, 25};
  function.is_nanoseconds = true;
  rows.promises = {value, {rows.groups[0].title, kValue, 16, 1.5, kValueAlone}, function};
  return rows;
}

const RowsOf g_rows(3, &Make);

}  // namespace
}  // namespace cuguest_benchmark
