// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library use the primary context without disturbing others?
//
// The primary context of a device is shared by the whole process: the CUDA runtime, PyTorch, and
// every library that asks for it. It is active while its reference count is not zero, and any of
// them may reset it. So a library
//
//   - queries first: a query creates nothing;
//   - retains one reference, and releases that one;
//   - keeps the *incarnation* that it retained: after a reset the primary context comes back at
//     the same handle with everything in it gone, and the library makes its streams and memory
//     again (a Kernel is valid in every incarnation);
//   - works in it under a guard, whatever its caller has current.
//
//   4. The host resets the device under the library
//
//      P before                      id 2
//      after the reset               was reset       P is inactive
//      a guard for the old one       refused         CUDA_ERROR_CONTEXT_IS_DESTROYED
//      guest::Adder::Add             right           it made its stream again
//      P now                         id 3            the same handle, the next incarnation

#include <cuda.h>

#include <functional>
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
#include "kernels/vector_add.h"

// The library. It links no CUDA library.
namespace guest {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::PrimaryContext;
using cuguest::Stream;

// Adds vectors, in the primary context of one device.
//
// Threads: one at a time.
class Adder {
 public:
  using Trace = std::function<void()>;  // called while the library is in its context

  [[nodiscard]] static absl::StatusOr<Adder> Open(cuguest::Device device);

  // After a device reset it works in the next incarnation of the primary context.
  [[nodiscard]] absl::StatusOr<std::vector<float>> Add(const std::vector<float>& x,
                                                       const std::vector<float>& y,
                                                       const Trace& trace = nullptr);

  // The last call. Releases the reference.
  [[nodiscard]] absl::Status Close();

  [[nodiscard]] const PrimaryContext& primary() const { return primary_; }

 private:
  explicit Adder(Kernel kernel) : kernel_(std::move(kernel)) {}

  [[nodiscard]] absl::Status Enter(cuguest::Device device);
  [[nodiscard]] absl::StatusOr<std::vector<float>> AddHere(const std::vector<float>& x,
                                                           const std::vector<float>& y);

  Kernel kernel_;  // valid in every context
  PrimaryContext primary_;
  Stream stream_;  // of primary_.context()
};

absl::StatusOr<Adder> Adder::Open(cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module module,
      Module::Load({cuguest_kernels::vector_add_fatbin, cuguest_kernels::vector_add_fatbin_size},
                   "vector_add"));
  absl::StatusOr<Kernel> kernel = module.GetKernel("vector_add");
  CUGUEST_RETURN_IF_ERROR(kernel);
  Adder adder(*std::move(kernel));
  CUGUEST_RETURN_IF_ERROR(adder.Enter(device));
  return adder;
}

// Retains P, in its present incarnation or the next, and makes a stream there. The stream of an
// incarnation that is gone is dropped without a driver call.
absl::Status Adder::Enter(cuguest::Device device) {
  PrimaryContext primary = PrimaryContext::Retain(device);
  CUGUEST_RETURN_IF_ERROR(primary);
  absl::StatusOr<Stream> stream = Stream::Create(primary.context());
  CUGUEST_RETURN_IF_ERROR(stream);
  primary_ = std::move(primary);
  stream_ = *std::move(stream);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> Adder::Add(const std::vector<float>& x,
                                              const std::vector<float>& y, const Trace& trace) {
  if (primary_.WasReset()) {
    const cuguest::Device device = primary_.device();
    static_cast<void>(primary_.Release());  // an error: other code has released our reference
    CUGUEST_RETURN_IF_ERROR(Enter(device));
  }
  const ContextGuard guard(primary_.context());
  CUGUEST_RETURN_IF_ERROR(guard);
  if (trace) trace();
  return AddHere(x, y);
}

absl::StatusOr<std::vector<float>> Adder::AddHere(const std::vector<float>& x,
                                                  const std::vector<float>& y) {
  const ContextRef& here = primary_.context();
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> device_x, DeviceBuffer<float>::CopyOf(here, x));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> sum, DeviceBuffer<float>::CopyOf(here, y));
  absl::Status status = cuguest::LaunchForElements(
      kernel_, x.size(), stream_.ref(), static_cast<unsigned>(x.size()), DevicePtr(device_x.view()),
      DevicePtr(sum.view()), DevicePtr(sum.view()));
  if (status.ok()) status = stream_.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(sum.view());
}

absl::Status Adder::Close() {
  stream_ = Stream();
  return ToStatus(primary_.Release());
}

}  // namespace guest

// A program with a context A of its own.
namespace host {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using support::Activity;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::IsActive;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

std::string Id(const PrimaryContext& primary) {
  return "id " + std::to_string(primary.context().id());
}

void CallGuestAndCheck(guest::Adder& adder, const guest::Adder::Trace& trace = nullptr) {
  const absl::StatusOr<std::vector<float>> sum = adder.Add(Ramp(1), Ramp(2), trace);
  if (CHECK_OK(sum.status())) CHECK(*sum == Ramp(3));
}

void QueryCreatesNothing(const Cast& cast, Device device) {
  PrintScene("A query creates nothing");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("the host's stack", cast.Draw(), Activity(device));
  CHECK(!IsActive(device));
  const PrimaryContext none = PrimaryContext::RetainIfActive(device);
  CHECK(cuguest::ToStatus(none).code() == absl::StatusCode::kFailedPrecondition);
  PrintRow("RetainIfActive", "refused", "it does not create P");
  CHECK(!IsActive(device));
  PrintRow("the host's stack", cast.Draw(), Activity(device));
}

absl::StatusOr<guest::Adder> OpenGuest(Cast* cast, Device device) {
  PrintScene("The library retains the primary context P; the host's stack does not change");
  const std::string before = cast->Draw();
  PrintRow("before guest::Adder::Open", before, Activity(device));
  absl::StatusOr<guest::Adder> adder = guest::Adder::Open(device);
  if (!adder.ok()) return adder;
  cast->Name("P", adder->primary().get());
  PrintRow("after", cast->Draw(), Activity(device));
  CHECK(cast->Draw() == before);
  CHECK(IsActive(device));
  return adder;
}

void UseGuest(const Cast& cast, guest::Adder& adder) {
  PrintScene("It works in P while it is called, and only then");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const std::string before = cast.Draw();
  PrintRow("before guest::Adder::Add", before);
  CallGuestAndCheck(adder, [&cast] { PrintRow("inside", cast.Draw()); });
  PrintRow("after", cast.Draw(), "1000 sums checked");
  CHECK(cast.Draw() == before);
}

// A guard that is made from a ContextRef, not from a handle, detects the reset.
void TryOld(const ContextRef& old) {
  const ContextGuard guard(old);
  CHECK(guard.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  PrintRow("a guard for the old one", guard.ok() ? "entered" : "refused",
           cuguest::ErrorName(guard.result()));
}

void ResetUnderGuest(const Cast& cast, guest::Adder& adder, Device device) {
  PrintScene("The host resets the device under the library");
  const ContextRef old = adder.primary().context();
  const std::string before = cast.Draw();
  PrintRow("P before", Id(adder.primary()));
  CHECK(support::ResetDevice(device) == CUDA_SUCCESS);
  CHECK(adder.primary().WasReset());
  PrintRow("after the reset", adder.primary().WasReset() ? "was reset" : "was not reset",
           Activity(device));
  TryOld(old);

  CallGuestAndCheck(adder);
  PrintRow("guest::Adder::Add", "right", "it made its stream again");
  CHECK(!adder.primary().WasReset());
  CHECK(adder.primary().get() == old.get());
  CHECK(adder.primary().context() != old);
  PrintRow("P now", Id(adder.primary()), "the same handle, the next incarnation");
  CHECK(cast.Draw() == before);
}

void CloseGuest(const Cast& cast, guest::Adder& adder, Device device) {
  PrintScene("The library releases its reference, which was the last one");
  CHECK_OK(adder.Close());
  CHECK(!IsActive(device));
  PrintRow("after guest::Adder::Close", cast.Draw(), Activity(device));
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("A", a.get());
  const HostStack stack(driver, {a.get()});

  // From before the library is opened until after it is closed.
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  QueryCreatesNothing(cast, device);
  CUGUEST_ASSIGN_OR_RETURN(guest::Adder adder, OpenGuest(&cast, device));
  UseGuest(cast, adder);
  ResetUnderGuest(cast, adder, device);
  CloseGuest(cast, adder, device);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a library use the primary context without disturbing others?", &host::Demonstrate);
}
