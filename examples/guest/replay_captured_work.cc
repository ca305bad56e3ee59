// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library replay work of its own in its caller's stream?
//
// It captures the work once, in a stream of its own, and launches the graph in whatever stream it
// is handed: one launch for all steps. Scratch memory belongs to the graph, which allocates and
// frees it as it runs. The capture restricts no other thread: the host allocates on one meanwhile,
// which a capture in mode GLOBAL would make fail. The host's stack and its thread's capture mode
// are as they were.
//
//      submitted                     right           29 driver calls
//      replayed                      right           3 driver calls
//      in the middle of the capture  [H]<            another thread allocates

#include <functional>
#include <string>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/graph.h"
#include "examples/guest/saxpy.h"
#include "examples/support/stage.h"

using cuguest::ContextRef;
using cuguest::ExecutableGraph;
using cuguest::Stream;
using cuguest::StreamRef;
using Buffer = cuguest::DeviceBuffer<float>;

// The library.
namespace guest {

using View = cuguest::DeviceView<float>;

constexpr int kSteps = 7;

// Adds kSteps times `x` to `y`, by way of scratch memory.
class Adder {
 public:
  static absl::StatusOr<Adder> Create(const ContextRef& context, const Signal& x) {
    Adder adder;
    CUGUEST_ASSIGN_OR_RETURN(adder.x_, Buffer::CopyOf(context, x));
    return adder;
  }

  absl::Status Submit(const View& scratch, const View& y, const StreamRef& stream) const {
    CUGUEST_RETURN_IF_ERROR(cuguest::ZeroAsync(scratch, stream));
    for (int i = 0; i < kSteps; ++i) {
      CUGUEST_RETURN_IF_ERROR(LaunchSaxpy(stream, 1.0F, x_.view(), scratch));
    }
    return LaunchSaxpy(stream, 1.0F, scratch, y);
  }

  // The same as a graph. `meanwhile` is called in the midst of it.
  absl::StatusOr<ExecutableGraph> Capture(const View& y,
                                          const std::function<void()>& meanwhile) const {
    CUGUEST_ASSIGN_OR_RETURN(const Stream mine, Stream::Create(x_));
    CUGUEST_ASSIGN_OR_RETURN(auto capture, cuguest::CaptureScope::Begin(mine));
    CUGUEST_ASSIGN_OR_RETURN(const View scratch, capture.Allocate<float>(x_.size()));
    meanwhile();
    CUGUEST_RETURN_IF_ERROR(Submit(scratch, y, mine));          // an error ends the capture
    CUGUEST_ASSIGN_OR_RETURN(const auto graph, capture.End());  // and frees the scratch memory
    return graph.Instantiate();
  }

 private:
  Buffer x_;
};

}  // namespace guest

namespace host {

using cudasim::Sim;
using support::Ramp;

// Runs `work` in the stream, which adds kSteps times the ramp to `y`, twice.
absl::Status RunAndCheck(const char* how, const guest::View& y, const StreamRef& stream,
                         const std::function<absl::Status()>& work) {
  CUGUEST_RETURN_IF_ERROR(cuguest::Zero(y));
  CUGUEST_RETURN_IF_ERROR(work());
  Sim::ResetCalls();
  CUGUEST_RETURN_IF_ERROR(work());
  const auto calls = Sim::TotalCalls();
  const bool right = CHECK(support::Has(cuguest::Download(y, stream), Ramp(2 * guest::kSteps)));
  support::PrintRow(how, right ? "right" : "wrong",
                    Sim::IsActive() ? std::to_string(calls) + " driver calls" : "");
  return absl::OkStatus();
}

// As another library of the host's may do at any time.
void AllocateOnAnotherThread(const cuguest::ObjectDriver& driver, const support::Stage& stage) {
  std::thread([&] {
    stage.Set({"H"});
    CUdeviceptr pointer = 0;
    SUCCEEDS(driver.MemAlloc(&pointer, 4096));
    SUCCEEDS(driver.MemFree(pointer));
  }).join();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  support::PrintScene("Eight steps, submitted and replayed in the host's stream");
  support::Stage stage(driver, device, {"H"});
  stage.Set({"H"});
  const auto context = ContextRef::Borrow(stage["H"]);
  CUGUEST_ASSIGN_OR_RETURN(const auto adder, guest::Adder::Create(context, Ramp(1)));
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(Buffer y, Buffer::Allocate(context, Ramp(1).size()));
  CUGUEST_ASSIGN_OR_RETURN(Buffer scratch, Buffer::Allocate(context, y.size()));

  CUGUEST_RETURN_IF_ERROR(RunAndCheck("submitted", y.view(), stream, [&] {
    return adder.Submit(scratch.view(), y.view(), stream);
  }));
  CUGUEST_ASSIGN_OR_RETURN(ExecutableGraph graph, adder.Capture(y.view(), [] {}));
  CUGUEST_RETURN_IF_ERROR(
      RunAndCheck("replayed", y.view(), stream, [&] { return graph.Launch(stream); }));

  // Once more: the driver sets a flag of the context when its first graph is instantiated.
  const support::Undisturbed undisturbed;
  const auto again = adder.Capture(y.view(), [&] {
    AllocateOnAnotherThread(driver, stage);
    CHECK(stage.Shows("in the middle of the capture", "[H]<", "another thread allocates"));
  });
  CHECK(stage.Shows("when the capture has ended", "[H]<"));
  return again.status();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library replay work of its own in its caller's stream?",
                             &host::Demonstrate);
}
