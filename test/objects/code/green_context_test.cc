// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code in a green context, which has a part of the device's multiprocessors and shares all else
// with the primary context that it was made from.

#include "cuguest/objects/occupancy.h"
#include "test/objects/launch/launches.h"
#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(green_context, *cuguest_streams::NeedsGreenContexts() *
                                         cuguest_test::NeedsDriver(12050, "cuGreenCtxStreamCreate"))

namespace {

using namespace cuguest_launches;
using cuguest::MaxActiveBlocks;
using cuguest_streams::NeedsGreenContexts;

// A green context of the smallest part that the device can be split into, and the primary one
// that it is of.
class Part {
 public:
  Part() {
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary_, 0));
    CUdevResource all = {};
    CUdevResource part = {};
    CUdevResourceDesc description = nullptr;
    unsigned groups = 1;
    OK(RAW(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(RAW(cuDevSmResourceSplitByCount)(&part, &groups, &all, nullptr, 0, 1));
    OK(RAW(cuDevResourceGenerateDesc)(&description, &part, 1));
    OK(RAW(cuGreenCtxCreate)(&green_, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(RAW(cuCtxFromGreenCtx)(&context_, green_));
    OK(RAW(cuGreenCtxStreamCreate)(&stream_, green_, CU_STREAM_NON_BLOCKING, 0));
    multiprocessors_ = part.sm.smCount;
    BOOST_TEST_REQUIRE(multiprocessors_ < all.sm.smCount);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    SetStack({});
    if (green_ != nullptr) Destroy();
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
  }
  void Destroy() {
    OK(RAW(cuStreamDestroy)(stream_));
    OK(RAW(cuGreenCtxDestroy)(green_));
    green_ = nullptr;
  }

  ContextRef primary() const { return ContextRef::Borrow(primary_); }
  ContextRef ref() const { return ContextRef::Borrow(context_); }
  StreamRef stream() const { return StreamRef::Borrow(stream_).value(); }
  unsigned multiprocessors() const { return multiprocessors_; }

 private:
  CUcontext primary_ = nullptr;
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  unsigned multiprocessors_ = 0;
};

// A module of the driver's in `context`, and its function.
class Foreign {
 public:
  explicit Foreign(const ContextRef& context) : context_(context) {
    RegisterKernels();
    SetStack({context_.get()});
    OK(RAW(cuModuleLoadData)(&module_, cuguest_kernels::launch_fatbin));
    OK(RAW(cuModuleGetFunction)(&function_, module_, "get_shape"));
    SetStack({});
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() {
    SetStack({context_.get()});
    OK(RAW(cuModuleUnload)(module_));
    SetStack({});
  }
  Kernel Borrowed() const { return Kernel::Borrow(function_, context_).value(); }

 private:
  const ContextRef context_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_borrowed_function_of_the_primary_runs_on_a_green_stream) {
  const Part part;
  const Foreign foreign(part.primary());
  const Kernel kernel = foreign.Borrowed();
  auto memory = DeviceBuffer<unsigned>::Allocate(part.primary(), 10).value();
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(part.stream().get(), mode);  // which it is asked in for the first time
    SUCCEEDS(Launch(foreign.Borrowed(), {}, part.stream(), DevicePtr(memory.view())));
  }
  SUCCEEDS(Launch(kernel, {3, 32}, part.stream(), DevicePtr(memory.view())));
  SUCCEEDS(part.stream().Synchronize());
  std::vector<unsigned> seen(10);
  SUCCEEDS(Download(memory.view(), seen));
  BOOST_TEST(seen[0] == 3U);
  BOOST_TEST(seen[3] == 32U);
}

BOOST_AUTO_TEST_CASE(a_borrowed_function_of_another_context_is_refused) {
  const Part part;
  const OwnContext own;
  const Foreign foreign(ContextRef::Borrow(own.get()));
  const Kernel kernel = foreign.Borrowed();
  for (const ContextRef& context : {part.ref(), part.primary()}) {
    REFUSES(kernel.FunctionIn(context).status(), kFailedPrecondition,
            "it is a function of context 0x");
  }
}

BOOST_AUTO_TEST_CASE(a_function_that_was_borrowed_in_one_green_context_is_refused_in_another) {
  const Part part;
  const cuguest_streams::Green other;
  const Foreign foreign(part.primary());
  CUfunction function = foreign.Borrowed().FunctionIn(part.ref()).value();
  const Kernel kernel = Kernel::Borrow(function, part.ref()).value();
  REFUSES(kernel.FunctionIn(other.ref()).status(), kFailedPrecondition,
          "it is a function of context 0x");
}

BOOST_AUTO_TEST_CASE(a_variable_is_the_primarys_and_outlives_the_green_context) {
  Part part;
  const Module module = LoadLaunchKernels(part.primary());
  const auto in_green = module.GetGlobal<unsigned>(part.ref(), "launch_mark").value();
  const auto in_primary = module.GetGlobal<unsigned>(part.primary(), "launch_mark").value();
  BOOST_TEST(in_green.get() == in_primary.get());
  BOOST_TEST((in_green.context() == part.primary()));
  part.Destroy();
  const std::vector<unsigned> value = {7};
  SUCCEEDS(Upload(in_green, value));
}

BOOST_AUTO_TEST_CASE(a_cooperative_grid_has_the_parts_multiprocessors) {
  const Part part;
  const Module module = LoadLaunchKernels(part.primary());
  const Kernel kernel = module.GetKernel("nothing").value();
  const auto each = static_cast<unsigned>(MaxActiveBlocks(kernel, part.ref(), 1024).value());
  LaunchShape most{each * part.multiprocessors(), 1024};
  most.cooperative = true;
  LaunchShape more{each * part.multiprocessors() + 1, 1024};
  more.cooperative = true;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    const Capture capture(part.stream().get(), mode);
    REFUSES(Launch(kernel, more, part.stream()), kResourceExhausted,
            "on each of " + std::to_string(part.multiprocessors()) + " multiprocessors");
    SUCCEEDS(Launch(kernel, most, part.stream()));
  }
  SUCCEEDS(Launch(kernel, most, part.stream()));
  SUCCEEDS(part.stream().Synchronize());
}

BOOST_AUTO_TEST_SUITE_END()
