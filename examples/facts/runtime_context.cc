// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which context does the CUDA runtime work in, and which call creates it?
// docs/facts/runtime_context.md shows the table that this program prints and checks.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/memory.h"
#include "cuguest/runtime/context.h"
#include "cuguest/runtime/error.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::MemoryDescription;
using cuguest::runtime::RuntimeContext;
using cuguest::testing::UndisturbedScope;
using support::Activity;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using Kind = RuntimeContext::Kind;

#define SUCCEEDS(call) CHECK_OK(cuguest::runtime::ToStatus((call), #call))

// What the runtime did with an allocation.
struct Allocation {
  cudaError_t code = cudaSuccess;
  ContextRef owner;
  Device device = Device::Borrow(-1);
};

Allocation Allocate() {
  Allocation result;
  void* pointer = nullptr;
  result.code = cudaMalloc(&pointer, 64);
  if (result.code != cudaSuccess) {
    CHECK(cudaGetLastError() == result.code);  // which clears it
    return result;
  }
  const absl::StatusOr<MemoryDescription> memory = cuguest::Describe(pointer);
  if (CHECK_OK(memory.status()) && CHECK(memory->device.has_value())) {
    result.owner = memory->context;
    result.device = *memory->device;
  }
  SUCCEEDS(cudaFree(pointer));
  return result;
}

// The thread's stack, and the device's primary context P.
struct Scene {
  const Cast& cast;
  Device device;
  CUcontext p;  // its handle, also where it is inactive

  void Expect(const char* when, const char* stack, bool active) const {
    PrintRow(when, cast.Draw(), Activity(device));
    CHECK(cast.Draw() == stack);
    CHECK(support::IsActive(device) == active);
  }
  void PredictAndAllocate(const char* state, Kind expected) const;
};

// Query() predicts what the next runtime call does; then the call is made.
void Scene::PredictAndAllocate(const char* state, Kind expected) const {
  const bool was_active = support::IsActive(device);
  const std::string before = cast.Draw();
  PrintScene(state);
  PrintRow("the thread", before, Activity(device));
  absl::StatusOr<RuntimeContext> next = absl::UnknownError("not asked");
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    next = RuntimeContext::Query();
  }
  if (!CHECK_OK(next.status())) return;
  support::PrintParagraph("the next call " + next->ToString());
  CHECK(next->kind == expected && next->device == device);

  const Allocation did = Allocate();
  const bool in_p = next->is_primary() || next->kind == Kind::kDestroyed;
  PrintRow("after cudaMalloc", cast.Draw(), Activity(device));
  CHECK(did.code == cudaSuccess);
  CHECK(did.device == device && did.owner == ContextRef::Current());
  CHECK((did.owner.get() == p) == in_p);
  CHECK(cast.Draw() == (in_p ? "[P]<" : before));
  CHECK(support::IsActive(device) == (was_active || in_p));
}

void FirstCalls(const Scene& scene) {
  PrintScene("The first calls of a program");
  scene.Expect("at the start", "(empty)", false);
  int count = 0;
  SUCCEEDS(cudaGetDeviceCount(&count));
  int current = -1;
  SUCCEEDS(cudaGetDevice(&current));
  CHECK(count >= 1 && current == 0);
  scene.Expect("cudaGetDevice[Count]", "(empty)", false);
  SUCCEEDS(cudaSetDevice(scene.device.get()));
  scene.Expect("cudaSetDevice", "[P]<", true);
  std::thread([&scene] {
    scene.Expect("another thread", "(empty)", true);
    CHECK(Allocate().owner.get() == scene.p);
    scene.Expect("cudaMalloc there", "[P]<", true);
  }).join();

  // A failed call leaves its code for the next reader of the last error.
  CHECK(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  SUCCEEDS(cudaDeviceReset());
  CHECK(!support::IsActive(scene.device));
}

void EveryState(const Scene& scene, HostStack* stack, CUcontext a) {
  stack->Set({a});
  scene.PredictAndAllocate("A, a context of the driver API, is current", Kind::kUser);
  stack->Set({});
  scene.PredictAndAllocate("Nothing is current, P is inactive", Kind::kCreates);
  stack->Set({});
  scene.PredictAndAllocate("Nothing is current, P is active", Kind::kBinds);
  stack->Set({scene.p});
  scene.PredictAndAllocate("P is current", Kind::kPrimary);
  stack->Set({a});
  scene.PredictAndAllocate("A is current, P is active", Kind::kUser);
  stack->Set({scene.p});
  CHECK(support::ResetDevice(scene.device) == CUDA_SUCCESS);
  scene.PredictAndAllocate("P is current, and was reset", Kind::kDestroyed);
}

// Destroyed by another thread, so that this one keeps the entry.
void DestroyedContext(const Scene& scene, HostStack* stack, HostContext b) {
  PrintScene("A destroyed context of the driver API is current");
  stack->Set({b.get()});
  std::thread([&b] { const HostContext end = std::move(b); }).join();
  const absl::StatusOr<RuntimeContext> next = RuntimeContext::Query();
  if (CHECK_OK(next.status())) CHECK(next->kind == Kind::kDestroyed);
  const Allocation did = Allocate();
  PrintRow("after cudaMalloc", scene.cast.Draw(), cudaGetErrorName(did.code));
  CHECK(did.code == cudaErrorDeviceUninitialized);
}

// cudaGetDevice names device 1, and the next call works on device 0.
void AnotherDeviceThanItSays(HostStack* stack) {
  PrintScene("Nothing is current after cudaSetDevice(1)");
  if (!DeviceAt(cuguest::Device::Ordinal{1}).ok()) {
    return support::PrintParagraph("skipped: this needs two devices");
  }
  SUCCEEDS(cudaSetDevice(1));
  stack->Set({});
  int device = -1;
  SUCCEEDS(cudaGetDevice(&device));
  const absl::StatusOr<RuntimeContext> next = RuntimeContext::Query();
  if (!CHECK_OK(next.status())) return;
  const Allocation did = Allocate();
  PrintRow("cudaGetDevice", std::to_string(device));
  PrintRow("cudaMalloc's device", std::to_string(did.device.get()));
  CHECK(device == 1 && next->device == Device::Borrow(0) && did.device == Device::Borrow(0));
  SUCCEEDS(cudaSetDevice(1));
  SUCCEEDS(cudaDeviceReset());
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  absl::StatusOr<HostContext> b = HostContext::Create(driver, device);
  CUGUEST_RETURN_IF_ERROR(b);
  CUGUEST_ASSIGN_OR_RETURN(const CUcontext p, support::HandleOfPrimary(device));
  Cast cast;
  cast.Name("A", a.get());
  cast.Name("P", p);
  HostStack stack(driver, {});
  const Scene scene{cast, device, p};

  FirstCalls(scene);
  EveryState(scene, &stack, a.get());
  DestroyedContext(scene, &stack, *std::move(b));
  AnotherDeviceThanItSays(&stack);

  stack.Set({p});
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample(
      "Which context does the CUDA runtime work in, and which call creates it?", &Demonstrate);
}
