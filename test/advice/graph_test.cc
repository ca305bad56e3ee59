// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts of captures and of graphs advise is done.

#include <thread>

#include "cuguest/capture.h"
#include "test/objects/graph/graphs.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(graph)

namespace {

using namespace cuguest_graphs;
using cuguest::CaptureModeGuard;
using cuguest::Event;
using cuguest::Stream;

CaptureScope BeginCapture(const StreamRef& stream,
                          CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
  return CaptureScope::Begin(stream, mode).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(memory_before_a_capture_or_relaxed) {
  Counter counter;
  CUdeviceptr memory = 0;
  const auto allocate = [&] {
    counter.owner().Enter();
    const CUresult code = RAW(cuMemAlloc)(&memory, 64);
    if (code == CUDA_SUCCESS) OK(RAW(cuMemFree)(memory));
    SetStack({});
    return code;
  };
  {
    CaptureScope capture = BeginCapture(counter.stream());
    BOOST_TEST((allocate() != CUDA_SUCCESS));
    REFUSES(capture.End().status(), kFailedPrecondition,
            Advised("make what the work needs (memory, handles, modules) before the capture, or in "
                    "a CaptureModeGuard"));
  }
  for (const bool is_before : {true, false}) {
    if (is_before) OK(allocate());
    CaptureScope capture = BeginCapture(counter.stream());
    if (!is_before) {
      const CaptureModeGuard relaxed(CU_STREAM_CAPTURE_MODE_RELAXED);
      OK(allocate());
    }
    SUCCEEDS(counter.CountUp());
    ExecutableGraph ready = capture.End().value().Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

BOOST_AUTO_TEST_CASE(joined_stream_is_waited_for) {
  Counter counter;
  const Stream second = Stream::Create(counter.ref()).value();
  Event forked = Event::Create(counter.ref()).value();
  Event joined = Event::Create(counter.ref()).value();
  for (const bool joins : {false, true}) {
    CaptureScope capture = BeginCapture(counter.stream());
    SUCCEEDS(forked.Record(counter.stream()));
    SUCCEEDS(second.ref().WaitFor(forked));
    SUCCEEDS(counter.CountUp(counter.shape(), second.ref()));
    if (!joins) {
      REFUSES(capture.End().status(), kFailedPrecondition,
              Advised("record an event behind its work, and let this stream wait for that before "
                      "the end"));
      continue;
    }
    SUCCEEDS(joined.Record(second.ref()));
    SUCCEEDS(counter.stream().WaitFor(joined));
    ExecutableGraph ready = capture.End().value().Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

BOOST_AUTO_TEST_CASE(captures_in_a_created_stream) {
  Counter counter;
  const StreamRef legacy = StreamRef::Borrow(CU_STREAM_LEGACY, counter.ref());
  REFUSES(CaptureScope::Begin(legacy).status(), kInvalidArgument,
          Advised("capture in a stream that was created, as by Stream::Create(); the graph can be "
                  "launched in any"));
  const Stream created = Stream::Create(counter.ref()).value();
  CaptureScope capture = BeginCapture(created.ref());
  SUCCEEDS(counter.CountUp(counter.shape(), created.ref()));
  ExecutableGraph ready = capture.End().value().Instantiate().value();
  for (const CUstream any : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, created.get()}) {
    const StreamRef stream = StreamRef::Borrow(any, counter.ref());
    SUCCEEDS(ready.Launch(stream));
    SUCCEEDS(stream.Synchronize());
    BOOST_TEST(counter.Took());
  }
}

BOOST_AUTO_TEST_CASE(capture_that_another_thread_ends) {
  Counter counter;
  CaptureScope here = BeginCapture(counter.stream());
  SUCCEEDS(counter.CountUp());
  std::thread([&] {
    REFUSES(here.End().status(), kFailedPrecondition,
            Advised("end the capture there, or begin it in mode RELAXED"));
  }).join();
  SUCCEEDS(here.End().status());
  CaptureScope relaxed = BeginCapture(counter.stream(), CU_STREAM_CAPTURE_MODE_RELAXED);
  SUCCEEDS(counter.CountUp());
  std::thread([&] { SUCCEEDS(relaxed.End().status()); }).join();
}

BOOST_AUTO_TEST_CASE(graph_is_instantiated_anew, *NeedsDriver(12000, "cuGraphExecUpdate_v2")) {
  Counter counter;
  const auto captured = [&](int launches) {
    CaptureScope capture = BeginCapture(counter.stream());
    for (int i = 0; i < launches; ++i) SUCCEEDS(counter.CountUp());
    return capture.End().value();
  };
  const Graph once = captured(1);
  const Graph twice = captured(2);
  ExecutableGraph ready = once.Instantiate().value();
  CUgraphExecUpdateResultInfo info = {};
  const CUresult code = RAW(cuGraphExecUpdate)(ready.get(), twice.get(), &info);
  REFUSES(cuguest::ToStatus(code, "update a graph"), kFailedPrecondition,
          Advised("the graph cannot be updated in place: instantiate it anew"));
  ready = twice.Instantiate().value();
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took(2));
}

BOOST_AUTO_TEST_CASE(launch_frees_what_one_left, *NeedsDriver(11040, "memory of graphs")) {
  Counter counter;
  CaptureScope capture = BeginCapture(counter.stream());
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAllocAsync)(&memory, 64, counter.stream().get()));
  Graph graph = capture.End().value();
  {
    ExecutableGraph ready = graph.Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    REFUSES(ready.Launch(counter.stream()), kInvalidArgument,
            Advised("see CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH"));
    OK(RAW(cuMemFreeAsync)(memory, counter.stream().get()));
    SUCCEEDS(counter.stream().Synchronize());
  }
  ExecutableGraph ready =
      graph.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH).value();
  for (int i = 0; i < 2; ++i) SUCCEEDS(ready.Launch(counter.stream()));
  OK(RAW(cuMemFreeAsync)(memory, counter.stream().get()));
  SUCCEEDS(counter.stream().Synchronize());
}

BOOST_AUTO_TEST_SUITE_END()
