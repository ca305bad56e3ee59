// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library survive a device reset by the host?
//
// cudaDeviceReset() destroys the present incarnation of the primary context P with everything in
// it. The next incarnation has the same handle, so a library that kept the handle works on with
// pointers that may be another library's by now. This one is attached to an *incarnation* of P.
// When it finds, before a job or after a call into foreign code, that it is gone, it drops what it
// made there, without a driver call, attaches to the next one, and begins the job again. (A reset
// while one of its threads is inside a driver call in P is a race, which the host must avoid.)

#include <functional>
#include <string>
#include <utility>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/incident.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::PrimaryContext;

// The library. It links no CUDA library.
namespace guest {

using Buffer = cuguest::DeviceBuffer<float>;

// Adds a curve to signals, in the primary context of a device. Threads: one at a time.
class Equalizer {
 public:
  Equalizer(cuguest::Device device, Signal curve) : device_(device), curve_(std::move(curve)) {}

  // signal + gain * curve. `halfway` is the host's.
  absl::StatusOr<Signal> Apply(float gain, const Signal& signal,
                               const std::function<void()>& halfway = nullptr) {
    CUGUEST_RETURN_IF_ERROR(Attach());
    ContextGuard guard(context());
    CUGUEST_RETURN_IF_ERROR(guard);
    CUGUEST_ASSIGN_OR_RETURN(Buffer sum, Buffer::CopyOf(context(), signal));
    if (halfway) halfway();
    if (guard.Reassert() == CUDA_ERROR_CONTEXT_IS_DESTROYED) return Apply(gain, signal);
    CUGUEST_RETURN_IF_ERROR(guard);

    const auto make = [this](const ContextRef& p) {
      ++made_;
      return Buffer::CopyOf(p, curve_);
    };
    CUGUEST_ASSIGN_OR_RETURN(const auto curve, curves_.GetOrMake(context(), make));
    CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(context()));
    CUGUEST_RETURN_IF_ERROR(LaunchSaxpy(stream, gain, curve->view(), sum.view()));
    return cuguest::Download(sum.view(), stream);
  }

  // An error if the incarnation of P was destroyed before it.
  absl::Status Close() {
    curves_.Forget(context());
    return ToStatus(home_.Release());
  }

  const ContextRef& context() const { return home_.context(); }
  int made() const { return made_; }  // how often it has put the curve on the device

 private:
  absl::Status Attach() {
    if (context().IsAlive()) return absl::OkStatus();
    curves_.ForgetDestroyed(context());  // calls no driver
    static_cast<void>(home_.Release());  // an error, which says that it was destroyed
    CUGUEST_ASSIGN_OR_RETURN(const auto primary, PrimaryContext::Retain(device_));
    CUGUEST_ASSIGN_OR_RETURN(home_, cuguest::SharedContext::Attach(primary));
    return absl::OkStatus();
  }

  const cuguest::Device device_;
  const Signal curve_;
  int made_ = 0;
  cuguest::SharedContext home_;
  cuguest::PerContext<Buffer> curves_;  // one for each incarnation
};

}  // namespace guest

// A program with a context A of its own, which resets the device at any time.
namespace host {

using cudasim::Sim;
using support::Ramp;

void Reset(cuguest::Device device) { SUCCEEDS(support::ResetDevice(device)); }

// A job. After a reset the library must work in the next incarnation, with the curve there.
void Work(const support::Stage& stage, const char* when, bool was_reset, guest::Equalizer* library,
          const std::function<void()>& halfway = nullptr) {
  const ContextRef old = library->context();
  const int made = library->made();
  Sim::ResetCalls();
  CHECK(support::Has(library->Apply(2.0F, Ramp(1), halfway), Ramp(7)));
  CHECK(library->made() == made + (was_reset ? 1 : 0));
  const auto freed = Sim::Calls("cuMemFree") + Sim::Calls("cuStreamDestroy");
  CHECK(freed == 2 || !Sim::IsActive());  // its sum and its stream, and nothing old
  CHECK(library->context().get() == old.get() && (library->context() != old) == was_reset);
  CHECK(stage.Shows(when, "[A]<", "right, in P of id " + std::to_string(library->context().id())));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A"});
  stage.Set({"A"});
  const support::Undisturbed undisturbed;
  guest::Equalizer library(device, Ramp(3));
  CHECK_OK(library.Apply(2.0F, Ramp(1)).status());
  support::PrintScene("The host resets the device");
  Work(stage, "undisturbed", false, &library);
  Reset(device);
  Work(stage, "between two jobs", true, &library);
  Work(stage, "in the middle of a job", true, &library, [&] { Reset(device); });

  // The worst case: when the library checks, the handle is valid again.
  const ContextRef old = library.context();
  Reset(device);
  CUGUEST_ASSIGN_OR_RETURN(PrimaryContext hosts, PrimaryContext::Retain(device));
  CHECK(hosts.get() == old.get());
  CHECK(ContextGuard(hosts.get()).ok());  // by the handle it cannot detect the reset
  CHECK(ContextGuard(old).result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  Work(stage, "the host retains P first", true, &library);
  CHECK(library.context() == hosts.context());

  Reset(device);
  CHECK(support::IsRefused("before the library is closed", library.Close(),
                           absl::StatusCode::kFailedPrecondition,
                           "CUDA_ERROR_CONTEXT_IS_DESTROYED"));
  CHECK_OK(ToStatus(hosts.Release()));  // a reset changes no reference count
  CHECK(!support::IsActive(device));
  CHECK(cuguest::IncidentCount() == 0);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library survive a device reset by the host?",
                             &host::Demonstrate);
}
