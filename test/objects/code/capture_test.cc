// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing that is done with modules and kernels invalidates a capture: of whichever mode, on this
// thread or on another, in the same context.

#include "cuguest/capture.h"

#include <functional>
#include <optional>

#include "cuguest/objects/kernel.h"
#include "test/objects/code/code.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(capture)

using namespace module_test;
using cuguest::CaptureStatusOf;
using cuguest_test::HasDriver;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;

namespace {

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

// A stream that captures, of a context that is current.
class Capture {
 public:
  explicit Capture(CUstreamCaptureMode mode) {
    SetStack({context_.get()});
    BOOST_TEST(RAW(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuStreamBeginCapture)(stream_, mode) == CUDA_SUCCESS);
  }
  ~Capture() {
    CUgraph graph = nullptr;
    BOOST_TEST(RAW(cuStreamEndCapture)(stream_, &graph) == CUDA_SUCCESS);
    if (graph != nullptr) BOOST_TEST(RAW(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuStreamDestroy)(stream_) == CUDA_SUCCESS);
    SetStack({});
  }
  ContextRef context() const { return Ref(context_.get()); }
  CUstream stream() const { return stream_; }

 private:
  OwnContext context_;
  CUstream stream_ = nullptr;
};

// All there is, from loading to unloading.
void UseCode(const ContextRef& context) {
  auto module = Module::LoadIn(context, Ptx());
  DONE(module.status());
  if (!module.ok()) return;
  DONE(Module::Load(Ptx()).status());
  DONE(module->KernelNames().status());
  DONE(module->Preload(context));
  DONE(module->GetGlobal<unsigned>(context, "counters").status());
  BOOST_TEST(!module->GetKernel("nothing").ok());
  BOOST_TEST(!Module::LoadIn(context, Ptx(kBroken)).ok());
  std::optional<Kernel> kernel = module->GetKernel("bounded").value();
  DONE(kernel->FunctionIn(context).status());
  DONE(kernel->AttributesIn(context).status());
  if (HasDriver(12040)) {
    DONE(kernel->IsLoaded(context).status());
    DONE(kernel->ParametersIn(context).status());
  }
  DONE(kernel->SetMaxDynamicSharedBytes(context, 4096));
  BOOST_TEST(!kernel->SetMaxDynamicSharedBytes(context, 1 << 30).ok());
  const auto borrowed = Kernel::Borrow(kernel->FunctionIn(context).value(), context);
  DONE(borrowed.status());
  DONE(borrowed->Preload(context));
  kernel.reset();
  DONE(module->Release());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_capture_of_this_thread_is_not_harmed) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Capture capture(mode);
    UseCode(capture.context());
    BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
  }
}

BOOST_AUTO_TEST_CASE(a_capture_of_another_thread_is_not_harmed) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Capture capture(mode);
    OnAnotherThread([&] { UseCode(capture.context()); });
    BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
  }
}

BOOST_AUTO_TEST_CASE(a_capture_in_another_context_is_not_harmed) {
  const OwnContext other;
  for (const CUstreamCaptureMode mode : kModes) {
    const Capture capture(mode);
    UseCode(Ref(other.get()));
    BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
  }
}

BOOST_AUTO_TEST_CASE(what_was_found_before_is_launched_in_a_capture) {
  Sim::RegisterKernel("bounded", [](const cudasim::SimLaunch&) { return CUDA_SUCCESS; });
  for (const CUstreamCaptureMode mode : kModes) {
    const Module module = Module::Load(Ptx()).value();
    const Capture capture(mode);
    DONE(module.Preload(capture.context()));
    const CUfunction function = module.GetKernel("bounded")->FunctionIn(capture.context()).value();
    BOOST_TEST(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, capture.stream(), nullptr,
                                   nullptr) == CUDA_SUCCESS);
    BOOST_TEST((CaptureStatusOf(capture.stream()) == CU_STREAM_CAPTURE_STATUS_ACTIVE));
  }
}

BOOST_AUTO_TEST_SUITE_END()
