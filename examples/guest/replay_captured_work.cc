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
//   1. Eight steps, submitted and replayed in the host's stream
//
//      submitted                     right           23 driver calls
//      replayed                      right           3 driver calls
//
//   2. What the host sees while the library captures
//
//      the host's stack              [H]<
//      in the middle of the capture  [H]<
//      cuMemAlloc on another thread  works
//      when the capture has ended    [H]<

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/capture_scope.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/graph.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library.
namespace guest {

using cuguest::CaptureScope;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::ExecutableGraph;
using cuguest::Graph;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::Stream;
using cuguest::StreamRef;

constexpr int kSteps = 7;

// Adds kSteps times `x` to `y`, by way of scratch memory.
class Adder {
 public:
  static absl::StatusOr<Adder> Create(const ContextRef& context, const std::vector<float>& x) {
    CUGUEST_ASSIGN_OR_RETURN(
        const Module module,
        Module::LoadIn(context, {cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                       "saxpy"));
    absl::StatusOr<Kernel> saxpy = module.GetKernel("saxpy");
    CUGUEST_RETURN_IF_ERROR(saxpy);
    absl::StatusOr<DeviceBuffer<float>> values = DeviceBuffer<float>::CopyOf(context, x);
    CUGUEST_RETURN_IF_ERROR(values);
    return Adder(*std::move(saxpy), *std::move(values));
  }

  absl::Status Submit(const DeviceView<float>& scratch, const DeviceView<float>& y,
                      const StreamRef& stream) const {
    absl::Status status = cuguest::ZeroAsync(scratch, stream);
    for (int i = 0; i < kSteps && status.ok(); ++i) status = Add(x_.view(), scratch, stream);
    return status.ok() ? Add(scratch, y, stream) : status;
  }

  // The same as a graph. `meanwhile` is called in the midst of it.
  absl::StatusOr<ExecutableGraph> Capture(const DeviceView<float>& y,
                                          const std::function<void()>& meanwhile) const {
    CUGUEST_ASSIGN_OR_RETURN(const Stream mine, Stream::Create(x_.context()));
    CUGUEST_ASSIGN_OR_RETURN(CaptureScope capture, CaptureScope::Begin(mine.ref()));
    const absl::StatusOr<DeviceView<float>> scratch = capture.Allocate<float>(x_.size());
    CUGUEST_RETURN_IF_ERROR(scratch);  // the scope ends the capture
    if (meanwhile) meanwhile();
    absl::Status status = Submit(*scratch, y, mine.ref());
    if (!status.ok()) return status;
    const absl::StatusOr<Graph> graph = capture.End();  // and frees the scratch memory
    CUGUEST_RETURN_IF_ERROR(graph);
    return graph->Instantiate();
  }

 private:
  Adder(Kernel saxpy, DeviceBuffer<float> x) : saxpy_(std::move(saxpy)), x_(std::move(x)) {}

  absl::Status Add(const DeviceView<const float>& from, const DeviceView<float>& to,
                   const StreamRef& stream) const {
    return cuguest::LaunchForElements(saxpy_, to.size(), stream, static_cast<unsigned>(to.size()),
                                      1.0F, DevicePtr<const float>(from), DevicePtr<float>(to));
  }

  Kernel saxpy_;
  DeviceBuffer<float> x_;
};

}  // namespace guest

namespace host {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Driver;
using cuguest::ExecutableGraph;
using cuguest::Stream;
using cuguest::StreamRef;
using cuguest::testing::UndisturbedScope;
using guest::Adder;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

// Runs `work` in the stream, which adds kSteps times the ramp to `y`, twice.
void RunAndCheck(const char* how, DeviceBuffer<float>* y, const StreamRef& stream,
                 const std::function<absl::Status()>& work) {
  CHECK_OK(cuguest::Zero(y->view()));
  CHECK_OK(work());
  Sim::ResetCalls();
  CHECK_OK(work());
  const std::uint64_t calls = Sim::TotalCalls();
  CHECK_OK(stream.Synchronize());
  const absl::StatusOr<std::vector<float>> sum = cuguest::Download(y->view());
  const bool right = CHECK_OK(sum.status()) && CHECK(*sum == Ramp(2 * guest::kSteps));
  PrintRow(how, right ? "right" : "wrong",
           Sim::IsActive() ? std::to_string(calls) + " driver calls" : "");
}

// As another library of the host's may do at any time.
bool AllocatesOnAnotherThread(const Driver& driver, CUcontext context) {
  bool works = false;
  std::thread([&] {
    const HostStack stack(driver, {context});
    CUdeviceptr pointer = 0;
    works =
        driver.MemAlloc(&pointer, 4096) == CUDA_SUCCESS && driver.MemFree(pointer) == CUDA_SUCCESS;
  }).join();
  return works;
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext context, HostContext::Create(driver, device));
  const ContextRef ref = ContextRef::Borrow(context.get());
  CUGUEST_ASSIGN_OR_RETURN(const Adder adder, Adder::Create(ref, Ramp(1)));
  const absl::StatusOr<Stream> stream = Stream::Create(ref);  // the host's
  CUGUEST_RETURN_IF_ERROR(stream);
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> y,
                           DeviceBuffer<float>::Allocate(ref, Ramp(1).size()));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> scratch,
                           DeviceBuffer<float>::Allocate(ref, y.size()));

  PrintScene("Eight steps, submitted and replayed in the host's stream");
  RunAndCheck("submitted", &y, stream->ref(),
              [&] { return adder.Submit(scratch.view(), y.view(), stream->ref()); });
  CUGUEST_ASSIGN_OR_RETURN(ExecutableGraph graph, adder.Capture(y.view(), nullptr));
  RunAndCheck("replayed", &y, stream->ref(), [&] { return graph.Launch(stream->ref()); });

  PrintScene("What the host sees while the library captures");
  Cast cast;
  cast.Name("H", context.get());
  const HostStack stack(driver, {context.get()});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const std::string before = cast.Draw();
  PrintRow("the host's stack", before);
  const absl::StatusOr<ExecutableGraph> again = adder.Capture(y.view(), [&] {
    PrintRow("in the middle of the capture", cast.Draw());
    CHECK(cast.Draw() == before);
    const bool works = AllocatesOnAnotherThread(driver, context.get());
    PrintRow("cuMemAlloc on another thread", works ? "works" : "fails");
    CHECK(works);
  });
  PrintRow("when the capture has ended", cast.Draw());
  CHECK(cast.Draw() == before);
  return again.status();
}

}  // namespace host

int main() {
  return support::RunExample("How does a library replay work of its own in its caller's stream?",
                             &host::Demonstrate);
}
