// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LaunchForElements(): the shape it chooses, the forms it takes, what it refuses.

#include "cuguest/objects/typed_kernel.h"
#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(launch_for_elements)

namespace {

using namespace cuguest_launches;
using cuguest::LaunchForElements;
using cuguest::TypedKernel;
using CountUpKernel = TypedKernel<void(unsigned, unsigned, DevicePtr<unsigned>)>;

constexpr char kKernels[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry any() { ret; }
.visible .entry bounded() .maxntid 96, 1, 1 { ret; }
.visible .entry fixed() .reqntid 64 { ret; }
.visible .entry plane() .reqntid 64, 2 { ret; }
)";

// Of the last launch. The simulation runs a kernel before the launch returns.
unsigned g_grid = 0;
unsigned g_block = 0;

CUresult TakeShape(const SimLaunch& launch) {
  g_grid = launch.grid[0];
  g_block = launch.block[0];
  return CUDA_SUCCESS;
}

class Shapes {
 public:
  Shapes() {
    for (const char* name : {"any", "bounded", "fixed", "plane"}) {
      Sim::RegisterKernel(name, &TakeShape);
    }
    module_ = Module::Load(CodeImage::FromPtx(kKernels, "kernels").value()).value();
  }
  const Owner& owner() const { return owner_; }
  const StreamRef& stream() const { return stream_; }
  Kernel Get(const char* name) const { return module_.GetKernel(name).value(); }

  // A driver would refuse a block that the kernel does not allow.
  void Expect(const char* name, std::size_t count, unsigned grid, unsigned block) const {
    BOOST_TEST_CONTEXT(name << " for " << count) {
      SUCCEEDS(LaunchForElements(Get(name), count, stream_));
      SUCCEEDS(stream_.Synchronize());
      if (!Sim::IsActive()) return;
      BOOST_TEST(g_grid == grid);
      BOOST_TEST(g_block == block);
    }
  }

 private:
  Owner owner_;
  StreamRef stream_ = StreamRef::Borrow(owner_.stream(), owner_.ref());
  Module module_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(takes_every_form_of_parameters) {
  Counter counter;
  const Kernel& kernel = counter.kernel();
  const StreamRef& stream = counter.stream();
  const Undisturbed undisturbed;
  SUCCEEDS(LaunchForElements(kernel, kCount, stream, kCount, kValue, counter.memory()));
  BOOST_TEST(counter.Took());
  SUCCEEDS(LaunchForElements(kernel, kCount, stream, Packed(kCount, kValue, counter.memory())));
  BOOST_TEST(counter.Took());

  unsigned count = kCount;
  unsigned value = kValue;
  CUdeviceptr counts = counter.memory().get();
  void* const pointers[] = {&count, &value, &counts};
  SUCCEEDS(LaunchForElements(kernel, kCount, stream, HostSpan<void* const>(pointers)));
  BOOST_TEST(counter.Took());

  const CountUpKernel typed = CountUpKernel::Of(kernel);
  SUCCEEDS(typed.LaunchForElements(kCount, stream, kCount, 3.5, counter.buffer().view()));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(block_fits_the_kernel) {
  const Shapes shapes;
  for (int i = 0; i < 2; ++i) {  // found now, and found before
    shapes.Expect("any", 1, 1, 256);
    shapes.Expect("any", 256, 1, 256);
    shapes.Expect("any", 257, 2, 256);
    shapes.Expect("bounded", 97, 2, 96);
    shapes.Expect("fixed", 1000, 16, 64);
  }
}

BOOST_AUTO_TEST_CASE(context_of_the_stream_is_used) {
  Counter counter;
  const OwnContext other;
  for (const Stack& stack : {Stack{}, Stack{counter.ref().get()}, Stack{other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    for (const CUstream handle : {counter.stream().get(), CUstream{}, CU_STREAM_PER_THREAD}) {
      const StreamRef stream = StreamRef::Borrow(handle, counter.ref());
      SUCCEEDS(
          LaunchForElements(counter.kernel(), kCount, stream, kCount, kValue, counter.memory()));
      SUCCEEDS(stream.Synchronize());
      BOOST_TEST(counter.Took());
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(no_elements_is_success) {
  const Counter counter;
  const Undisturbed undisturbed;
  Sim::ResetCalls();
  SUCCEEDS(LaunchForElements(counter.kernel(), 0, counter.stream()));
  SUCCEEDS(LaunchForElements(Kernel(), 0, StreamRef()));
  SUCCEEDS(CountUpKernel().LaunchForElements(0, StreamRef(), 0, 0, DevicePtr<unsigned>()));
  BOOST_TEST(Sim::TotalCalls() == 0u);
}

BOOST_AUTO_TEST_CASE(bad_launch_is_refused_and_capture_goes_on) {
  const Shapes shapes;
  const Kernel any = shapes.Get("any");
  const Kernel plane = shapes.Get("plane");
  const CountUpKernel empty;
  for (const bool warm : {false, true}) {
    if (warm) SUCCEEDS(LaunchForElements(any, 1, shapes.stream()));
    const Capture capture(shapes.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    REFUSES(LaunchForElements(Kernel(), 1, shapes.stream()), kFailedPrecondition, "empty kernel");
    REFUSES(empty.LaunchForElements(1, shapes.stream(), 1, 1, DevicePtr<unsigned>()),
            kFailedPrecondition, "empty kernel");
    REFUSES(LaunchForElements(any, 1, StreamRef()), kInvalidArgument, "\"any\"", "empty stream");
    REFUSES(LaunchForElements(any, std::size_t{0x7fffffff} * 256 + 1, shapes.stream()), kOutOfRange,
            "2147483648 blocks");
    REFUSES(LaunchForElements(plane, 128, shapes.stream()), kInvalidArgument,
            "compiled for one of 64 x 2 x 1");
    if (HasDriver(12040)) {
      REFUSES(LaunchForElements(any, 1, shapes.stream(), 1U), kInvalidArgument,
              "takes 0 parameters", "1 is given");
    }
    SUCCEEDS(LaunchForElements(any, 1, shapes.stream()));  // which is recorded
  }
  SUCCEEDS(shapes.stream().Synchronize());
}

BOOST_AUTO_TEST_CASE(ended_context_is_refused) {
  const Shapes shapes;
  for (const bool warm : {false, true}) {
    StreamRef stream;
    {
      const Owner gone;
      stream = StreamRef::Borrow(gone.stream(), gone.ref());
      if (warm) SUCCEEDS(LaunchForElements(shapes.Get("any"), 1, stream));
    }
    OwnContext::DestroyIdle();
    const Undisturbed undisturbed;
    REFUSES(LaunchForElements(shapes.Get("any"), 1, stream), kFailedPrecondition, "\"any\"");
  }
}

BOOST_AUTO_TEST_CASE(costs_the_driver_calls_of_a_launch, *OnlySim()) {
  Counter counter;
  SUCCEEDS(counter.CountUp());
  SetStack({counter.ref().get()});
  Sim::ResetCalls();
  SUCCEEDS(counter.CountUp());
  const std::uint64_t launch = Sim::TotalCalls();
  Sim::ResetCalls();
  SUCCEEDS(LaunchForElements(counter.kernel(), kCount, counter.stream(), kCount, kValue,
                             counter.memory()));
  BOOST_TEST(Sim::TotalCalls() == launch);
  BOOST_TEST(launch == (HasDriver(11080) ? 3u : 2u));
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
