// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library use a context of its own that its caller never sees?
//
// The CUDA programming guide shows it under "Library Context Management": create the context when
// the library is initialized and pop it, so that it is *floating*; push it at the beginning of
// every call and pop it at the end; destroy it when the library is shut down. Here a ContextGuard
// pushes and pops, and a HostScope runs the host's callback with the host's own stack.
//
//   1. Init: the context is created, and floating
//
//      before guest::Mixer::Init     [X] [A]<
//      after cuCtxCreate             [X] [A] [B]<
//      after cuCtxPopCurrent         [X] [A]<
//
//   2. A call with a callback of the host's
//
//      before guest::Mixer::Mix      [X] [A]<
//      inside                        [X] [A] [B]<    the library works
//      in the host's callback        [X] [A]<        the host's own stack
//      inside                        [X] [A] [B]<    the library works
//      after                         [X] [A]<        1000 samples checked

#include <cuda.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
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
#include "cuguest/host_scope.h"
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
#include "kernels/vector_add.h"

// The library. It links no CUDA library.
namespace guest {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Driver;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::Stream;

// Mixes two signals: gain * (x + y), in a context of its own.
//
// Threads: Mix() from any, also at the same time; Shutdown() after the last of them.
class Mixer {
 public:
  // For the pictures: where the library is, and its context.
  using Trace = std::function<void(const char* where, CUcontext own)>;
  using Progress = std::function<void()>;  // the host's; called in the host's context
  using Signal = std::vector<float>;

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Mixer>> Init(cuguest::Device device,
                                                                   Trace trace);
  [[nodiscard]] absl::StatusOr<Signal> Mix(float gain, const Signal& x, const Signal& y,
                                           const Progress& progress);
  [[nodiscard]] absl::Status Shutdown();

 private:
  Mixer(const Driver& driver, CUcontext context, Trace trace)
      : driver_(&driver), context_(context), trace_(std::move(trace)) {}

  [[nodiscard]] absl::Status LoadKernels();
  void Tell(const char* where) const {
    if (trace_) trace_(where, context_);
  }

  const Driver* driver_;
  CUcontext context_;
  Trace trace_;
  Kernel add_;    // vector_add
  Kernel scale_;  // saxpy
};

absl::StatusOr<std::unique_ptr<Mixer>> Mixer::Init(cuguest::Device device, Trace trace) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());

  CUcontext context = nullptr;
  CUresult code = driver->CtxCreate(&context, CU_CTX_SCHED_AUTO, device.get());
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "create the mixer's context");
  std::unique_ptr<Mixer> mixer(new Mixer(*driver, context, std::move(trace)));
  mixer->Tell("after cuCtxCreate");

  CUcontext popped = nullptr;
  code = driver->CtxPopCurrent(&popped);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "pop the mixer's context");
  mixer->Tell("after cuCtxPopCurrent");

  if (absl::Status status = mixer->LoadKernels(); !status.ok()) {
    mixer->Shutdown().IgnoreError();
    return status;
  }
  return mixer;
}

// A Kernel keeps its module loaded.
absl::Status Mixer::LoadKernels() {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module adding,
      Module::Load({cuguest_kernels::vector_add_fatbin, cuguest_kernels::vector_add_fatbin_size},
                   "vector_add"));
  absl::StatusOr<Kernel> add = adding.GetKernel("vector_add");
  CUGUEST_RETURN_IF_ERROR(add);
  CUGUEST_ASSIGN_OR_RETURN(
      const Module scaling,
      Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy"));
  absl::StatusOr<Kernel> scale = scaling.GetKernel("saxpy");
  CUGUEST_RETURN_IF_ERROR(scale);
  add_ = *std::move(add);
  scale_ = *std::move(scale);
  return absl::OkStatus();
}

absl::StatusOr<Mixer::Signal> Mixer::Mix(float gain, const Signal& x, const Signal& y,
                                         const Progress& progress) {
  ContextGuard guard(context_);  // pushes; its destructor pops
  CUGUEST_RETURN_IF_ERROR(guard);
  Tell("inside");

  const ContextRef here = ContextRef::Borrow(context_);
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(here));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> device_x, DeviceBuffer<float>::CopyOf(here, x));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> sum, DeviceBuffer<float>::CopyOf(here, y));
  absl::StatusOr<DeviceBuffer<float>> out =
      DeviceBuffer<float>::CopyOf(here, Signal(x.size()));  // zeros
  CUGUEST_RETURN_IF_ERROR(out);
  const auto count = static_cast<unsigned>(x.size());
  absl::Status status =
      cuguest::LaunchForElements(add_, count, stream.ref(), count, DevicePtr(device_x.view()),
                                 DevicePtr(sum.view()), DevicePtr(sum.view()));
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;

  if (progress) {
    const cuguest::HostScope host(guard);
    progress();
  }
  CUGUEST_RETURN_IF_ERROR(guard);  // the scope could not enter the context again
  Tell("inside");
  status = cuguest::LaunchForElements(scale_, count, stream.ref(), count, gain,
                                      DevicePtr(sum.view()), DevicePtr(out->view()));
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(out->view());
}

absl::Status Mixer::Shutdown() {
  // It is floating: destroying it changes no stack, whatever is current here.
  return cuguest::ToStatus(driver_->CtxDestroy(std::exchange(context_, nullptr)),
                           "destroy the mixer's context");
}

}  // namespace guest

// A program with two contexts of its own, and four threads that all call the library.
namespace host {

using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using guest::Mixer;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

void CallGuestAndCheck(Mixer& mixer, const Mixer::Progress& progress) {
  const absl::StatusOr<Mixer::Signal> mixed = mixer.Mix(4.0F, Ramp(1), Ramp(2), progress);
  if (CHECK_OK(mixed.status())) CHECK(*mixed == Ramp(12));
}

// Draws the stack where the library reports that it is, while `talking`.
struct Narrator {
  Cast* cast;
  bool talking = true;

  void Tell(const char* where, CUcontext guests) const {
    if (!talking) return;
    cast->Name("B", guests);
    const bool working = std::string(where) == "inside";
    PrintRow(where, cast->Draw(), working ? "the library works" : "");
  }
};

absl::StatusOr<std::unique_ptr<Mixer>> InitGuest(const Narrator& narrator, Device device) {
  PrintScene("Init: the context is created, and floating");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("before guest::Mixer::Init", narrator.cast->Draw());
  return Mixer::Init(
      device, [&narrator](const char* where, CUcontext guests) { narrator.Tell(where, guests); });
}

void CallOnce(const Cast& cast, Mixer& mixer) {
  PrintScene("A call with a callback of the host's");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const std::string before = cast.Draw();
  PrintRow("before guest::Mixer::Mix", before);
  CallGuestAndCheck(mixer, [&] {
    PrintRow("in the host's callback", cast.Draw(), "the host's own stack");
    CHECK(cast.Draw() == before);
  });
  PrintRow("after", cast.Draw(), "1000 samples checked");
  CHECK(cast.Draw() == before);
}

// One thread of the host's, with a stack of its own.
std::string CallOften(const Driver& driver, const Cast& cast, Mixer& mixer,
                      const std::vector<CUcontext>& contexts) {
  HostStack stack(driver, contexts);
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  for (int i = 0; i < 25; ++i) {
    const std::string before = cast.Draw();
    CallGuestAndCheck(mixer, [&] { CHECK(cast.Draw() == before); });
  }
  return cast.Draw();
}

void CallFromThreads(const Driver& driver, const Cast& cast, Mixer& mixer,
                     const std::vector<std::vector<CUcontext>>& stacks) {
  PrintScene("Four threads at the same time, 25 calls each, each with a stack of its own");
  std::vector<std::string> pictures(stacks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    threads.emplace_back([&, i] { pictures[i] = CallOften(driver, cast, mixer, stacks[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    PrintRow("thread " + std::to_string(i + 1) + " before and after", pictures[i]);
  }
}

void ShutdownGuest(const Cast& cast, Mixer& mixer) {
  PrintScene("Shutdown: the floating context is destroyed; the host's stack does not change");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("before guest::Mixer::Shutdown", cast.Draw());
  CHECK_OK(mixer.Shutdown());
  PrintRow("after", cast.Draw());
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  const HostStack stack(driver, {x.get(), a.get()});

  Narrator narrator{&cast};
  CUGUEST_ASSIGN_OR_RETURN(std::unique_ptr<Mixer> mixer, InitGuest(narrator, device));
  CallOnce(cast, *mixer);
  narrator.talking = false;
  CallFromThreads(driver, cast, *mixer,
                  {{}, {x.get()}, {a.get(), x.get()}, {a.get(), a.get(), a.get()}});
  ShutdownGuest(cast, *mixer);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a library use a context of its own that its caller never sees?",
      &host::Demonstrate);
}
