// SPDX-License-Identifier: Apache-2.0
//
// How does a library survive a device reset under it?
//
// cudaDeviceReset() asks nobody. It ends the life of the primary context P and takes all
// that lived in it: modules, streams, memory, whoever made them. And then P comes back at
// the same handle, as soon as anybody wants it, so that whoever kept the handle works on
// happily, with pointers that are somebody else's by now. The library below
//
//   - is attached to one *life* of P, and caches by that life what it keeps there;
//   - works on a thread of its own that resides in P, and settles there before every job
//     and after every call into foreign code: that is where it notices;
//   - then drops what it cached without a driver call, since it is gone; comes back in
//     P's next life; and begins the job again.
//
//   2. The host resets the device between two jobs
//
//      before                        [A]<            P is active, life 2
//      the host resets the device    [A]<            P is inactive
//      the library noticed                           Detach() says:
//        detach, context 0x7fef82c2d240, whose life ended while it was attached: ...
//      Equalizer::Apply              right           1000 samples checked
//      what was cached               0 freed         1 given up, 1 made anew
//      now                           [A]<            P is active, life 3
//
// What no library survives is a reset while one of its threads is inside a driver call in
// P: that is a race for the handles that the call was given, and only the host can avoid
// it. Everywhere else, as here, a reset may come at any moment.

#include <cuda.h>

#include <functional>
#include <memory>
#include <optional>
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
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/incident.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/stream.h"
#include "cuguest/testing/sim.h"
#include "cuguest/testing/stack_probe.h"
#include "cuguest/thread_residency.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "examples/support/worker.h"
#include "kernels/saxpy.h"

// The library. It links no CUDA library.
namespace guest {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::PerContext;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::Stream;
using cuguest::ThreadResidency;
using Signal = std::vector<float>;

// What became of everything that the library ever cached.
struct Tally {
  int made = 0;
  int freed = 0;
  int given_up = 0;
};

// What the library makes once for every life of a context that it works in: a stream, the
// equalizer's curve, and room for a signal. (A kernel is good in every life.)
class Tools {
 public:
  [[nodiscard]] static absl::StatusOr<Tools> Make(const ContextRef& life, const Signal& curve,
                                                  Tally* tally) {
    absl::StatusOr<Stream> stream = Stream::Create(life);
    if (!stream.ok()) return stream.status();
    absl::StatusOr<DeviceBuffer<float>> on_device = DeviceBuffer<float>::CopyOf(life, curve);
    if (!on_device.ok()) return on_device.status();
    absl::StatusOr<DeviceBuffer<float>> room = DeviceBuffer<float>::CopyOf(life, curve);
    if (!room.ok()) return room.status();
    ++tally->made;
    return Tools(tally, *std::move(stream), *std::move(on_device), *std::move(room));
  }
  Tools(Tools&& other) noexcept
      : tally_(std::exchange(other.tally_, nullptr)),
        stream_(std::move(other.stream_)),
        curve_(std::move(other.curve_)),
        room_(std::move(other.room_)) {}
  Tools& operator=(Tools&&) = delete;
  // What it has in the driver is freed, or let go if its life is over. PerContext calls
  // Leak() first then.
  ~Tools() {
    if (tally_ != nullptr) ++tally_->freed;
  }

  void Leak() { ++std::exchange(tally_, nullptr)->given_up; }

  [[nodiscard]] absl::Status Upload(const Signal& signal) {
    return cuguest::Copy(room_.view(), signal);
  }
  // room += gain * curve
  [[nodiscard]] absl::StatusOr<Signal> Equalize(const Kernel& saxpy, float gain) {
    absl::Status status = cuguest::LaunchForElements(
        saxpy, room_.size(), stream_.ref(), static_cast<unsigned>(room_.size()), gain,
        DevicePtr(curve_.view()), DevicePtr(room_.view()));
    if (status.ok()) status = stream_.ref().Synchronize();
    if (!status.ok()) return status;
    return cuguest::Download(room_.view());
  }

 private:
  Tools(Tally* tally, Stream stream, DeviceBuffer<float> curve, DeviceBuffer<float> room)
      : tally_(tally),
        stream_(std::move(stream)),
        curve_(std::move(curve)),
        room_(std::move(room)) {}

  Tally* tally_;  // nullptr: moved from, or given up
  Stream stream_;
  DeviceBuffer<float> curve_;
  DeviceBuffer<float> room_;
};

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

  // The last call. Says so if P's life ended before it.
  [[nodiscard]] absl::Status Close();

  // The life of P that it is attached to.
  [[nodiscard]] const ContextRef& life() const { return home_.incarnation(); }
  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  Equalizer(Kernel saxpy, cuguest::Device device, Signal curve, Trace trace)
      : saxpy_(std::move(saxpy)),
        device_(device),
        curve_(std::move(curve)),
        trace_(std::move(trace)) {}

  using Pin = PerContext<Tools>::Pin;

  // These four on the library's thread.
  [[nodiscard]] absl::Status MoveIn();
  [[nodiscard]] absl::Status Settle();
  [[nodiscard]] absl::StatusOr<Pin> GetTools();
  [[nodiscard]] absl::StatusOr<Signal> ApplyHere(float gain, const Signal& signal,
                                                 const Callback& halfway);

  const Kernel saxpy_;
  const cuguest::Device device_;
  const Signal curve_;
  const Trace trace_;
  Tally tally_;
  SharedContext home_;
  PerContext<Tools> tools_;
  std::optional<ThreadResidency> residency_;  // of the thread below
  support::Worker thread_;
};

absl::StatusOr<std::unique_ptr<Equalizer>> Equalizer::Open(cuguest::Device device,
                                                           const Signal& curve, Trace trace) {
  const absl::StatusOr<Module> module =
      Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy");
  if (!module.ok()) return module.status();
  absl::StatusOr<Kernel> saxpy = module->GetKernel("saxpy");
  if (!saxpy.ok()) return saxpy.status();
  std::unique_ptr<Equalizer> equalizer(
      new Equalizer(*std::move(saxpy), device, curve, std::move(trace)));
  absl::Status status;
  equalizer->thread_.Run([&] { status = equalizer->MoveIn(); });
  if (!status.ok()) return status;
  return equalizer;
}

// Attaches to the life that P is in, or begins its next one, and resides there.
absl::Status Equalizer::MoveIn() {
  const absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device_);
  if (!primary.ok()) return primary.status();
  absl::StatusOr<SharedContext> attached = SharedContext::Attach(primary->incarnation());
  if (!attached.ok()) return attached.status();
  home_ = *std::move(attached);
  if (!residency_.has_value()) {
    residency_.emplace(home_.incarnation());
  } else {
    static_cast<void>(residency_->MoveTo(home_.incarnation()));
  }
  return cuguest::ToStatus(*residency_);
}

// At home, in a life that goes on: the same one, or after a reset the next one.
absl::Status Equalizer::Settle() {
  const CUresult code = residency_->Settle();
  if (code != CUDA_ERROR_CONTEXT_IS_DESTROYED) return cuguest::ToStatus(code, "settle in P");
  tools_.ForgetDestroyed(life());  // no driver call in a life that is over
  trace_(home_.Detach());          // gives back its unit, and says what happened
  return MoveIn();
}

absl::StatusOr<Equalizer::Pin> Equalizer::GetTools() {
  return tools_.GetOrMake(
      life(), [this](const ContextRef& life) { return Tools::Make(life, curve_, &tally_); });
}

absl::StatusOr<Signal> Equalizer::Apply(float gain, const Signal& signal, const Callback& halfway) {
  absl::StatusOr<Signal> applied = absl::UnknownError("not run");
  thread_.Run([&] { applied = ApplyHere(gain, signal, halfway); });
  return applied;
}

absl::StatusOr<Signal> Equalizer::ApplyHere(float gain, const Signal& signal,
                                            const Callback& halfway) {
  if (absl::Status status = Settle(); !status.ok()) return status;
  const ContextRef began_in = life();
  absl::StatusOr<Pin> tools = GetTools();
  if (!tools.ok()) return tools.status();
  if (absl::Status status = (*tools)->Upload(signal); !status.ok()) return status;

  if (halfway) {
    tools = Pin();  // not held through foreign code: what is pinned cannot be given up
    halfway();
    if (absl::Status status = Settle(); !status.ok()) return status;
    if (life() != began_in) return ApplyHere(gain, signal, nullptr);  // begin again
    tools = GetTools();
    if (!tools.ok()) return tools.status();
  }
  return (*tools)->Equalize(saxpy_, gain);
}

absl::Status Equalizer::Close() {
  thread_.Run([this] {
    tools_.Forget(life());  // frees, or gives up if the life is over
    residency_.reset();
  });
  return home_.Detach();
}

}  // namespace guest

// A program with a context A of its own, which resets the device whenever it likes.
namespace host {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::testing::Sim;
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

std::string Life(const ContextRef& life) { return "life " + std::to_string(life.id()); }

void Reset(Device device, const Cast& cast) {
  CHECK(support::ResetDevice(device) == CUDA_SUCCESS);
  CHECK(!IsActive(device));
  PrintRow("the host resets the device", cast.Draw(), Activity(device));
}

// The driver calls that would touch what died with a life. (The simulation counts.)
unsigned long long CallsThatFree() {
  return Sim::Calls("cuModuleUnload") + Sim::Calls("cuMemFree") + Sim::Calls("cuStreamDestroy");
}

// The host's side of one scene: a guest at work before, and at work again after.
class Scene {
 public:
  Scene(const char* title, Equalizer& guest, Device device, const Cast& cast)
      : guest_(guest), device_(device), cast_(cast), old_life_(guest.life()), old_(guest.tally()) {
    PrintScene(title);
    before_ = cast.Draw();
    PrintRow("before", before_, Activity(device) + (", " + Life(old_life_)));
    CHECK(old_life_.IsAlive());
  }

  // A job; the host does something in the middle of it. Right, whatever happens.
  void Apply(const Equalizer::Callback& halfway = nullptr) {
    const absl::StatusOr<guest::Signal> out = guest_.Apply(2.0F, Ramp(1), halfway);
    if (!CHECK_OK(out.status())) return;
    CHECK(*out == Ramp(7));
    PrintRow("Equalizer::Apply", "right", std::to_string(out->size()) + " samples checked");
  }

  // What was cached in the old life was given up, and made again in the next one.
  void CheckItCameBack() {
    const guest::Tally& now = guest_.tally();
    PrintRow("what was cached", std::to_string(now.freed - old_.freed) + " freed",
             std::to_string(now.given_up - old_.given_up) + " given up, " +
                 std::to_string(now.made - old_.made) + " made anew");
    CHECK(now.freed == old_.freed);
    CHECK(now.given_up == old_.given_up + 1);
    CHECK(now.made == old_.made + 1);
    CHECK(CallsThatFree() == calls_);
    PrintRow("now", cast_.Draw(), Activity(device_) + (", " + Life(guest_.life())));
    CHECK(guest_.life().get() == old_life_.get());
    CHECK(guest_.life() != old_life_);
    CHECK(cast_.Draw() == before_);
  }

  [[nodiscard]] const ContextRef& old_life() const { return old_life_; }

 private:
  const UndisturbedScope undisturbed_{&support::ReportDisturbance};
  Equalizer& guest_;
  const Device device_;
  const Cast& cast_;
  const ContextRef old_life_;
  const guest::Tally old_;
  const unsigned long long calls_ = CallsThatFree();
  std::string before_;
};

void AtWork(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("The library at work", guest, device, cast);
  for (int i = 0; i < 3; ++i) scene.Apply();
  PrintRow("what was cached", std::to_string(guest.tally().made) + " made", "and used three times");
  CHECK(guest.tally().made == 1);
}

void BetweenTwoJobs(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("The host resets the device between two jobs", guest, device, cast);
  Reset(device, cast);
  scene.Apply();
  scene.CheckItCameBack();
}

// The worst case: by the time the library looks, the handle is as good as ever.
absl::Status HostIsBackFirst(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("The same, and the host itself is back in P first", guest, device, cast);
  Reset(device, cast);
  const absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);
  if (!primary.ok()) return primary.status();
  PrintRow("the host retains P", cast.Draw(),
           Activity(device) + (", " + Life(primary->incarnation())));
  CHECK(primary->get() == scene.old_life().get());
  {
    const ContextGuard by_handle(primary->get());
    PrintRow("a guard for the handle", by_handle.ok() ? "enters" : "refuses", "it cannot know");
    CHECK(by_handle.ok());
  }
  {
    const ContextGuard by_life(scene.old_life());
    PrintRow("a guard for the old life", by_life.ok() ? "enters" : "refuses",
             cuguest::ErrorName(by_life.result()));
    CHECK(by_life.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  scene.Apply();
  CHECK(guest.life() == primary->incarnation());
  scene.CheckItCameBack();
  return absl::OkStatus();
}

void InTheMiddleOfAJob(Equalizer& guest, Device device, const Cast& cast) {
  Scene scene("In the middle of a job, from a callback on the library's own thread", guest, device,
              cast);
  scene.Apply([&] { Reset(device, cast); });
  scene.CheckItCameBack();
}

// A reset takes no units away: the host's own is still the host's when all is over.
absl::Status BeforeTheEnd(Equalizer& guest, Device device, const Cast& cast) {
  PrintScene("The host resets the device, and the library is closed");
  absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);
  if (!primary.ok()) return primary.status();
  const guest::Tally before = guest.tally();
  Reset(device, cast);
  const absl::Status closed = guest.Close();
  PrintRow("Equalizer::Close", cast.Draw(), "it says:");
  support::PrintParagraph(std::string(closed.message()));
  CHECK(cuguest::CodeOf(closed) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(guest.tally().given_up == before.given_up + 1);
  CHECK(guest.tally().freed == 0);
  const absl::Status released = primary->Release();
  PrintRow("the host releases its unit", released.ok() ? "it was there" : "GONE", Activity(device));
  CHECK_OK(released);
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  const absl::StatusOr<HostContext> a = HostContext::Create(driver, device);
  if (!a.ok()) return a.status();
  Cast cast;
  cast.Name("A", a->get());
  const HostStack stack(driver, {a->get()});

  // From before the library is opened until after it is closed.
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::StatusOr<std::unique_ptr<Equalizer>> guest =
      Equalizer::Open(device, Ramp(3), [](const absl::Status& what) {
        PrintRow("the library noticed", "", "Detach() says:");
        support::PrintParagraph(std::string(what.message()));
        CHECK(cuguest::CodeOf(what) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
      });
  if (!guest.ok()) return guest.status();
  AtWork(**guest, device, cast);
  BetweenTwoJobs(**guest, device, cast);
  if (absl::Status status = HostIsBackFirst(**guest, device, cast); !status.ok()) return status;
  InTheMiddleOfAJob(**guest, device, cast);
  if (absl::Status status = BeforeTheEnd(**guest, device, cast); !status.ok()) return status;
  CHECK(!IsActive(device));
  CHECK(cuguest::IncidentCount() == 0);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library survive a device reset under it?",
                             &host::Demonstrate);
}
