// SPDX-License-Identifier: Apache-2.0
//
// Which context does the CUDA runtime work in?
//
// The programming guide: "If a context is created and made current via the driver API,
// subsequent runtime calls will use this context instead of creating a new one." And if
// none is, or it is destroyed by now? RuntimeContext::Query() says what the next runtime
// call will do, without making one, which might create a context. Here it says so for
// every state that a thread can be in; then the call is made, and must do just that.
//
//   2. Nothing is current, and nobody has made P
//
//      the thread                    (empty)         P is inactive
//        predicted: creates the primary context of device 0 and makes it current
//      after cudaMalloc              [P]<            P is active
//        the memory is P's
//
// The last scene is the trap in this: cudaGetDevice may name another device than the one
// that the next call will use. It needs two devices.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/memory.h"
#include "cuguest/runtime/context.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace host {

using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::Driver;
using cuguest::MemoryDescription;
using cuguest::Ordinal;
using cuguest::runtime::RuntimeContext;
using cuguest::testing::UndisturbedScope;
using support::Activity;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::IsActive;
using support::PrintParagraph;
using support::PrintRow;
using support::PrintScene;
using Kind = RuntimeContext::Kind;

#define SUCCEEDS(call) CHECK((call) == cudaSuccess)

// What the runtime did with an allocation.
struct Allocation {
  cudaError_t code;
  ContextRef owner;  // of the memory
  Device device;
};

Allocation Allocate() {
  Allocation result{cudaSuccess, ContextRef(), Device::Borrow(-1)};
  void* pointer = nullptr;
  result.code = cudaMalloc(&pointer, 64);
  if (result.code != cudaSuccess) {
    CHECK(cudaGetLastError() == result.code);  // a failed call leaves it for the next reader
    return result;
  }
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  if (CHECK_OK(memory.status()) && CHECK(memory->device.has_value())) {
    result.owner = memory->context;
    result.device = *memory->device;
  }
  SUCCEEDS(cudaFree(pointer));
  return result;
}

// The thread's contexts as the pictures show them, and the primary P of one device.
struct Scene {
  const Cast& cast;
  Device device;
  CUcontext p;  // its handle, also where it is inactive

  [[nodiscard]] RuntimeContext Predict(Kind expected) const;
  void MallocAndCheck(const RuntimeContext& predicted) const;
  void Play(Kind expected) const { MallocAndCheck(Predict(expected)); }
};

RuntimeContext Scene::Predict(Kind expected) const {
  PrintRow("the thread", cast.Draw(), Activity(device));
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::StatusOr<RuntimeContext> next = RuntimeContext::Query();
  if (!CHECK_OK(next.status())) return {expected, ContextRef(), device};
  PrintParagraph("predicted: " + next->ToString());
  CHECK(next->kind == expected);
  CHECK(next->device == device);
  return *next;
}

// Holds the runtime to every word of the prediction.
void Scene::MallocAndCheck(const RuntimeContext& predicted) const {
  const std::string before = cast.Draw();
  const bool was_active = IsActive(device);
  const Allocation did = Allocate();
  PrintRow("after cudaMalloc", cast.Draw(), Activity(device));
  CHECK(did.code == cudaSuccess);
  CHECK(did.device == predicted.device);
  CHECK(did.owner == ContextRef::Current());
  if (predicted.kind == Kind::kUser || predicted.kind == Kind::kPrimary) {
    CHECK(did.owner == predicted.context);
    CHECK(cast.Draw() == before);
    CHECK(IsActive(device) == was_active);
  } else {
    CHECK(did.owner.get() == p);
    CHECK(was_active == (predicted.kind == Kind::kBinds));
    CHECK(cast.Draw() == "[P]<" && IsActive(device));
  }
  PrintParagraph(std::string("the memory is ") + (did.owner.get() == p ? "P's" : "A's"));
}

void UserContext(const Scene& scene, HostStack* stack, CUcontext a) {
  PrintScene("A context A of the driver API is current: the guide's case");
  stack->Set({a});
  scene.Play(Kind::kUser);
}

void Nothing(const Scene& scene, HostStack* stack) {
  PrintScene("Nothing is current, and nobody has made P");
  stack->Set({});
  scene.Play(Kind::kCreates);

  PrintScene("Nothing is current, and P is active: another library uses it, perhaps");
  stack->Set({});
  scene.Play(Kind::kBinds);
}

void ActivePrimary(const Scene& scene, HostStack* stack, CUcontext a) {
  PrintScene("P is current");
  stack->Set({scene.p});
  scene.Play(Kind::kPrimary);

  PrintScene("A is current, while P is active: it is still A");
  stack->Set({a});
  scene.Play(Kind::kUser);
}

void ResetPrimary(const Scene& scene, HostStack* stack) {
  PrintScene("P is current, and was reset under the thread");
  stack->Set({scene.p});
  CHECK(support::ResetDevice(scene.device) == CUDA_SUCCESS);
  scene.Play(Kind::kDestroyed);
}

// Another thread destroys it: this one keeps its entry.
void DestroyedContext(const Scene& scene, HostStack* stack, HostContext b) {
  PrintScene("A context that somebody has destroyed is current");
  stack->Set({b.get()});
  std::thread([&b] { const HostContext end = std::move(b); }).join();
  const RuntimeContext predicted = scene.Predict(Kind::kDestroyed);
  CHECK(predicted.context.get() == nullptr);
  const Allocation did = Allocate();
  PrintRow("after cudaMalloc", scene.cast.Draw(), cudaGetErrorName(did.code));
  CHECK(did.code == cudaErrorDeviceUninitialized);
}

int DeviceByTheRuntime() {
  int device = -1;
  SUCCEEDS(cudaGetDevice(&device));
  return device;
}

// cudaSetDevice(1) and a pop, as a guard of somebody's may do.
void AnotherDeviceThanItSays(HostStack* stack) {
  PrintScene("The trap: nothing is current after cudaSetDevice(1)");
  const absl::StatusOr<Device> second = Device::At(Ordinal{1});
  if (!second.ok()) return PrintParagraph("not tried: it needs two devices, and here is one");
  SUCCEEDS(cudaSetDevice(1));
  stack->Set({});
  const absl::StatusOr<RuntimeContext> next = RuntimeContext::Query();
  if (!CHECK_OK(next.status())) return;
  PrintRow("cudaGetDevice", "1", "what was last given to cudaSetDevice");
  CHECK(DeviceByTheRuntime() == 1);
  PrintRow("RuntimeContext::Query", "0", "");
  PrintParagraph("predicted: " + next->ToString());
  CHECK(next->device == Device::Borrow(0));

  const Allocation did = Allocate();
  PrintRow("after cudaMalloc", "0", "the device that the memory is on");
  CHECK(did.device == Device::Borrow(0));
  CHECK(DeviceByTheRuntime() == 0);

  // The runtime's unit of the second primary goes back.
  SUCCEEDS(cudaSetDevice(1));
  SUCCEEDS(cudaDeviceReset());
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  const absl::StatusOr<HostContext> a = HostContext::Create(driver, device);
  if (!a.ok()) return a.status();
  absl::StatusOr<HostContext> b = HostContext::Create(driver, device);
  if (!b.ok()) return b.status();
  const absl::StatusOr<CUcontext> p = support::HandleOfPrimary(device);
  if (!p.ok()) return p.status();
  Cast cast;
  cast.Name("A", a->get());
  cast.Name("P", *p);
  HostStack stack(driver, {});
  const Scene scene{cast, device, *p};

  UserContext(scene, &stack, a->get());
  Nothing(scene, &stack);
  ActivePrimary(scene, &stack, a->get());
  ResetPrimary(scene, &stack);
  DestroyedContext(scene, &stack, *std::move(b));
  AnotherDeviceThanItSays(&stack);

  stack.Set({*p});
  SUCCEEDS(cudaDeviceReset());  // the runtime's unit goes back
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("Which context does the CUDA runtime work in?", &host::Demonstrate);
}
