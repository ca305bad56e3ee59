// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which context does the CUDA runtime work in, and which call creates it?
// docs/facts/runtime_context.md shows the table that this program prints and checks.

#include <cuda_runtime_api.h>

#include <string>
#include <thread>
#include <vector>

#include "cuguest/devices.h"
#include "cuguest/objects/memory.h"
#include "cuguest/runtime/context.h"
#include "examples/support/stage.h"

namespace {

using cuguest::Device;
using cuguest::runtime::RuntimeContext;
using support::IsActive;
using support::PrintRow;
using support::Stage;
using Kind = RuntimeContext::Kind;

// What the runtime did with an allocation.
struct Allocation {
  cudaError_t code = cudaSuccess;
  cuguest::ContextRef owner;
  Device device = Device::Borrow(-1);
};

Allocation Allocate() {
  Allocation result;
  void* pointer = nullptr;
  result.code = cudaMalloc(&pointer, 64);
  CHECK(cudaGetLastError() == result.code);  // which clears it
  if (result.code != cudaSuccess) return result;
  const auto memory = cuguest::Describe(pointer);
  if (CHECK_OK(memory.status()) && CHECK(memory->device.has_value())) {
    result.owner = memory->context;
    result.device = *memory->device;
  }
  SUCCEEDS(cudaFree(pointer));
  return result;
}

// Query() predicts what the next runtime call does; then the call is made.
void Check(const Stage& stage, const std::vector<std::string>& stack, const char* state,
           Kind expected) {
  support::PrintScene(state);
  const Device device = Device::Borrow(0);
  stage.Set(stack);
  if (expected == Kind::kDestroyed) SUCCEEDS(support::ResetDevice(device));
  const bool was_active = IsActive(device);
  const std::string before = stage.Draw();
  const auto next = [] {
    const support::Undisturbed undisturbed;
    return RuntimeContext::Query();
  }();
  if (!CHECK_OK(next.status())) return;
  support::PrintText("the next call " + next->ToString());
  CHECK(next->kind == expected && next->device == device);

  const Allocation did = Allocate();
  const bool in_p = next->is_primary() || next->kind == Kind::kDestroyed;
  CHECK(stage.Shows("after cudaMalloc", in_p ? "[P]<" : before,
                    was_active || in_p ? "P is active" : "P is inactive"));
  CHECK(did.code == cudaSuccess && did.device == device &&
        did.owner == cuguest::ContextRef::Current());
  CHECK((did.owner.get() == stage["P"]) == in_p);
}

void FirstCalls(const Stage& stage, Device device) {
  support::PrintScene("The first calls of a program");
  int count = 0;
  int current = -1;
  SUCCEEDS(cudaGetDeviceCount(&count));
  SUCCEEDS(cudaGetDevice(&current));
  CHECK(count >= 1 && current == 0);
  CHECK(stage.Shows("cudaGetDevice[Count]", "(empty)", "P is inactive"));
  SUCCEEDS(cudaSetDevice(device.get()));
  CHECK(stage.Shows("cudaSetDevice", "[P]<", "P is active"));
  std::thread([&] {
    CHECK(stage.Draw() == "(empty)");
    CHECK(Allocate().owner.get() == stage["P"]);
    CHECK(stage.Shows("cudaMalloc on another thread", "[P]<", "P is active"));
  }).join();
  SUCCEEDS(cudaDeviceReset());
  CHECK(!IsActive(device));
}

// cudaGetDevice names device 1, and the next call works on device 0.
void AnotherDeviceThanItSays(const Stage& stage) {
  support::PrintScene("Nothing is current after cudaSetDevice(1)");
  if (!DeviceAt(Device::Ordinal{1}).ok()) {
    return support::PrintText("skipped: this needs two devices");
  }
  SUCCEEDS(cudaSetDevice(1));
  stage.Set({});
  int device = -1;
  SUCCEEDS(cudaGetDevice(&device));
  const absl::StatusOr<RuntimeContext> next = RuntimeContext::Query();
  if (!CHECK_OK(next.status())) return;
  const Allocation did = Allocate();
  PrintRow("cudaGetDevice, cudaMalloc", std::to_string(device), std::to_string(did.device.get()));
  CHECK(device == 1 && next->device == Device::Borrow(0) && did.device == Device::Borrow(0));
  SUCCEEDS(cudaSetDevice(1));
  SUCCEEDS(cudaDeviceReset());
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, Device device) {
  Stage stage(driver, device, {"A", "B", "P"});
  FirstCalls(stage, device);

  Check(stage, {"A"}, "A, a context of the driver API, is current", Kind::kUser);
  Check(stage, {}, "Nothing is current, P is inactive", Kind::kCreates);
  Check(stage, {}, "Nothing is current, P is active", Kind::kBinds);
  Check(stage, {"P"}, "P is current", Kind::kPrimary);
  Check(stage, {"A"}, "A is current, P is active", Kind::kUser);
  Check(stage, {"P"}, "P is current, and was reset", Kind::kDestroyed);

  support::PrintScene("A destroyed context of the driver API is current");
  stage.Set({"B"});
  std::thread([&] { stage.Destroy("B"); }).join();  // so that this one keeps the entry
  const auto next = RuntimeContext::Query();
  if (CHECK_OK(next.status())) CHECK(next->kind == Kind::kDestroyed);
  const Allocation did = Allocate();
  PrintRow("after cudaMalloc", stage.Draw(), cudaGetErrorName(did.code));
  CHECK(did.code == cudaErrorDeviceUninitialized);

  AnotherDeviceThanItSays(stage);
  stage.Set({"P"});
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample(
      "Which context does the CUDA runtime work in, and which call creates it?", &Demonstrate);
}
