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
//      in the host's callback        [X] [A]<        elided: nothing was pushed
//      when guest::Double returned   [X] [A]<        pushes and pops: 0

#include <functional>
#include <string>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/primary_context.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

// The library, which doubles numbers. It links no CUDA library, and knows nothing of its caller.
namespace guest {

using Progress = std::function<void(bool elided)>;  // called before the work

absl::StatusOr<Signal> Double(CUstream stream, const Signal& numbers, const Progress& progress) {
  CUGUEST_ASSIGN_OR_RETURN(const auto caller, cuguest::ContextRef::Current());
  const cuguest::ContextGuard guard(caller);
  CUGUEST_RETURN_IF_ERROR(guard);
  if (progress) progress(guard.elided());
  return Saxpy(cuguest::StreamRef::Borrow(stream, caller), 1.0F, numbers, numbers);
}

}  // namespace guest

// A program that calls the library, from three kinds of threads.
namespace host {

using cudasim::Sim;
using support::Has;
using support::IsRefused;
using support::Ramp;

// Calls the library while the stack is `stack`, and draws it before the work and after the call.
void Call(const support::Stage& stage, const char* expected) {
  const support::Undisturbed undisturbed;
  const auto progress = [&](bool elided) {
    CHECK(stage.Shows("in the host's callback", expected, "elided: nothing was pushed"));
    CHECK(elided);
  };
  CHECK(Has(guest::Double(/*stream=*/nullptr, Ramp(3), progress), Ramp(6)));

  Sim::ResetCalls();  // and now without drawing, which pushes
  CHECK(Has(guest::Double(/*stream=*/nullptr, Ramp(3), nullptr), Ramp(6)));
  const auto moves = Sim::Calls("cuCtxPushCurrent") + Sim::Calls("cuCtxPopCurrent");
  CHECK(moves == 0);
  CHECK(stage.Shows("when guest::Double returned", expected,
                    Sim::IsActive() ? "pushes and pops: " + std::to_string(moves) : ""));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"X", "A"});
  support::PrintScene("A host with contexts of its own, A on top of X");
  stage.Set({"X", "A"});
  Call(stage, "[X] [A]<");
  {
    support::PrintScene("A host that works in the primary context P, as one of the runtime does");
    CUGUEST_ASSIGN_OR_RETURN(const auto primary, cuguest::PrimaryContext::Retain(device));
    stage.Name("P", primary.get());
    stage.Set({"P"});
    Call(stage, "[P]<");
    stage.Set({});
  }
  support::PrintScene("A thread with nothing current");
  const support::Undisturbed undisturbed;
  CHECK(IsRefused("guest::Double", guest::Double(nullptr, Ramp(1), nullptr).status(),
                  absl::StatusCode::kFailedPrecondition, "CUDA_ERROR_INVALID_CONTEXT"));
  CHECK(stage.Shows("afterwards", "(empty)", "P is inactive"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library work in the context that its caller has current?",
                             &host::Demonstrate);
}
