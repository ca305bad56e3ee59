// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library survive a device reset by the host?
//
// cudaDeviceReset() destroys the present incarnation of the primary context P with everything in
// it: modules, streams, memory, whichever library made them. The next incarnation has the same
// handle, so a library that kept the handle works on with pointers that may be another library's
// by now. The library below
//
//   - is attached to one *incarnation* of P, and caches what it makes there by incarnation;
//   - works on a thread of its own whose scope is in P, and reasserts it before every job and after
//     every call into foreign code: that is where it detects the reset;
//   - then drops its cached objects without a driver call, since they are gone; attaches to P's
//     next incarnation; and begins the job again.
//
//   2. The host resets the device between two jobs
//
//      before                        [A]<            P is active, id 2
//      the host resets the device    [A]<            P is inactive
//      the library detects it                        Release() returns:
//        detach, context 0x7fef82c2d240, ...
//      Equalizer::Apply              right           1000 samples checked
//      cached objects                1 made again    and no driver call for the old ones
//      now                           [A]<            P is active, id 3
//
// No library survives a reset while one of its threads is inside a driver call in P: that is a
// race for the handles that the call was given, and only the host can avoid it. At every other
// moment a reset may come.

#include <cuda.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/guest/worker.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library. It links no CUDA library.
namespace guest {

using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::GuardMode;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::PerContext;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::Stream;
using Signal = std::vector<float>;

// What the library makes once for every incarnation of a context. (A Kernel is valid in all.) The
// destructors call no driver if the incarnation is gone.
struct Tools {
  Stream stream;
  DeviceBuffer<float> curve;
  DeviceBuffer<float> room;  // for a signal
};

absl::StatusOr<Tools> MakeTools(const ContextRef& context, const Signal& curve) {
  absl::StatusOr<Stream> stream = Stream::Create(context);
  CUGUEST_RETURN_IF_ERROR(stream);
  absl::StatusOr<DeviceBuffer<float>> on_device = DeviceBuffer<float>::CopyOf(context, curve);
  CUGUEST_RETURN_IF_ERROR(on_device);
  absl::StatusOr<DeviceBuffer<float>> room = DeviceBuffer<float>::Allocate(context, curve.size());
  CUGUEST_RETURN_IF_ERROR(room);
  return Tools{*std::move(stream), *std::move(on_device), *std::move(room)};
}

// room += gain * curve
absl::StatusOr<Signal> Equalize(const Kernel& saxpy, float gain, Tools* tools) {
  absl::Status status = cuguest::LaunchForElements(
      saxpy, tools->room.size(), tools->stream.ref(), static_cast<unsigned>(tools->room.size()),
      gain, DevicePtr(tools->curve.view()), DevicePtr(tools->room.view()));
  if (status.ok()) status = tools->stream.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(tools->room.view());
}

// Adds a curve to signals, on a thread of its own, in the primary context of a device.
//
// Threads: one caller at a time.
class Equalizer {
 public:
  using Callback = std::function<void()>;                       // the host's
  using Trace = std::function<void(const absl::Status& what)>;  // for the pictures

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Equalizer>> Open(cuguest::Device device,
                                                                       const Signal& curve,
                                                                       Trace trace);

  // signal + gain * curve. `halfway` is called on the library's thread.
  [[nodiscard]] absl::StatusOr<Signal> Apply(float gain, const Signal& signal,
                                             const Callback& halfway = nullptr);

  // The last call. An error if the incarnation of P was destroyed before it.
  [[nodiscard]] absl::Status Close();

  // Of P, which it is attached to.
  [[nodiscard]] const ContextRef& context() const { return home_.context(); }
  // How often it has made its Tools.
  [[nodiscard]] int made() const { return made_; }

 private:
  Equalizer(Kernel saxpy, cuguest::Device device, Signal curve, Trace trace)
      : saxpy_(std::move(saxpy)),
        device_(device),
        curve_(std::move(curve)),
        trace_(std::move(trace)) {}

  using Pin = PerContext<Tools>::Pin;

  // These four on the library's thread.
  [[nodiscard]] absl::Status Enter();
  [[nodiscard]] absl::Status Reassert();
  [[nodiscard]] absl::StatusOr<Pin> GetTools();
  [[nodiscard]] absl::StatusOr<Signal> ApplyHere(float gain, const Signal& signal,
                                                 const Callback& halfway);

  const Kernel saxpy_;
  const cuguest::Device device_;
  const Signal curve_;
  const Trace trace_;
  int made_ = 0;
  SharedContext home_;
  PerContext<Tools> tools_;
  ContextScope scope_;  // of the thread below
  Worker thread_;
};

absl::StatusOr<std::unique_ptr<Equalizer>> Equalizer::Open(cuguest::Device device,
                                                           const Signal& curve, Trace trace) {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module module,
      Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy"));
  absl::StatusOr<Kernel> saxpy = module.GetKernel("saxpy");
  CUGUEST_RETURN_IF_ERROR(saxpy);
  std::unique_ptr<Equalizer> equalizer(
      new Equalizer(*std::move(saxpy), device, curve, std::move(trace)));
  absl::Status status;
  equalizer->thread_.Run([&] { status = equalizer->Enter(); });
  if (!status.ok()) return status;
  return equalizer;
}

// Attaches to the present incarnation of P, or creates the next one, and enters it.
absl::Status Equalizer::Enter() {
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext primary, PrimaryContext::Retain(device_));
  SharedContext attached = SharedContext::Attach(primary.context());
  CUGUEST_RETURN_IF_ERROR(attached);
  home_ = std::move(attached);
  static_cast<void>(scope_.Enter(home_, GuardMode::kAlwaysPush));
  return cuguest::ToStatus(scope_);
}

// P is current, in the incarnation that the library is attached to: after a reset the next one.
absl::Status Equalizer::Reassert() {
  const CUresult code = scope_.Reassert();
  if (code != CUDA_ERROR_CONTEXT_IS_DESTROYED)
    return cuguest::ToStatus(code, "make P current again");
  tools_.ForgetDestroyed(context());  // calls no driver
  trace_(ToStatus(home_.Release()));  // releases the reference, and returns what happened
  return Enter();
}

absl::StatusOr<Equalizer::Pin> Equalizer::GetTools() {
  return tools_.GetOrMake(context(), [this](const ContextRef& context) {
    ++made_;
    return MakeTools(context, curve_);
  });
}

absl::StatusOr<Signal> Equalizer::Apply(float gain, const Signal& signal, const Callback& halfway) {
  absl::StatusOr<Signal> applied = absl::UnknownError("not run");
  thread_.Run([&] { applied = ApplyHere(gain, signal, halfway); });
  return applied;
}

absl::StatusOr<Signal> Equalizer::ApplyHere(float gain, const Signal& signal,
                                            const Callback& halfway) {
  CUGUEST_RETURN_IF_ERROR(Reassert());
  const ContextRef before = context();
  absl::StatusOr<Pin> tools = GetTools();
  CUGUEST_RETURN_IF_ERROR(tools);
  if (absl::Status status = cuguest::Upload((*tools)->room.view(), signal); !status.ok())
    return status;

  if (halfway) {
    tools = Pin();  // not held during foreign code: a pinned object cannot be dropped
    halfway();
    CUGUEST_RETURN_IF_ERROR(Reassert());
    if (context() != before) return ApplyHere(gain, signal, nullptr);  // begin again
    tools = GetTools();
    CUGUEST_RETURN_IF_ERROR(tools);
  }
  return Equalize(saxpy_, gain, &**tools);
}

absl::Status Equalizer::Close() {
  thread_.Run([this] {
    tools_.Forget(context());
    scope_.Leave();
  });
  return ToStatus(home_.Release());
}

}  // namespace guest

// A program with a context A of its own, which resets the device at any time.
namespace host {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::ContextScope;
using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using guest::Equalizer;
using support::Activity;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::IsActive;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

std::string Id(const ContextRef& incarnation) { return "id " + std::to_string(incarnation.id()); }

void Reset(Device device, const Cast& cast) {
  CHECK(support::ResetDevice(device) == CUDA_SUCCESS);
  CHECK(!IsActive(device));
  PrintRow("the host resets the device", cast.Draw(), Activity(device));
}

// The driver calls that would free what a reset has destroyed, counted by the simulation.
unsigned long long CallsThatFree() {
  return Sim::Calls("cuModuleUnload") + Sim::Calls("cuMemFree") + Sim::Calls("cuStreamDestroy");
}

// The host's side of one scene: a guest at work before, and at work again after.
class Scene {
 public:
  Scene(const char* title, Equalizer& guest, Device device, const Cast& cast)
      : guest_(guest), device_(device), cast_(cast), old_(guest.context()), made_(guest.made()) {
    PrintScene(title);
    before_ = cast.Draw();
    PrintRow("before", before_, Activity(device) + (", " + Id(old_)));
    CHECK(old_.IsAlive());
  }

  // A job; the host does something in the middle of it. Right, whatever happens.
  void Apply(const Equalizer::Callback& halfway = nullptr) {
    const absl::StatusOr<guest::Signal> out = guest_.Apply(2.0F, Ramp(1), halfway);
    if (!CHECK_OK(out.status())) return;
    CHECK(*out == Ramp(7));
    PrintRow("Equalizer::Apply", "right", std::to_string(out->size()) + " samples checked");
  }

  // The cached objects were made again in the next incarnation; nothing freed the old ones.
  void CheckItCameBack() {
    PrintRow("cached objects", std::to_string(guest_.made() - made_) + " made again",
             "and no driver call for the old ones");
    CHECK(guest_.made() == made_ + 1);
    CHECK(CallsThatFree() == calls_);
    PrintRow("now", cast_.Draw(), Activity(device_) + (", " + Id(guest_.context())));
    CHECK(guest_.context().get() == old_.get());
    CHECK(guest_.context() != old_);
    CHECK(cast_.Draw() == before_);
  }

  [[nodiscard]] const ContextRef& old() const { return old_; }

 private:
  const UndisturbedScope undisturbed_{&support::ReportDisturbance};
  Equalizer& guest_;
  const Device device_;
  const Cast& cast_;
  const ContextRef old_;
  const int made_;
  const unsigned long long calls_ = CallsThatFree();
  std::string before_;
};

void AtWork(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("The library at work", guest, device, cast);
  for (int i = 0; i < 3; ++i) scene.Apply();
  PrintRow("cached objects", std::to_string(guest.made()) + " made", "and used three times");
  CHECK(guest.made() == 1);
}

void BetweenTwoJobs(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("The host resets the device between two jobs", guest, device, cast);
  Reset(device, cast);
  scene.Apply();
  scene.CheckItCameBack();
}

// The worst case: when the library checks, the handle is valid again.
absl::Status HostIsBackFirst(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("The same, and the host retains P first", guest, device, cast);
  Reset(device, cast);
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext primary, PrimaryContext::Retain(device));
  PrintRow("the host retains P", cast.Draw(), Activity(device) + (", " + Id(primary.context())));
  CHECK(primary.get() == scene.old().get());
  {
    const ContextGuard by_handle(primary.get());
    PrintRow("a guard for the handle", by_handle.ok() ? "enters" : "refuses",
             "it cannot detect the reset");
    CHECK(by_handle.ok());
  }
  {
    const ContextGuard by_incarnation(scene.old());
    PrintRow("a guard for the old one", by_incarnation.ok() ? "enters" : "refuses",
             cuguest::ErrorName(by_incarnation.result()));
    CHECK(by_incarnation.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  scene.Apply();
  CHECK(guest.context() == primary.context());
  scene.CheckItCameBack();
  return absl::OkStatus();
}

void InTheMiddleOfAJob(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("In the middle of a job, from a callback on the library's own thread", guest, device,
              cast);
  scene.Apply([&] { Reset(device, cast); });
  scene.CheckItCameBack();
}

// A reset changes no reference count: the host still has its reference afterwards.
absl::Status BeforeTheEnd(Equalizer& guest, Device device, const Cast& cast) {
  PrintScene("The host resets the device, and the library is closed");
  CUGUEST_ASSIGN_OR_RETURN(PrimaryContext primary, PrimaryContext::Retain(device));
  const unsigned long long calls = CallsThatFree();
  Reset(device, cast);
  const absl::Status closed = guest.Close();
  PrintRow("Equalizer::Close", cast.Draw(), "an error:");
  support::PrintParagraph(std::string(closed.message()));
  CHECK(cuguest::CodeOf(closed) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(CallsThatFree() == calls);
  const absl::Status released = ToStatus(primary.Release());
  PrintRow("the host releases its own", released.ok() ? "success" : "FAILURE", Activity(device));
  CHECK_OK(released);
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("A", a.get());
  const HostStack stack(driver, {a.get()});

  // From before the library is opened until after it is closed.
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  CUGUEST_ASSIGN_OR_RETURN(const std::unique_ptr<Equalizer> guest,
                           Equalizer::Open(device, Ramp(3), [](const absl::Status& what) {
                             PrintRow("the library detects it", "", "Release() returns:");
                             support::PrintParagraph(std::string(what.message()));
                             CHECK(cuguest::CodeOf(what) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
                           }));
  AtWork(*guest, device, cast);
  BetweenTwoJobs(*guest, device, cast);
  CUGUEST_RETURN_IF_ERROR(HostIsBackFirst(*guest, device, cast));
  InTheMiddleOfAJob(*guest, device, cast);
  CUGUEST_RETURN_IF_ERROR(BeforeTheEnd(*guest, device, cast));
  CHECK(!IsActive(device));
  CHECK(cuguest::IncidentCount() == 0);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library survive a device reset by the host?",
                             &host::Demonstrate);
}
