// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library work in the context that its caller has current?
//
// A library whose arguments are device pointers and streams works where they belong: in its
// caller's context. It creates no context. It asks what is current and works there under a guard.
// The guard is *elided*: the context is current already, so it makes two queries and no push. It
// is there for the code that the library calls: hostile_callee shows what that may do. If
// nothing is current, the library returns an error and the driver creates nothing.
//
//   1. A host with contexts of its own, A on top of X
//
//      the host's stack              [X] [A]<
//      in the host's callback        [X] [A]<        elided: nothing was pushed
//      when guest::Saxpy returned    [X] [A]<
//      pushes and pops               0 and 0         counted by the simulation
//   ...
//   3. A thread with nothing current
//
//      the host's stack              (empty)
//      when guest::Saxpy returned    (empty)         an error:
//        ...
//      the primary context           inactive        it was not created

#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/host_span.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library. It links no CUDA library, and knows nothing of its caller.
namespace guest {

using Progress = std::function<void(bool elided)>;  // called before the work
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::HostSpan;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::StreamRef;

absl::StatusOr<Kernel> LoadSaxpy() {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module module,
      Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy"));
  return module.GetKernel("saxpy");  // which keeps the module loaded
}

// y = a * x + y on `stream`, in its context.
absl::Status SaxpyOn(const StreamRef& stream, float a, const std::vector<float>& x,
                     std::vector<float>* y) {
  CUGUEST_ASSIGN_OR_RETURN(const Kernel saxpy, LoadSaxpy());
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> device_x,
                           DeviceBuffer<float>::CopyOf(stream.context(), x));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> device_y,
                           DeviceBuffer<float>::CopyOf(stream.context(), *y));

  absl::Status status =
      cuguest::LaunchForElements(saxpy, x.size(), stream, static_cast<unsigned>(x.size()), a,
                                 DevicePtr(device_x.view()), DevicePtr(device_y.view()));
  if (status.ok()) status = stream.Synchronize();
  if (status.ok()) status = cuguest::Download(device_y.view(), *y);
  return status;
}

// What the library's users call.
absl::Status Saxpy(CUstream stream, float a, const std::vector<float>& x, std::vector<float>* y,
                   const Progress& progress) {
  const ContextRef caller = ContextRef::Current();
  CUGUEST_RETURN_IF_ERROR(caller);  // nothing is current, or it was destroyed
  const ContextGuard guard(caller);
  CUGUEST_RETURN_IF_ERROR(guard);
  if (progress) progress(guard.elided());
  return SaxpyOn(StreamRef::Borrow(stream, caller), a, x, y);
}

}  // namespace guest

// A program that calls the library, from three kinds of threads.
namespace host {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

void CallGuestAndCheck(const guest::Progress& progress) {
  std::vector<float> y = Ramp(3);
  CHECK_OK(guest::Saxpy(/*stream=*/nullptr, 2.0F, Ramp(1), &y, progress));
  CHECK(y == Ramp(5));
}

// Draws the stack before, in a callback during, and after a call of the guest.
void ShowCall(const Cast& cast) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const std::string before = cast.Draw();
  PrintRow("the host's stack", before);
  CallGuestAndCheck([&](bool elided) {
    PrintRow("in the host's callback", cast.Draw(), elided ? "elided: nothing was pushed" : "");
    CHECK(elided);
    CHECK(cast.Draw() == before);
  });
  PrintRow("when guest::Saxpy returned", cast.Draw());
  CHECK(cast.Draw() == before);
}

// Without drawing, which pushes and pops.
void CountPushes() {
  if (!Sim::IsActive()) return;
  Sim::ResetCalls();
  CallGuestAndCheck(nullptr);
  const auto pushes = Sim::Calls("cuCtxPushCurrent");
  const auto pops = Sim::Calls("cuCtxPopCurrent");
  PrintRow("pushes and pops", std::to_string(pushes) + " and " + std::to_string(pops),
           "counted by the simulation");
  CHECK(pushes == 0 && pops == 0);
}

absl::Status OwnContexts(const Driver& driver, Device device) {
  PrintScene("A host with contexts of its own, A on top of X");
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  const HostStack stack(driver, {x.get(), a.get()});
  ShowCall(cast);
  CountPushes();
  return absl::OkStatus();
}

// As a program of the CUDA runtime, which works in the primary context P.
absl::Status PrimaryCurrent(const Driver& driver, Device device) {
  PrintScene("A host that works in the primary context P, as a program of the runtime does");
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext primary, PrimaryContext::Retain(device));
  Cast cast;
  cast.Name("P", primary.get());
  const HostStack stack(driver, {primary.get()});
  ShowCall(cast);
  return absl::OkStatus();
}

void NothingCurrent(Device device) {
  PrintScene("A thread with nothing current");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const Cast cast;
  PrintRow("the host's stack", cast.Draw());

  std::vector<float> y(1);
  const absl::Status refused = guest::Saxpy(nullptr, 1.0F, {1.0F}, &y, nullptr);
  PrintRow("when guest::Saxpy returned", cast.Draw(), "an error:");
  support::PrintParagraph(std::string(refused.message()));
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(cuguest::CodeOf(refused) == CUDA_ERROR_INVALID_CONTEXT);

  const PrimaryContext::State state = PrimaryContext::Query(device);
  CHECK(state.ok() && !state.active);
  PrintRow("the primary context", "inactive", "it was not created");
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_RETURN_IF_ERROR(OwnContexts(driver, device));
  CUGUEST_RETURN_IF_ERROR(PrimaryCurrent(driver, device));
  NothingCurrent(device);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library work in the context that its caller has current?",
                             &host::Demonstrate);
}
