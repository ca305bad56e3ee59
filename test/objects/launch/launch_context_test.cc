// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches in captures, in contexts that were destroyed or reset, from where CUDA must not be
// called; their driver calls, and every one of those failing.

#include <atomic>
#include <thread>
#include <vector>

#include "cuguest/primary_context.h"
#include "test/objects/launch/launches.h"

BOOST_AUTO_TEST_SUITE(launch_context)

namespace {

using namespace cuguest_launches;
using cuguest::Device;
using cuguest::PrimaryContext;

// What was captured, ready to run.
class Replay {
 public:
  explicit Replay(const Owner& captured) {
    CUgraph graph = nullptr;
    OK(RAW(cuStreamEndCapture)(captured.stream(), &graph));
    BOOST_TEST_REQUIRE((graph != nullptr));
    captured.Enter();
    OK(RAW(cuGraphInstantiateWithFlags)(&exec_, graph, 0));
    SetStack({});
    OK(RAW(cuGraphDestroy)(graph));
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay() { OK(RAW(cuGraphExecDestroy)(exec_)); }
  void Run(CUstream stream) const { OK(RAW(cuGraphLaunch)(exec_, stream)); }

 private:
  CUgraphExec exec_ = nullptr;
};

// A stream of the counter's context that waits for stream 0, and captures while this lives.
class BlockingCapture {
 public:
  explicit BlockingCapture(const Owner& owner) {
    owner.Enter();
    OK(RAW(cuStreamCreate)(&stream_, CU_STREAM_DEFAULT));
    SetStack({});
    OK(RAW(cuStreamBeginCapture)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  }
  BlockingCapture(const BlockingCapture&) = delete;
  BlockingCapture& operator=(const BlockingCapture&) = delete;
  ~BlockingCapture() {
    CUgraph graph = nullptr;
    OK(RAW(cuStreamEndCapture)(stream_, &graph));
    OK(RAW(cuGraphDestroy)(graph));
    OK(RAW(cuStreamDestroy)(stream_));
  }

 private:
  CUstream stream_ = nullptr;
};

struct InCallback {
  Counter& counter;
  absl::Status created;
  absl::Status special;
};

void CUDA_CB LaunchInCallback(void* data) {
  auto& in = *static_cast<InCallback*>(data);
  in.created = in.counter.CountUp();
  in.special = in.counter.CountUp(Counter::shape(), StreamRef::Borrow(nullptr, in.counter.ref()));
}

absl::Status CountUpOnSpecial(Counter& counter, CUstream special = nullptr) {
  return counter.CountUp(Counter::shape(), StreamRef::Borrow(special, counter.ref()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_launch_in_a_capture_runs_with_the_graph) {
  for (const bool warm : {false, true}) {
    for (const CUstreamCaptureMode mode : kCaptureModes) {
      Counter counter;
      const CUstream stream = counter.stream().get();
      if (warm) {
        SUCCEEDS(counter.CountUp());
        BOOST_TEST(counter.Took());
      }
      OK(RAW(cuStreamBeginCapture)(stream, mode));
      SUCCEEDS(counter.CountUp());
      SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(),
                      Packed(kCount, kValue, counter.memory())));
      const Replay replay(counter.owner());
      BOOST_TEST(counter.Took(0));
      replay.Run(stream);
      replay.Run(stream);
      BOOST_TEST(counter.Took(4));
    }
  }
}

// The parameters are those of the launch, whatever becomes of the objects afterwards.
BOOST_AUTO_TEST_CASE(parameters_are_copied_into_the_graph) {
  Counter counter;
  const CUstream stream = counter.stream().get();
  ParamBuffer params = Packed(kCount, kValue, counter.memory());
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(), params));
  params.Clear();
  SUCCEEDS(params.Add(0U));  // where kCount was
  const Replay replay(counter.owner());
  replay.Run(stream);
  BOOST_TEST(counter.Took());
}

// Another stream captures, on this thread or another, in the mode that allows the least.
BOOST_AUTO_TEST_CASE(a_first_launch_while_somebody_captures) {
  const Owner other;
  const Capture capture(other.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  Owner here;
  const StreamRef stream = StreamRef::Borrow(here.stream(), here.ref());
  const Module module = LoadLaunchKernels(here.ref());
  const Kernel nothing = module.GetKernel("nothing").value();
  SUCCEEDS(Launch(nothing, {}, stream));
  SUCCEEDS(Launch(nothing, {}, StreamRef::Borrow(nullptr, here.ref())));
  std::thread([&] { SUCCEEDS(Launch(nothing, {}, stream)); }).join();
}

BOOST_AUTO_TEST_CASE(stream_0_while_a_blocking_stream_captures) {
  Counter counter;
  for (const bool warm : {false, true}) {
    {
      const BlockingCapture capture(counter.owner());
      for (const CUstream legacy : {CUstream{}, CU_STREAM_LEGACY}) {
        REFUSES(CountUpOnSpecial(counter, legacy), kFailedPrecondition, "\"count_up\"",
                "CU_STREAM_NON_BLOCKING");
      }
      SUCCEEDS(counter.CountUp());
    }
    BOOST_TEST(counter.Took());
    if (!warm) {
      SUCCEEDS(CountUpOnSpecial(counter));
      BOOST_TEST(counter.Took());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_capture_that_is_invalidated) {
  Counter counter;
  const CUstream stream = counter.stream().get();
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  BOOST_TEST((RAW(cuStreamSynchronize)(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  REFUSES(counter.CountUp(), kFailedPrecondition, "\"count_up\"", "whose capture is invalidated");
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
         ? CUDA_SUCCESS
         : CUDA_ERROR_UNKNOWN);
  SUCCEEDS(counter.CountUp());
  BOOST_TEST(counter.Took());
}

// The entry that stays on the stack keeps the handle readable.
BOOST_AUTO_TEST_CASE(in_a_destroyed_context) {
  OwnContext context;
  SetStack({context.get()});
  const ContextRef ref = ContextRef::Borrow(context.get());
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  Module module = LoadLaunchKernels(ref);
  const Kernel nothing = module.GetKernel("nothing").value();
  SUCCEEDS(Launch(nothing, {}, StreamRef::Borrow(stream, ref)));
  OK(RAW(cuCtxSynchronize)());
  const CUcontext dead = context.release();
  std::thread([dead] { OK(RAW(cuCtxDestroy)(dead)); }).join();
  for (const CUstream any : {stream, CUstream{}, CU_STREAM_PER_THREAD}) {
    REFUSES(Launch(nothing, {}, StreamRef::Borrow(any, ref)), kFailedPrecondition, "\"nothing\"",
            "went with its context");
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(after_a_reset_and_in_the_next_incarnation,
                     *NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const StreamRef before = StreamRef::Borrow(nullptr, primary.context());
  const Module module = LoadLaunchKernels(primary.context());
  const Kernel kernel = module.GetKernel("count_up").value();
  const Kernel nothing = module.GetKernel("nothing").value();
  SUCCEEDS(Launch(nothing, {}, before));
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  REFUSES(Launch(nothing, {}, before), kFailedPrecondition, "went with its context");
  {
    const PrimaryContext next = PrimaryContext::Retain(Device::Borrow(0));
    REFUSES(Launch(nothing, {}, before), kFailedPrecondition, "went with its context");
    const StreamRef after = StreamRef::Borrow(nullptr, next.context());
    auto counts = DeviceBuffer<unsigned>::Allocate(next.context(), 1).value();
    SUCCEEDS(Zero(counts.view()));
    SUCCEEDS(Launch(kernel, {}, after, 1U, kValue, DevicePtr(counts.view())));
    unsigned count = 0;
    SUCCEEDS(Download(counts.view(), HostSpan<unsigned>(&count, 1)));
    BOOST_TEST(count == kValue);
  }
}

BOOST_AUTO_TEST_CASE(from_a_stream_callback) {
  Counter counter;
  SUCCEEDS(counter.CountUp());
  InCallback in = {counter, absl::OkStatus(), absl::OkStatus()};
  OK(RAW(cuLaunchHostFunc)(counter.stream().get(), &LaunchInCallback, &in));
  BOOST_TEST(counter.Took());
  REFUSES(in.created, kPermissionDenied, "\"count_up\"");
  REFUSES(in.special, kPermissionDenied, "\"count_up\"");
}

BOOST_AUTO_TEST_CASE(from_many_threads) {
  Counter counter;
  const ParamBuffer packed = Packed(kCount, kValue, counter.memory());  // read by all
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (unsigned i = 0; i < 8; ++i) {
    threads.emplace_back([&counter, &packed, &wrong, i] {
      // By turns of two layouts that are right, and one that is not.
      for (unsigned j = 0; j < 50; ++j) {
        const absl::Status status =
            (i + j) % 2 != 0 ? counter.CountUp()
                             : Launch(counter.kernel(), counter.shape(), counter.stream(), packed);
        if (!status.ok()) ++wrong;
        if (Launch(counter.kernel(), {}, counter.stream(), 1.0).ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(counter.Took(400));
}

// The header's `Cost:`.
BOOST_AUTO_TEST_CASE(driver_calls, *OnlySim()) {
  Counter counter;
  const auto calls = [](const auto& work) {
    SUCCEEDS(work());
    cuguest_test::BeginCount();
    SUCCEEDS(work());
    return Sim::TotalCalls();
  };
  const auto count_up = [&] { return counter.CountUp(); };
  const auto packed = [&] {
    return Launch(counter.kernel(), counter.shape(), counter.stream(),
                  Packed(kCount, kValue, counter.memory()));
  };
  const auto special = [&] { return CountUpOnSpecial(counter); };
  SUCCEEDS(counter.CountUp());
  LaunchShape with_shared = counter.shape();
  with_shared.shared_bytes = 64;
  cuguest_test::BeginCount();
  SUCCEEDS(counter.CountUp(with_shared, counter.stream()));
  BOOST_TEST(Sim::TotalCalls() == 3U);  // within the limit that is known since the first launch
  SUCCEEDS(packed());
  const unsigned plain = HasDriver(11080) ? 3 : 2;  // with clusters, or without
  BOOST_TEST(calls(count_up) == plain);
  BOOST_TEST(calls(packed) == plain);
  BOOST_TEST(calls(special) == 7u);
  if (HasDriver(11060)) {  // cuLaunchKernelEx
    CUlaunchAttribute priority = {};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    LaunchShape shape = counter.shape();
    shape.attributes = HostSpan<const CUlaunchAttribute>(&priority, 1);
    BOOST_TEST(calls([&] { return counter.CountUp(shape, counter.stream()); }) == plain);
  }
  SetStack({counter.ref().get()});
  BOOST_TEST(calls(count_up) == plain);
  BOOST_TEST(calls(special) == 5u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *OnlySim()) {
  Counter counter;
  SUCCEEDS(counter.CountUp());
  FailEachCall({"cuCtxGetId", "cuLaunchKernel"}, [&] { return counter.CountUp(); });
  FailEachCall({"cuCtxGetId", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuStreamGetCaptureInfo",
                "cuLaunchKernel"},
               [&] { return CountUpOnSpecial(counter); });
  // A layout that is new each time: nothing is remembered of it.
  FailEachCall({"cuFuncGetParamInfo"}, [&] {
    Counter fresh;
    return fresh.CountUp();
  });
  LaunchShape shape = counter.shape();
  shape.shared_bytes = 49 << 10;
  Sim::FailCall("cuFuncGetAttribute", 1, CUDA_ERROR_OPERATING_SYSTEM);
  const absl::Status status = counter.CountUp(shape, counter.stream());
  Sim::ClearFaults();
  BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_OPERATING_SYSTEM), status.ToString());
}

// It is the tenth that is asked for, and only newer drivers know it.
BOOST_AUTO_TEST_CASE(without_more_shared_memory_to_ask_for, *OnlySim()) {
  // Asked by the first launch, or, where the driver has modules, while the code is loaded.
  Sim::FailCall("cuDeviceGetAttribute", 10, CUDA_ERROR_INVALID_VALUE);
  Counter counter;
  LaunchShape shape = counter.shape();
  shape.shared_bytes = 49 << 10;
  const absl::Status status = counter.CountUp(shape, counter.stream());
  Sim::ClearFaults();
  REFUSES(status, kInvalidArgument, "the device has 49152 for a block");
}

BOOST_AUTO_TEST_SUITE_END()
