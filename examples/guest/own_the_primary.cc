// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library use the primary context without disturbing others?
//
// The primary context P of a device is shared by the whole process: the CUDA runtime, PyTorch, and
// every library that asks for it. It is active while its reference count is not zero, and any of
// them may reset it. So a library
//
//   - queries first: a query creates nothing;
//   - retains one reference, and releases that one;
//   - keeps the *incarnation* that it retained: after a reset P comes back at the same handle with
//     everything in it gone, and the library makes its objects again;
//   - works in it under a guard, whatever its caller has current.
//
//      RetainIfActive is refused     [A]<            P is inactive
//      inside guest::Adder::Add      [A] [P]<        P of id 2
//      the same after a reset        [A] [P]<        P of id 3

#include <functional>
#include <string>

#include "cuguest/context_guard.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

using cuguest::ContextGuard;
using cuguest::PrimaryContext;

// The library, which adds vectors. It links no CUDA library.
namespace guest {

// Threads: one at a time.
class Adder {
 public:
  using Trace = std::function<void(const PrimaryContext& primary)>;  // for the pictures

  static absl::StatusOr<Adder> Open(cuguest::Device device) {
    Adder adder;
    CUGUEST_RETURN_IF_ERROR(adder.Retain(device));
    return adder;
  }

  absl::StatusOr<Signal> Add(const Signal& x, const Signal& y, const Trace& trace) {
    if (primary_.WasReset()) CUGUEST_RETURN_IF_ERROR(Retain(primary_.device()));
    const ContextGuard guard(primary_);
    CUGUEST_RETURN_IF_ERROR(guard);
    trace(primary_);
    return Saxpy(stream_, 1.0F, x, y);
  }

  absl::Status Close() {
    stream_ = cuguest::Stream();
    return ToStatus(primary_.Release());
  }

 private:
  // In its present incarnation, or the next. A stream of one that is gone is dropped without a
  // driver call.
  absl::Status Retain(cuguest::Device device) {
    static_cast<void>(primary_.Release());
    CUGUEST_ASSIGN_OR_RETURN(primary_, PrimaryContext::Retain(device));
    CUGUEST_ASSIGN_OR_RETURN(stream_, cuguest::Stream::Create(primary_));
    return absl::OkStatus();
  }

  PrimaryContext primary_;
  cuguest::Stream stream_;
};

}  // namespace guest

// A program with a context A of its own.
namespace host {

using support::Ramp;

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A"});
  stage.Set({"A"});
  const support::Undisturbed undisturbed;  // also when the library is closed

  support::PrintScene("The library queries, retains P, works in it, and releases it");
  const PrimaryContext none = PrimaryContext::RetainIfActive(device);
  CHECK(cuguest::ToStatus(none).code() == absl::StatusCode::kFailedPrecondition);
  CHECK(stage.Shows("RetainIfActive is refused", "[A]<", "P is inactive"));

  CUGUEST_ASSIGN_OR_RETURN(guest::Adder adder, guest::Adder::Open(device));
  CHECK(stage.Shows("after guest::Adder::Open", "[A]<", "P is active"));

  cuguest::ContextRef p;
  const auto add = [&](const char* when) {
    const auto trace = [&](const PrimaryContext& primary) {
      p = primary;
      stage.Name("P", p.get());
      CHECK(stage.Shows(when, "[A] [P]<", "P of id " + std::to_string(p.id())));
    };
    CHECK(support::Has(adder.Add(Ramp(1), Ramp(2), trace), Ramp(3)));
    CHECK(stage.Shows("after it", "[A]<", "1000 sums checked"));
  };
  add("inside guest::Adder::Add");

  const cuguest::ContextRef old = p;
  SUCCEEDS(support::ResetDevice(device));
  CHECK(stage.Shows("after cuDevicePrimaryCtxReset", "[A]<", "P is inactive"));
  CHECK(ContextGuard(old).result() == CUDA_ERROR_CONTEXT_IS_DESTROYED);  // of a ref, not a handle
  add("the same after a reset");
  CHECK(p.get() == old.get() && p != old);

  CHECK_OK(adder.Close());
  CHECK(stage.Shows("after guest::Adder::Close", "[A]<", "P is inactive"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a library use the primary context without disturbing others?", &host::Demonstrate);
}
