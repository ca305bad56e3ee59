// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Captures of one's own: what becomes of them, of their memory, and of everybody else.

#include "cuguest/objects/capture_scope.h"

#include <memory>
#include <optional>
#include <vector>

#include "cuguest/objects/stream.h"
#include "test/objects/graph/graphs.h"
#include "test/support/capture_mode.h"

BOOST_AUTO_TEST_SUITE(capture_scope)

namespace {

using namespace cuguest_graphs;
using cuguest::Stream;
using cuguest_test::ThreadMode;

constexpr char kIds[] = "cuCtxGetId, which tells that a context is over";

CaptureScope Begin(const StreamRef& stream,
                   CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
  return CaptureScope::Begin(stream, mode).value();
}

// Work in memory that the capture allocates, and a copy of it to the counters.
absl::Status CountInScratch(Counter& counter, CaptureScope* capture, bool frees) {
  const absl::StatusOr<DeviceView<unsigned>> scratch = capture->Allocate<unsigned>(kCount);
  if (!scratch.ok()) return scratch.status();
  const StreamRef& stream = capture->stream();
  SUCCEEDS(cuguest::FillAsync(*scratch, 1U, stream));
  SUCCEEDS(Launch(counter.kernel(), counter.shape(), stream, kCount, kValue - 1,
                  DevicePtr<unsigned>(*scratch)));
  SUCCEEDS(cuguest::CopyAsync(counter.buffer().view(), *scratch, stream));
  return frees ? capture->Free(*scratch) : absl::OkStatus();
}

// A scope that ends after the fault.
struct Held {
  absl::Status status;
  CaptureScope capture;
};
absl::Status StatusOf(const Held& held) { return held.status; }

}  // namespace

BOOST_AUTO_TEST_CASE(captured_work_is_done_at_each_launch) {
  Counter counter;
  const Owner other;
  DeviceBuffer<unsigned> copied = DeviceBuffer<unsigned>::Allocate(counter.ref(), kCount).value();
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    for (const Stack& stack : {Stack{}, Stack{other.get()}, Stack{counter.ref().get()}}) {
      SUCCEEDS(Zero(copied.view()));
      SetStack(stack);
      {
        const Undisturbed undisturbed;
        const CUstreamCaptureMode before = ThreadMode();
        CaptureScope capture = Begin(counter.stream(), mode);
        BOOST_TEST(Captures(counter.stream().get()));
        BOOST_TEST((ThreadMode() == before));
        BOOST_TEST((GetStack() == stack));
        SUCCEEDS(counter.CountUp());
        SUCCEEDS(cuguest::CopyAsync(copied.view(), counter.buffer().view(), capture.stream()));
        Graph graph = capture.End().value();
        BOOST_TEST((graph.context() == counter.ref()));
        BOOST_TEST((CaptureOf(counter.stream().get()) == CU_STREAM_CAPTURE_STATUS_NONE));
        ExecutableGraph ready = graph.Instantiate().value();
        SUCCEEDS(ready.Launch(counter.stream()));
        SUCCEEDS(ready.Launch(counter.stream()));
        BOOST_TEST((ThreadMode() == before));
      }
      SetStack({});
      BOOST_TEST(counter.Took(2));
      BOOST_TEST((cuguest::Download(copied.view()).value() == Counts(kCount, 2 * kValue)));
    }
  }
}

BOOST_AUTO_TEST_CASE(streams_that_cannot_be_captured) {
  Counter counter;
  const auto refused = [](const StreamRef& stream, const char* words) {
    REFUSES(CaptureScope::Begin(stream).status(), kInvalidArgument, "begin a capture", words);
  };
  refused(StreamRef(), "an empty stream");
  refused(StreamRef::Borrow(CU_STREAM_LEGACY, counter.ref()), "Stream::Create()");
  refused(StreamRef::Borrow(CU_STREAM_PER_THREAD, counter.ref()), "Stream::Create()");
  REFUSES(CaptureScope::Begin(counter.stream(), static_cast<CUstreamCaptureMode>(7)).status(),
          kInvalidArgument, "mode 7");
  BOOST_TEST(!Captures(counter.stream().get()));
}

BOOST_AUTO_TEST_CASE(a_capture_that_is_there_goes_on) {
  Counter counter;
  const Capture capture(counter.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  REFUSES(CaptureScope::Begin(counter.stream()).status(), kFailedPrecondition, "which captures");
}

BOOST_AUTO_TEST_CASE(captures_side_by_side) {
  Counter counter;
  const Owner other;
  const Capture others(other.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    CaptureScope capture = Begin(counter.stream(), mode);
    SUCCEEDS(counter.CountUp());
    ExecutableGraph ready = capture.End().value().Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    CaptureScope dropped = Begin(counter.stream(), mode);
  }
}

// What the host does on another thread.
BOOST_AUTO_TEST_CASE(another_thread_allocates_meanwhile) {
  Counter counter;
  const Owner host;
  CaptureScope capture = Begin(counter.stream());
  std::thread([&] {
    host.Enter();
    CUdeviceptr pointer = 0;
    OK(RAW(cuMemAlloc)(&pointer, 16));
    OK(RAW(cuMemFree)(pointer));
    SetStack({});
  }).join();
  SUCCEEDS(capture.End().status());
}

BOOST_AUTO_TEST_CASE(a_scope_that_is_left_ends_its_capture) {
  Counter counter;
  const Undisturbed undisturbed;
  const auto usable = [&] {
    SUCCEEDS(counter.CountUp());
    BOOST_TEST(counter.Took());
  };
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    {
      const CaptureScope capture = Begin(counter.stream(), mode);
      SUCCEEDS(counter.CountUp());
    }
    usable();
    auto elsewhere = std::make_unique<CaptureScope>(Begin(counter.stream(), mode));
    SUCCEEDS(counter.CountUp());
    std::thread([&] { elsewhere.reset(); }).join();
    usable();
    {
      const CaptureScope capture = Begin(counter.stream(), mode);
      BOOST_TEST((RAW(cuStreamSynchronize)(counter.stream().get()) != CUDA_SUCCESS));
    }
    usable();
  }
}

BOOST_AUTO_TEST_CASE(an_invalidated_capture_has_no_graph) {
  Counter counter;
  const Undisturbed undisturbed;
  CaptureScope capture = Begin(counter.stream());
  BOOST_TEST((RAW(cuStreamSynchronize)(counter.stream().get()) != CUDA_SUCCESS));
  REFUSES(counter.CountUp(), kFailedPrecondition, "invalidated");
  REFUSES(capture.End().status(), kFailedPrecondition, "end a capture",
          "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "before the capture");
  REFUSES(capture.End().status(), kFailedPrecondition, "empty");
  SUCCEEDS(counter.CountUp());
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(a_stream_that_joined_must_be_joined) {
  Counter counter;
  const Undisturbed undisturbed;
  const cuguest::Stream second = cuguest::Stream::Create(counter.ref()).value();
  cuguest::Event forked = cuguest::Event::Create(counter.ref()).value();
  cuguest::Event joined = cuguest::Event::Create(counter.ref()).value();
  for (const bool joins : {false, true}) {
    CaptureScope capture = Begin(counter.stream());
    SUCCEEDS(counter.CountUp());
    SUCCEEDS(forked.Record(counter.stream()));
    SUCCEEDS(second.ref().WaitFor(forked));
    SUCCEEDS(counter.CountUp(counter.shape(), second.ref()));
    if (!joins) {
      REFUSES(capture.End().status(), kFailedPrecondition, "record an event behind its work");
      BOOST_TEST((CaptureOf(counter.stream().get()) == CU_STREAM_CAPTURE_STATUS_NONE));
      continue;
    }
    SUCCEEDS(joined.Record(second.ref()));
    SUCCEEDS(counter.stream().WaitFor(joined));
    ExecutableGraph ready = capture.End().value().Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    BOOST_TEST(counter.Took(2));
  }
}

BOOST_AUTO_TEST_CASE(the_wrong_thread_ends_nothing) {
  Counter counter;
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    CaptureScope capture = Begin(counter.stream(), mode);
    SUCCEEDS(counter.CountUp());
    std::thread([&] {
      if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        SUCCEEDS(capture.End().status());
      } else {
        REFUSES(capture.End().status(), kFailedPrecondition, "another thread", "RELAXED");
      }
    }).join();
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    ExecutableGraph ready = capture.End().value().Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

BOOST_AUTO_TEST_CASE(somebody_else_ends_the_capture) {
  Counter counter;
  const CUstream stream = counter.stream().get();
  const Undisturbed undisturbed;
  for (const bool begins_again : {false, true}) {
    std::optional<CaptureScope> capture = Begin(counter.stream());
    std::optional<CaptureScope> left = Begin(
        StreamRef::Borrow(cuguest::Stream::Create(counter.ref()).value().Leak(), counter.ref()));
    const CUstream lefts = left->stream().get();
    for (const CUstream each : {stream, lefts}) {
      OK(EndCapture(each));
      if (begins_again) OK(RAW(cuStreamBeginCapture)(each, CU_STREAM_CAPTURE_MODE_RELAXED));
    }
    REFUSES(capture->Allocate<int>(1).status(), kFailedPrecondition, "somebody else has ended");
    REFUSES(capture->End().status(), kFailedPrecondition, "somebody else has ended");
    capture.reset();
    left.reset();
    for (const CUstream each : {stream, lefts}) {
      BOOST_TEST(Captures(each) == begins_again);
      if (begins_again) OK(EndCapture(each));
    }
    OK(RAW(cuStreamDestroy)(lefts));
  }
}

// As where two members of a class are declared in the wrong order.
BOOST_AUTO_TEST_CASE(its_stream_is_destroyed_before_it) {
  const Owner owner;
  const Undisturbed undisturbed;
  for (const bool silently : {false, true}) {
    Stream stream = Stream::Create(owner.ref()).value();
    CaptureScope capture = Begin(stream.ref());
    stream = Stream();
    Stream next = Stream::Create(owner.ref()).value();  // with the same handle, perhaps
    const CaptureScope others = Begin(next.ref());
    if (!silently) {
      if (HasDriver(11040)) {
        REFUSES(capture.Allocate<int>(1).status(), kFailedPrecondition, "which was destroyed");
      }
      REFUSES(capture.End().status(), kFailedPrecondition, "end a capture", "which was destroyed");
      BOOST_TEST((capture.stream().get() == nullptr));
    }
    capture = CaptureScope();
    BOOST_TEST(Captures(next.get()));
  }
}

BOOST_AUTO_TEST_CASE(the_context_is_over, *NeedsDriver(12000, kIds)) {
  for (const bool ends : {false, true}) {
    OwnContext context;
    SetStack({context.get()});
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    SetStack({});
    const StreamRef ref = StreamRef::Borrow(stream, ContextRef::Borrow(context.get()));
    CaptureScope capture = Begin(ref);
    Destroy(context.release());
    REFUSES(capture.Allocate<int>(1).status(), kFailedPrecondition, "went with its context");
    if (ends) REFUSES(capture.End().status(), kFailedPrecondition, "went with its context");
    if (ends) REFUSES(capture.End().status(), kFailedPrecondition, "empty");
    REFUSES(CaptureScope::Begin(ref).status(), kFailedPrecondition, "went with its context");
  }
}

BOOST_AUTO_TEST_CASE(memory_of_a_capture_is_there_at_each_launch) {
  Counter counter;
  for (const bool frees : {false, true}) {
    const Undisturbed undisturbed;
    CaptureScope capture = Begin(counter.stream());
    SUCCEEDS(CountInScratch(counter, &capture, frees));
    SUCCEEDS(CountInScratch(counter, &capture, !frees));
    Graph graph = capture.End().value();
    ExecutableGraph ready = graph.Instantiate().value();
    SUCCEEDS(graph.Release());
    for (int i = 0; i < 3; ++i) {
      SUCCEEDS(ready.Launch(counter.stream()));
      BOOST_TEST(counter.Took());
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_of_a_capture_that_is_left) {
  Counter counter;
  const Undisturbed undisturbed;
  {
    CaptureScope capture = Begin(counter.stream());
    SUCCEEDS(CountInScratch(counter, &capture, /*frees=*/false));
  }
  SUCCEEDS(counter.CountUp());
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(a_graph_with_memory_is_instantiated_once_at_a_time) {
  Counter counter;
  CaptureScope capture = Begin(counter.stream());
  SUCCEEDS(CountInScratch(counter, &capture, /*frees=*/true));
  Graph graph = capture.End().value();
  ExecutableGraph ready = graph.Instantiate().value();
  BOOST_TEST(!graph.Instantiate().ok());
  SUCCEEDS(ready.Release());
  SUCCEEDS(graph.Instantiate().status());
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_had_or_freed) {
  Counter counter;
  CaptureScope capture = Begin(counter.stream());
  REFUSES(capture.Allocate<int>(~std::size_t{0} / 2).status(), kInvalidArgument, "allocate");
  if (Sim::IsActive()) {  // a real driver may notice when the graph is instantiated or launched
    REFUSES(capture.Allocate<char>(std::size_t{1} << 50).status(), kResourceExhausted,
            "in a capture");
  }
  BOOST_TEST(capture.Allocate<int>(0).value().empty());
  SUCCEEDS(capture.Free(DeviceView<int>()));
  const DeviceView<int> view = capture.Allocate<int>(8).value();
  BOOST_TEST(view.size() == 8u);
  BOOST_TEST((view.context().get() == nullptr));
  BOOST_TEST((view.device() == cuguest::Device::Borrow(0)));
  REFUSES(capture.Free(counter.buffer().view()), kInvalidArgument, "has not allocated it");
  SUCCEEDS(capture.Free(view));
  REFUSES(capture.Free(view), kInvalidArgument, "freed already");
  REFUSES(DeviceBuffer<int>::AllocateAsync(counter.stream(), 8).status(), kFailedPrecondition,
          "captures");
  SUCCEEDS(capture.End().status());
  REFUSES(capture.Allocate<int>(8).status(), kFailedPrecondition, "empty");
  REFUSES(capture.Free(view), kFailedPrecondition, "empty");
}

BOOST_AUTO_TEST_CASE(memory_in_an_invalidated_capture) {
  Counter counter;
  CaptureScope capture = Begin(counter.stream());
  const DeviceView<int> view = capture.Allocate<int>(8).value();
  BOOST_TEST((RAW(cuStreamSynchronize)(counter.stream().get()) != CUDA_SUCCESS));
  REFUSES(capture.Allocate<int>(8).status(), kFailedPrecondition, "invalidated");
  REFUSES(capture.Free(view), kFailedPrecondition, "invalidated");
  REFUSES(capture.End().status(), kFailedPrecondition, "invalidated");
}

BOOST_AUTO_TEST_CASE(a_scope_moves) {
  Counter counter;
  CaptureScope empty;
  BOOST_TEST((empty.stream().get() == nullptr));
  REFUSES(empty.End().status(), kFailedPrecondition, "empty");
  CaptureScope capture = Begin(counter.stream());
  SUCCEEDS(CountInScratch(counter, &capture, /*frees=*/false));
  CaptureScope moved = std::move(capture);
  capture = CaptureScope();
  empty = std::move(moved);
  BOOST_TEST((empty.stream() == counter.stream()));
  ExecutableGraph ready = empty.End().value().Instantiate().value();
  SUCCEEDS(ready.Launch(counter.stream()));
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(from_a_stream_callback) {
  Counter counter;
  const cuguest::Stream second = cuguest::Stream::Create(counter.ref()).value();
  CaptureScope capture = Begin(second.ref(), CU_STREAM_CAPTURE_MODE_RELAXED);
  const auto denied = [&](const std::function<absl::Status()>& call) {
    REFUSES(InCallback(counter.stream().get(), call), kPermissionDenied, "capture");
  };
  denied([&] { return CaptureScope::Begin(counter.stream()).status(); });
  denied([&] { return capture.Allocate<int>(1).status(); });
  denied([&] { return capture.End().status(); });
  SUCCEEDS(capture.End().status());
}

// The header's `Cost:`.
BOOST_AUTO_TEST_CASE(driver_calls, *NeedsDriver(12000, kIds) * OnlySim()) {
  Counter counter;
  std::optional<CaptureScope> capture;
  DeviceView<int> view;
  const auto calls = [](const auto& work) {
    cuguest_test::BeginCount();
    work();
    return Sim::TotalCalls();
  };
  BOOST_TEST(calls([&] { capture = Begin(counter.stream()); }) == 4u);
  const bool names_context = cuguest_test::HasDriver(13000);  // cuCtxGetDevice takes it
  BOOST_TEST(calls([&] { view = capture->Allocate<int>(8).value(); }) ==
             (names_context ? 8u : 12u));
  BOOST_TEST(calls([&] { SUCCEEDS(capture->Free(view)); }) == 3u);
  SetStack({counter.ref().get()});
  BOOST_TEST(calls([&] { view = capture->Allocate<int>(8).value(); }) ==
             (names_context ? 8u : 10u));
  SetStack({});
  std::optional<Graph> graph;
  BOOST_TEST(calls([&] { graph = capture->End().value(); }) == 4u);
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *OnlySim()) {
  Counter counter;
  FailEachCall({"cuCtxGetId", "cuStreamGetCaptureInfo", "cuStreamBeginCapture"},
               [&] { return CaptureScope::Begin(counter.stream()); });
  FailEachCall({"cuStreamEndCapture", "cuMemFreeAsync"}, [&] {
    CaptureScope capture = Begin(counter.stream());
    SUCCEEDS(CountInScratch(counter, &capture, /*frees=*/false));
    absl::StatusOr<Graph> graph = capture.End();
    if (!graph.ok()) SUCCEEDS(capture.End().status());  // it went on
    return graph;
  });
  FailEachCall({"cuStreamGetCaptureInfo", "cuCtxPushCurrent", "cuMemAllocAsync", "cuMemFreeAsync"},
               [&] {
                 Held held;
                 absl::StatusOr<CaptureScope> capture = CaptureScope::Begin(counter.stream());
                 if (!(held.status = capture.status()).ok()) return held;
                 held.capture = *std::move(capture);
                 const absl::StatusOr<DeviceView<int>> view = held.capture.Allocate<int>(8);
                 held.status = view.ok() ? held.capture.Free(*view) : view.status();
                 return held;
               });
}

// Nobody is told, and the stream can be used again all the same.
BOOST_AUTO_TEST_CASE(a_scope_that_cannot_ask_ends_its_capture, *OnlySim()) {
  Counter counter;
  const Undisturbed undisturbed;
  {
    const CaptureScope capture = Begin(counter.stream());
    Sim::FailCall("cuStreamGetCaptureInfo", 1, CUDA_ERROR_OPERATING_SYSTEM);
  }
  Sim::ClearFaults();
  BOOST_TEST((CaptureOf(counter.stream().get()) == CU_STREAM_CAPTURE_STATUS_NONE));
}

BOOST_AUTO_TEST_SUITE_END()
