// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a simulation engine gain that has a context of its own?
//
// The engine integrates particles in a context E of its own, and calls force plugins, which may use
// any CUDA library. The application's thread works in A. The engine is written twice: with
// cuCtxCreate and cuCtxSetCurrent, and with cuguest: see docs/adoption/simulation_engine.md.

#include <functional>
#include <optional>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/incident.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"

using cuguest::Driver;
using cuguest::ObjectDriver;
using Forces = std::vector<std::function<void()>>;  // of the plugins
constexpr std::size_t kParticles = 1000;

// With cuCtxCreate and cuCtxSetCurrent. `cuda.Name` is the driver's cuName.
namespace before {

struct Engine {
  Engine(const ObjectDriver& driver, cuguest::Device device) : cuda(driver) {
    cuda.CtxCreate(&context, 0, device.get());  // which leaves it current
    cuda.MemAlloc(&positions, kParticles * sizeof(float));
  }
  ~Engine() {
    cuda.CtxSetCurrent(context);
    cuda.MemFree(positions);
    cuda.CtxDestroy(context);
  }

  CUresult Step(const Forces& forces) {
    cuda.CtxSetCurrent(context);
    for (const auto& force : forces) force();
    return cuda.MemsetD8(positions, 0, kParticles * sizeof(float));  // in whatever is current
  }

  const ObjectDriver& cuda;
  CUcontext context = nullptr;
  CUdeviceptr positions = 0;
};

}  // namespace before

// With cuguest.
namespace after {

using cuguest::SharedContext;
using Buffer = cuguest::DeviceBuffer<float>;

class Engine {
 public:
  static absl::StatusOr<Engine> Create(cuguest::Device device) {
    Engine engine;
    CUGUEST_ASSIGN_OR_RETURN(engine.context_, SharedContext::Create(device));  // current nowhere
    CUGUEST_ASSIGN_OR_RETURN(engine.positions_, Buffer::Allocate(engine.context_, kParticles));
    return engine;
  }

  absl::Status Step(const Forces& forces) {
    cuguest::ContextGuard guard(context_);
    CUGUEST_RETURN_IF_ERROR(guard);
    for (const auto& force : forces) {
      force();
      guard.Reassert();  // the engine's context again, and an incident if the plugin left another
      CUGUEST_RETURN_IF_ERROR(guard);
    }
    return cuguest::Zero(positions_.view());
  }

  const cuguest::ContextRef& context() const { return context_.context(); }

 private:
  SharedContext context_;  // destroyed with its last holder, in whichever library
  Buffer positions_;       // freed before
};

// A plugin, which knows nothing of the engine but the handle that it is given.
struct Plugin {
  SharedContext context;
  Buffer forces;
};

absl::StatusOr<Plugin> Load(CUcontext engines) {
  Plugin plugin;
  CUGUEST_ASSIGN_OR_RETURN(plugin.context, SharedContext::Attach(engines));
  CUGUEST_ASSIGN_OR_RETURN(plugin.forces, Buffer::Allocate(plugin.context, kParticles));
  return plugin;
}

}  // namespace after

// An application that works in A.
namespace host {

absl::Status Demonstrate(const ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A", "C"});
  const auto replaces = [&] { SUCCEEDS(driver.CtxSetCurrent(stage["C"])); };

  support::PrintScene("With cuCtxCreate and cuCtxSetCurrent");
  stage.Set({"A"});
  {
    before::Engine e(driver, device);
    before::Engine f(driver, device);
    stage.Name("E", e.context);
    stage.Name("F", f.context);
    CHECK(stage.Shows("two engines are made", "[A] [E] [F]<", "WRONG CONTEXT"));
    static_cast<void>(e.Step({replaces}));
    CHECK(stage.Shows("a plugin sets C", "[A] [E] [C]<", "WRONG CONTEXT"));
    support::PrintRow("an engine ends first", "(not run)", "frees memory of a destroyed context");
    stage.Set({});  // so that no entry of a destroyed context stays
  }

  support::PrintScene("With cuguest");
  stage.Set({"A"});
  const support::Undisturbed undisturbed;
  CUGUEST_ASSIGN_OR_RETURN(const auto e, after::Engine::Create(device));
  std::optional<after::Engine> f;
  CUGUEST_ASSIGN_OR_RETURN(f, after::Engine::Create(device));
  CHECK(stage.Shows("two engines are made", "[A]<", "as it was"));
  stage.Name("F", f->context().get());
  const auto works_in_f = [&] { CHECK(stage.Draw() == "[A] [F]<"); };
  CHECK_OK(f->Step({works_in_f, replaces, works_in_f}));
  CHECK(stage.Shows("a plugin sets C", "[A]<", "as it was, and an incident"));
  CHECK(cuguest::IncidentCount() == 1);

  std::optional<after::Plugin> plugin;
  CUGUEST_ASSIGN_OR_RETURN(plugin, after::Load(f->context().get()));
  const cuguest::ContextRef context = plugin->context;
  f.reset();
  CHECK(context.IsAlive());
  plugin.reset();
  CHECK(!context.IsAlive());
  support::PrintRow("an engine ends first", "", "the plugin's end destroys F");
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("What does a simulation engine gain that has a context of its own?",
                             &host::Demonstrate);
}
