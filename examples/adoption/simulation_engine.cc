// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a simulation engine gain that has a context of its own?
//
// The engine integrates particles in a context E of its own, and calls force plugins, which may use
// any CUDA library. The application's thread works in A. The engine is written twice: with
// cuCtxCreate and cuCtxSetCurrent, as such engines do it, and with cuguest.
// docs/adoption/simulation_engine.md walks through both.
//
//   1. Two engines are made, and each makes a step
//
//      before                        [A]<
//      create, set                   [A] [E] [F]<   WRONG CONTEXT
//      cuguest                       [A]<           as it was
//   ...
//   3. The engine ends before a plugin that keeps memory in its context
//
//      create, set                   (not run)      frees memory of a destroyed context
//      cuguest                       E is alive     the plugin holds a reference
//      the plugin has ended          E is destroyed

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

using cuguest::Device;
using cuguest::Driver;

constexpr std::size_t kParticles = 1000;

// With cuCtxCreate and cuCtxSetCurrent. `cuda.Name` is the driver's cuName.
namespace before {

class Engine {
 public:
  using Force = std::function<void()>;

  Engine(const Driver& cuda, Device device) : cuda_(cuda) {
    result_ = cuda_.CtxCreate(&context_, 0, device.get());  // which leaves it current
    if (result_ == CUDA_SUCCESS) result_ = cuda_.MemAlloc(&positions_, kParticles * sizeof(float));
  }
  ~Engine() {
    cuda_.CtxSetCurrent(context_);
    cuda_.MemFree(positions_);
    cuda_.CtxDestroy(context_);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  CUresult Step(const Force& force) {
    if (result_ != CUDA_SUCCESS) return result_;
    CUresult code = cuda_.CtxSetCurrent(context_);
    if (code != CUDA_SUCCESS) return code;
    if (force) force();
    // In whichever context the plugin left current.
    code = cuda_.MemsetD8(positions_, 0, kParticles * sizeof(float));
    return code == CUDA_SUCCESS ? cuda_.CtxSynchronize() : code;
  }

  [[nodiscard]] CUcontext context() const { return context_; }

 private:
  const Driver& cuda_;
  CUcontext context_ = nullptr;
  CUdeviceptr positions_ = 0;
  CUresult result_;
};

}  // namespace before

// With cuguest.
namespace after {

using cuguest::ContextGuard;
using cuguest::DeviceBuffer;
using cuguest::SharedContext;

class Engine {
 public:
  using Force = std::function<void()>;

  static absl::StatusOr<Engine> Create(Device device) {
    SharedContext context = SharedContext::Create(device);  // current nowhere
    CUGUEST_RETURN_IF_ERROR(context);
    absl::StatusOr<DeviceBuffer<float>> positions =
        DeviceBuffer<float>::Allocate(context.context(), kParticles);
    CUGUEST_RETURN_IF_ERROR(positions);
    return Engine(std::move(context), *std::move(positions));
  }

  absl::Status Step(const Force& force) {
    ContextGuard guard(context_.context());
    CUGUEST_RETURN_IF_ERROR(guard);
    if (force) {
      force();
      guard.Reassert();  // the engine's context again, and an incident if the plugin left another
      CUGUEST_RETURN_IF_ERROR(guard);
    }
    return cuguest::Zero(positions_.view());
  }

  [[nodiscard]] CUcontext context() const { return context_.get(); }

 private:
  Engine(SharedContext context, DeviceBuffer<float> positions)
      : context_(std::move(context)), positions_(std::move(positions)) {}

  SharedContext context_;          // destroyed with its last holder, in whichever library
  DeviceBuffer<float> positions_;  // freed before
};

// A plugin, which knows nothing of the engine but the handle that it is given.
class Plugin {
 public:
  static absl::StatusOr<Plugin> Load(CUcontext engines) {
    SharedContext context = SharedContext::Attach(engines);
    CUGUEST_RETURN_IF_ERROR(context);
    absl::StatusOr<DeviceBuffer<float>> forces =
        DeviceBuffer<float>::Allocate(context.context(), kParticles);
    CUGUEST_RETURN_IF_ERROR(forces);
    return Plugin(std::move(context), *std::move(forces));
  }

 private:
  Plugin(SharedContext context, DeviceBuffer<float> forces)
      : context_(std::move(context)), forces_(std::move(forces)) {}

  SharedContext context_;
  DeviceBuffer<float> forces_;
};

}  // namespace after

// An application that works in A.
namespace host {

using cuguest::ContextRef;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;

constexpr char kOwn[] = "[A]<";
constexpr char kCreateSet[] = "create, set";
constexpr char kCuguest[] = "cuguest";

struct House {
  const Driver& driver;
  Device device;
  CUcontext a;
  CUcontext p;  // the primary, which the CUDA runtime works in
  HostStack& stack;

  // The thread's stack; the engines are E and F.
  [[nodiscard]] std::string Draw(const std::vector<CUcontext>& engines) const {
    Cast cast;
    cast.Name("A", a);
    cast.Name("P", p);
    const char* name = "E";
    for (CUcontext engine : engines) cast.Name(std::exchange(name, "F"), engine);
    return cast.Draw();
  }
};

void PrintStack(const char* when, const std::string& stack) {
  PrintRow(when, stack, stack == kOwn ? "as it was" : "WRONG CONTEXT");
}

absl::Status TwoEngines(const House& house) {
  PrintScene("Two engines are made, and each makes a step");
  house.stack.Set({house.a});
  PrintRow("before", house.Draw({}));
  {
    before::Engine e(house.driver, house.device);
    before::Engine f(house.driver, house.device);
    CHECK(house.Draw({e.context(), f.context()}) == "[A] [E] [F]<");
    CHECK(e.Step(nullptr) == CUDA_SUCCESS && f.Step(nullptr) == CUDA_SUCCESS);
    const std::string stack = house.Draw({e.context(), f.context()});
    PrintStack(kCreateSet, stack);
    CHECK(stack != kOwn);
    house.stack.Set({});  // so that no entry of a destroyed context stays
  }
  house.stack.Set({house.a});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  CUGUEST_ASSIGN_OR_RETURN(after::Engine e, after::Engine::Create(house.device));
  CUGUEST_ASSIGN_OR_RETURN(after::Engine f, after::Engine::Create(house.device));
  CHECK_OK(e.Step(nullptr));
  CHECK_OK(f.Step(nullptr));
  const std::string stack = house.Draw({e.context(), f.context()});
  PrintStack(kCuguest, stack);
  CHECK(stack == kOwn);
  return absl::OkStatus();
}

absl::Status PluginOfTheRuntime(const House& house) {
  PrintScene("A force plugin works in the primary context P, as the CUDA runtime does");
  const auto replaces = [&] { CHECK(house.driver.CtxSetCurrent(house.p) == CUDA_SUCCESS); };
  house.stack.Set({house.a});
  {
    before::Engine e(house.driver, house.device);
    static_cast<void>(e.Step(replaces));
    const std::string stack = house.Draw({e.context()});
    PrintStack(kCreateSet, stack);
    CHECK(stack == "[A] [P]<");
    house.stack.Set({});
  }
  house.stack.Set({house.a});
  const auto incidents = cuguest::IncidentCount();
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    CUGUEST_ASSIGN_OR_RETURN(after::Engine e, after::Engine::Create(house.device));
    CHECK_OK(e.Step(replaces));
    const std::string stack = house.Draw({e.context()});
    PrintStack(kCuguest, stack);
    CHECK(stack == kOwn);
  }
  CHECK(cuguest::IncidentCount() == incidents + 1);
  return absl::OkStatus();
}

absl::Status EngineEndsFirst(const House& house) {
  PrintScene("The engine ends before a plugin that keeps memory in its context");
  house.stack.Set({house.a});
  PrintRow(kCreateSet, "(not run)", "frees memory of a destroyed context");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  absl::StatusOr<after::Engine> made = after::Engine::Create(house.device);
  CUGUEST_RETURN_IF_ERROR(made);
  auto engine = std::make_unique<after::Engine>(*std::move(made));
  const ContextRef e = ContextRef::Borrow(engine->context());
  {
    CUGUEST_ASSIGN_OR_RETURN(const after::Plugin plugin, after::Plugin::Load(engine->context()));
    engine.reset();
    PrintRow(kCuguest, e.IsAlive() ? "E is alive" : "GONE", "the plugin holds a reference");
    CHECK(e.IsAlive());
  }
  PrintRow("the plugin has ended", e.IsAlive() ? "STAYS" : "E is destroyed");
  CHECK(!e.IsAlive());
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext p, PrimaryContext::Retain(device));
  HostStack stack(driver, {a.get()});
  const House house = {driver, device, a.get(), p.get(), stack};

  CUGUEST_RETURN_IF_ERROR(TwoEngines(house));
  CUGUEST_RETURN_IF_ERROR(PluginOfTheRuntime(house));
  return EngineEndsFirst(house);
}

}  // namespace host

int main() {
  return support::RunExample("What does a simulation engine gain that has a context of its own?",
                             &host::Demonstrate);
}
