// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device for a scope, beside the idioms of the runtime: those of the static runtime, which nvcc
// links unless it is told otherwise, and those of the shared one.

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "cudasim/sim.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/device.h"
#include "cuguest/runtime/device_guard.h"
#include "test/benchmark/static_runtime.h"
#include "test/benchmark/table.h"

namespace cuguest_benchmark {
namespace {

using cudasim::Sim;
using cuguest::AcquiredGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::runtime::DeviceGuard;

const Device kFirst = Device::Borrow(0);
constexpr char kCallsOfGuard[] = "what `DeviceGuard` calls";
constexpr char kIfDiffers[] = "`cudaGetDevice`, `cudaSetDevice` if it differs";

void AddIdioms(const RuntimeCalls& runtime, const std::string& which, Group* group) {
  group->Add(kIfDiffers + which, [runtime](std::size_t) {
    int before = -1;
    runtime.get_device(&before);
    if (before == 0) return;
    runtime.set_device(0);
    runtime.set_device(before);
  });
  group->Add("`cudaGetDevice`, `cudaSetDevice` twice" + which, [runtime](std::size_t) {
    int before = 0;
    runtime.get_device(&before);
    runtime.set_device(0);
    runtime.set_device(before);
  });
}

// What PyTorch's c10::cuda::CUDAGuard calls where the device is right already: cudaGetDevice to
// begin with (ExchangeDevice); at the end whether the device has a primary context, and
// cudaGetDevice again (MaybeSetDevice, c10/cuda/CUDAFunctions.cpp).
void AddTorchCalls(const RuntimeCalls& runtime, const std::string& which, Group* group) {
  group->Add("what PyTorch's `CUDAGuard` calls" + which, [runtime](std::size_t) {
    int before = -1;
    runtime.get_device(&before);
    if (before != 0) runtime.set_device(0);
    unsigned flags = 0;
    int active = 0;
    TheWorld().driver->DevicePrimaryCtxGetState(before, &flags, &active);
    if (active == 0) return;
    int now = -1;
    runtime.get_device(&now);
    if (now != before) runtime.set_device(before);
  });
}

Group OfDevice(const char* title, CUcontext current, bool sets) {
  Group group = {title, current, {1, 4, 16}, 1000, {}};
  constexpr char kShared[] = ", shared runtime";
  const RuntimeCalls shared = {reinterpret_cast<int (*)(int*)>(&cudaGetDevice),
                               reinterpret_cast<int (*)(int)>(&cudaSetDevice)};
#ifdef CUGUEST_BENCHMARK_STATIC_RUNTIME
  // It needs private tables of the driver, which the simulation has not.
  if (sets && !Sim::IsActive()) {
    constexpr char kStatic[] = ", static runtime";
    AddIdioms(cuguest_benchmark_static_runtime(), kStatic, &group);
    AddTorchCalls(cuguest_benchmark_static_runtime(), kStatic, &group);
  }
#endif
  if (sets) {
    AddIdioms(shared, kShared, &group);
    AddTorchCalls(shared, kShared, &group);
  } else {
    group.Add("push, pop", [current](std::size_t) {
      CUcontext popped;
      TheWorld().driver->CtxPushCurrent(current);
      TheWorld().driver->CtxPopCurrent(&popped);
    });
  }
  group.Add(kCallsOfGuard, [](std::size_t) {
    CUcontext context = nullptr;
    TheWorld().driver->CtxGetCurrent(&context);
    AskForId(context);
    TheWorld().driver->CtxGetCurrent(&context);
    benchmark::DoNotOptimize(context);
  });
  group.Add("`runtime::DeviceGuard`", [](std::size_t) { const DeviceGuard guard(kFirst); });
  group.Add("`AcquiredGuard(device)`", [](std::size_t) { const AcquiredGuard guard(kFirst); });
  return group;
}

Rows Make() {
  constexpr char kPrimary[] = "the device's primary context is current already";
  const std::string torch = "what PyTorch's `CUDAGuard` calls, shared runtime";
  Rows rows = {{OfDevice(kPrimary, TheWorld().primary, true),
                OfDevice("a user's context of the device is current", TheWorld().user, false)},
               {{kPrimary, "`runtime::DeviceGuard`", 1, 1.6},
                {kPrimary, "`runtime::DeviceGuard`", 16, 1.6},
                // Of the guard itself it was 0.21 on an H200, with 16 threads 0.011.
                {kPrimary, "`runtime::DeviceGuard`", 1, 0.4, torch},
                {kPrimary, "`runtime::DeviceGuard`", 16, 0.05, torch},
                {kPrimary, "`runtime::DeviceGuard`", 1, 1.25, kCallsOfGuard},
                {kPrimary, "`AcquiredGuard(device)`", 1, 1.25, kCallsOfGuard}},
               nullptr};
  return rows;
}

const RowsOf g_rows(2, &Make);

}  // namespace
}  // namespace cuguest_benchmark
