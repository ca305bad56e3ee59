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
//      the green context has         16 SMs          asked for 14 of 132
//      inside guest::Scaler::Scale   [X] [P] [G]<    the library works
//      after                         [X] [P]<        1000 results of each checked
//      reset while it is open        refused         CUDA_ERROR_NOT_PERMITTED

#include <functional>
#include <string>

#include "cuguest/context_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/sm_count.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

using cuguest::SmCount;
using cuguest::Stream;
using cuguest::StreamRef;

// The library, which scales signals in the host's memory. It links no CUDA library.
namespace guest {

SmCount TenthOf(SmCount all) { return SmCount{(static_cast<unsigned>(all) + 9) / 10}; }

// Threads: one at a time, as the green context.
class Scaler {
 public:
  using Trace = std::function<void(CUcontext own)>;  // called while the library is in its context

  static absl::StatusOr<Scaler> Open(cuguest::Device device) {
    Scaler scaler;
    CUGUEST_ASSIGN_OR_RETURN(const SmCount all, cuguest::SmCountOf(device));
    CUGUEST_ASSIGN_OR_RETURN(scaler.green_, cuguest::GreenContext::Create(device, TenthOf(all)));
    CUGUEST_ASSIGN_OR_RETURN(scaler.stream_, Stream::Create(scaler.green_));
    CUGUEST_ASSIGN_OR_RETURN(scaler.order_, cuguest::Event::Create(scaler.green_));
    return scaler;
  }

  // y = gain * x + y, after what is in `callers` now; what is put there afterwards waits for it.
  absl::Status Scale(float gain, const cuguest::DeviceView<const float>& x,
                     const cuguest::DeviceView<float>& y, const StreamRef& callers,
                     const Trace& trace) {
    const cuguest::ContextGuard guard(green_);
    CUGUEST_RETURN_IF_ERROR(guard);
    trace(green_.get());
    CUGUEST_RETURN_IF_ERROR(order_.Record(callers));
    CUGUEST_RETURN_IF_ERROR(stream_.ref().WaitFor(order_));
    CUGUEST_RETURN_IF_ERROR(LaunchSaxpy(stream_, gain, x, y));
    CUGUEST_RETURN_IF_ERROR(order_.Record(stream_));
    return callers.WaitFor(order_);
  }

  // The last call: the host can reset its device afterwards.
  absl::Status Close() {
    absl::Status status = order_.Release();
    status.Update(stream_.Release());  // before its context
    status.Update(green_.Release());
    return status;
  }

  SmCount sm_count() const { return green_.sm_count(); }

 private:
  cuguest::GreenContext green_;
  Stream stream_;  // of green_; destroyed before it
  cuguest::Event order_;
};

}  // namespace guest

// A program that works in the primary context P, as one of the runtime, and has a context X below.
namespace host {

using support::Ramp;
using Buffer = cuguest::DeviceBuffer<float>;

std::string ToText(SmCount count) { return std::to_string(static_cast<unsigned>(count)); }

// The host adds in its own stream while the library scales.
absl::Status WorkSideBySide(support::Stage* stage, guest::Scaler* scaler) {
  const support::Undisturbed undisturbed;
  const auto home = cuguest::ContextRef::Current();
  CUGUEST_ASSIGN_OR_RETURN(const Stream hosts, Stream::Create(home));
  CUGUEST_ASSIGN_OR_RETURN(const Stream shared, Stream::Create(home));
  CUGUEST_ASSIGN_OR_RETURN(const Buffer x, Buffer::CopyOf(home, Ramp(1)));
  CUGUEST_ASSIGN_OR_RETURN(Buffer scaled, Buffer::CopyOf(home, Ramp(2)));
  CUGUEST_ASSIGN_OR_RETURN(Buffer sum, Buffer::CopyOf(home, Ramp(1)));

  CUGUEST_RETURN_IF_ERROR(guest::LaunchSaxpy(hosts, 1.0F, x.view(), sum.view()));
  const auto trace = [stage](CUcontext own) {
    stage->Name("G", own);
    CHECK(stage->Shows("inside guest::Scaler::Scale", "[X] [P] [G]<", "the library works"));
  };
  CUGUEST_RETURN_IF_ERROR(scaler->Scale(4.0F, x.view(), scaled.view(), shared, trace));
  CHECK(support::Has(cuguest::Download(sum.view(), hosts), Ramp(2)));
  CHECK(support::Has(cuguest::Download(scaled.view(), shared), Ramp(6)));
  CHECK(stage->Shows("after", "[X] [P]<", "1000 results of each checked"));
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::PrintScene("The library asks for a tenth of the device");
  CUGUEST_ASSIGN_OR_RETURN(auto primary, cuguest::PrimaryContext::Retain(device));
  support::Stage stage(driver, device, {"X"});
  stage.Name("P", primary.get());
  stage.Set({"X", "P"});
  CUGUEST_ASSIGN_OR_RETURN(guest::Scaler scaler, guest::Scaler::Open(device));
  CUGUEST_ASSIGN_OR_RETURN(const SmCount all, cuguest::SmCountOf(device));
  const SmCount tenth = guest::TenthOf(all);
  support::PrintRow("the green context has", ToText(scaler.sm_count()),
                    "asked for " + ToText(tenth) + " of " + ToText(all));
  CHECK(scaler.sm_count() >= tenth && scaler.sm_count() < all);
  CUGUEST_RETURN_IF_ERROR(WorkSideBySide(&stage, &scaler));

  // The primary context has no other holder then, but the library.
  stage.Set({});
  CUGUEST_RETURN_IF_ERROR(primary.Release());
  const CUresult refused = support::ResetDevice(device);
  support::PrintRow("reset while it is open", "refused", cuguest::ErrorName(refused));
  CHECK(refused == CUDA_ERROR_NOT_PERMITTED);
  CHECK_OK(scaler.Close());
  SUCCEEDS(support::ResetDevice(device));
  CHECK(!support::IsActive(device));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library work beside a busy host on a tenth of the device?",
                             &host::Demonstrate);
}
