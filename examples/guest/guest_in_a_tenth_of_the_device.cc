// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library work beside a busy host on a tenth of the device?
//
// The library makes a green context: a view of the device's primary context whose kernels run on
// some of the multiprocessors (SMs). Its stream and its stack entry are its own; memory, modules
// and events are the primary context's, so the host's pointers can be used as they are. The
// library's kernel runs in its own stream beside the host's kernel in the host's stream, and an
// event orders what must be ordered.
//
//   1. Open: the library asks for a tenth of the device
//
//      the device                    132 SMs
//      asked for                     14 SMs          a tenth, rounded up
//      the green context has         16 SMs          what the driver makes of it
//
//   2. The library works beside the host
//
//      before guest::Scaler::Scale   [X] [P]<
//      inside                        [X] [P] [G]<    the library works
//      after                         [X] [P]<        1000 results of each checked
//
//   3. The host resets its device
//
//      while the library is open     refused         CUDA_ERROR_NOT_PERMITTED
//      after guest::Scaler::Close    done

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/driver.h"
#include "cuguest/green_context.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/sm_count.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"
#include "kernels/vector_add.h"

absl::StatusOr<cuguest::Kernel> LoadKernel(const unsigned char* image, std::size_t bytes,
                                           const char* name) {
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Module module,
                           cuguest::Module::Load({image, bytes}, name));
  return module.GetKernel(name);  // which keeps the module loaded
}

// The library. It links no CUDA library.
namespace guest {

using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::Event;
using cuguest::GreenContext;
using cuguest::Kernel;
using cuguest::SmCount;
using cuguest::Stream;
using cuguest::StreamRef;

// Scales signals in the host's memory, on a tenth of the host's device.
//
// Threads: one at a time, as the green context.
class Scaler {
 public:
  using Trace = std::function<void(CUcontext own)>;  // called while the library is in its context

  [[nodiscard]] static absl::StatusOr<Scaler> Open(Device device);

  // y = gain * x + y, after what is in `callers` now; what is put there afterwards waits for it.
  [[nodiscard]] absl::Status Scale(float gain, const DeviceView<float>& x,
                                   const DeviceView<float>& y, const StreamRef& callers,
                                   const Trace& trace);

  // The last call: the host can reset its device afterwards.
  [[nodiscard]] absl::Status Close();

  [[nodiscard]] SmCount sm_count() const { return green_.sm_count(); }

 private:
  Scaler(GreenContext green, Stream stream, Event order, Kernel saxpy)
      : green_(std::move(green)),
        stream_(std::move(stream)),
        order_(std::move(order)),
        saxpy_(std::move(saxpy)) {}

  GreenContext green_;
  Stream stream_;  // of green_; destroyed before it
  Event order_;
  Kernel saxpy_;
};

SmCount TenthOf(SmCount all) { return SmCount{(static_cast<unsigned>(all) + 9) / 10}; }

absl::StatusOr<Scaler> Scaler::Open(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const SmCount all, cuguest::SmCountOf(device));
  absl::StatusOr<GreenContext> green = GreenContext::Create(device, TenthOf(all));
  CUGUEST_RETURN_IF_ERROR(green);
  absl::StatusOr<Stream> stream = Stream::Create(green->context());
  CUGUEST_RETURN_IF_ERROR(stream);
  absl::StatusOr<Event> order = Event::Create(green->context());
  CUGUEST_RETURN_IF_ERROR(order);
  absl::StatusOr<Kernel> saxpy =
      LoadKernel(cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size, "saxpy");
  CUGUEST_RETURN_IF_ERROR(saxpy);
  return Scaler(*std::move(green), *std::move(stream), *std::move(order), *std::move(saxpy));
}

absl::Status Scaler::Scale(float gain, const DeviceView<float>& x, const DeviceView<float>& y,
                           const StreamRef& callers, const Trace& trace) {
  const ContextGuard guard(green_.context());  // pushes; its destructor pops
  CUGUEST_RETURN_IF_ERROR(guard);
  trace(green_.get());
  absl::Status status = order_.Record(callers);
  if (status.ok()) status = stream_.ref().WaitFor(order_);
  if (!status.ok()) return status;
  const auto count = static_cast<unsigned>(x.size());
  status = cuguest::LaunchForElements(saxpy_, count, stream_.ref(), count, gain, DevicePtr(x),
                                      DevicePtr(y));
  if (status.ok()) status = order_.Record(stream_.ref());
  if (status.ok()) status = callers.WaitFor(order_);
  return status;
}

absl::Status Scaler::Close() {
  absl::Status status = order_.Release();
  status.Update(stream_.Release());  // before its context
  status.Update(green_.Release());
  return status;
}

}  // namespace guest

// A program of the runtime's kind: it works in the primary context P, and has another one, X,
// below.
namespace host {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Driver;
using cuguest::Kernel;
using cuguest::PrimaryContext;
using cuguest::SmCount;
using cuguest::Stream;
using cuguest::testing::UndisturbedScope;
using guest::Scaler;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

using Signal = std::vector<float>;

std::string Sms(SmCount count) { return std::to_string(static_cast<unsigned>(count)) + " SMs"; }

absl::StatusOr<Scaler> Open(Device device) {
  PrintScene("Open: the library asks for a tenth of the device");
  CUGUEST_ASSIGN_OR_RETURN(const SmCount all, cuguest::SmCountOf(device));
  absl::StatusOr<Scaler> scaler = Scaler::Open(device);
  CUGUEST_RETURN_IF_ERROR(scaler);
  PrintRow("the device", Sms(all));
  PrintRow("asked for", Sms(guest::TenthOf(all)), "a tenth, rounded up");
  PrintRow("the green context has", Sms(scaler->sm_count()), "what the driver makes of it");
  CHECK(scaler->sm_count() >= guest::TenthOf(all));
  CHECK(scaler->sm_count() < all);
  return scaler;
}

// The host adds in its own stream while the library scales.
absl::Status WorkSideBySide(const Cast& cast, const ContextRef& home, Scaler& scaler) {
  PrintScene("The library works beside the host");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  CUGUEST_ASSIGN_OR_RETURN(const Kernel add,
                           LoadKernel(cuguest_kernels::vector_add_fatbin,
                                      cuguest_kernels::vector_add_fatbin_size, "vector_add"));
  CUGUEST_ASSIGN_OR_RETURN(const Stream own, Stream::Create(home));
  const absl::StatusOr<Stream> shared =
      Stream::Create(home);  // in which the library's results are used
  CUGUEST_RETURN_IF_ERROR(shared);
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> x, DeviceBuffer<float>::CopyOf(home, Ramp(1)));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> y, DeviceBuffer<float>::CopyOf(home, Ramp(2)));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> sum, DeviceBuffer<float>::CopyOf(home, Ramp(0)));

  const std::string before = cast.Draw();
  PrintRow("before guest::Scaler::Scale", before);
  const auto count = static_cast<unsigned>(x.size());
  absl::Status status =
      cuguest::LaunchForElements(add, count, own.ref(), count, DevicePtr(x.view()),
                                 DevicePtr(x.view()), DevicePtr(sum.view()));
  if (!status.ok()) return status;
  status = scaler.Scale(4.0F, x.view(), y.view(), shared->ref(), [&](CUcontext guests) {
    Cast with_guest = cast;
    with_guest.Name("G", guests);
    PrintRow("inside", with_guest.Draw(), "the library works");
    CHECK(with_guest.Draw() == before.substr(0, before.size() - 1) + " [G]<");
  });
  if (status.ok()) status = own.ref().Synchronize();
  if (status.ok()) status = shared->ref().Synchronize();
  if (!status.ok()) return status;
  CUGUEST_ASSIGN_OR_RETURN(const Signal sums, cuguest::Download(sum.view()));
  CUGUEST_ASSIGN_OR_RETURN(const Signal scaled, cuguest::Download(y.view()));
  CHECK(sums == Ramp(2));
  CHECK(scaled == Ramp(6));
  PrintRow("after", cast.Draw(), "1000 results of each checked");
  CHECK(cast.Draw() == before);
  return absl::OkStatus();
}

// The primary context has no other holder by then, but the library.
void ResetTheDevice(Device device, Scaler& scaler) {
  PrintScene("The host resets its device");
  const CUresult refused = support::ResetDevice(device);
  PrintRow("while the library is open", "refused", cuguest::ErrorName(refused));
  CHECK(refused == CUDA_ERROR_NOT_PERMITTED);
  CHECK_OK(scaler.Close());
  CHECK(support::ResetDevice(device) == CUDA_SUCCESS);
  PrintRow("after guest::Scaler::Close", "done");
  CHECK(!support::IsActive(device));
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(PrimaryContext primary, PrimaryContext::Retain(device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("P", primary.get());
  HostStack stack(driver, {x.get(), primary.get()});
  CUGUEST_ASSIGN_OR_RETURN(Scaler scaler, Open(device));
  absl::Status status = WorkSideBySide(cast, primary.context(), scaler);
  if (!status.ok()) return status;
  stack.Set({});
  CUGUEST_RETURN_IF_ERROR(primary.Release());
  ResetTheDevice(device, scaler);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library work beside a busy host on a tenth of the device?",
                             &host::Demonstrate);
}
