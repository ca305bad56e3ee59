// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events, captures and graphs: what the runtime does with its own, and with those
// that the driver made in whatever context.

#include "test/runtime_facts.h"

BOOST_AUTO_TEST_SUITE(runtime_stream_facts)

using namespace cudasim_facts;

namespace {

char host[64];

// What the driver makes in one context.
struct Objects {
  explicit Objects(CUcontext in) : context(in) {
    SetStack({context});
    OK(RAW(cuMemAlloc)(&memory, 4096));
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuEventCreate)(&event, CU_EVENT_DEFAULT));
    OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(RAW(cuMemsetD8Async)(memory, 1, 16, stream));
    OK(RAW(cuStreamEndCapture)(stream, &graph));
    OK(RAW(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    SetStack({});
  }
  ~Objects() {
    SetStack({context});
    RT_OK(cudaStreamSynchronize(stream));
    RT_OK(cudaGraphExecDestroy(exec));
    RT_OK(cudaGraphDestroy(graph));
    RT_OK(cudaEventDestroy(event));
    RT_OK(cudaStreamDestroy(stream));
    RT_OK(cudaFree(pointer()));
    SetStack({});
  }
  void* pointer() const { return reinterpret_cast<void*>(memory); }

  CUcontext context;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
};

// `foreign` belongs to another context than the current one, `own` to the current one.
void CheckForeignObjects(const Objects& foreign, const Objects& own) {
  int number = -1;
  unsigned flags = 0;
  unsigned long long id = 0;
  cudaStreamCaptureStatus status;
  void* pointer = nullptr;
  float milliseconds = 0;
  SetStack({own.context});
  RT_OK(cudaStreamSynchronize(foreign.stream));
  RT_OK(cudaStreamQuery(foreign.stream));
  RT_OK(cudaStreamGetFlags(foreign.stream, &flags));
  BOOST_TEST(flags == unsigned{cudaStreamNonBlocking});
  RT_OK(cudaStreamGetPriority(foreign.stream, &number));
  RT_OK(cudaStreamGetId(foreign.stream, &id));
  RT_OK(cudaStreamGetDevice(foreign.stream, &number));
  BOOST_TEST(number == 0);
  RT_OK(cudaStreamIsCapturing(foreign.stream, &status));
  RT_OK(cudaMemsetAsync(foreign.pointer(), 0, 64, foreign.stream));
  RT_OK(cudaMemcpyAsync(host, foreign.pointer(), 64, cudaMemcpyDefault, foreign.stream));
  RT_OK(cudaMemset(foreign.pointer(), 0, 64));
  RT_OK(cudaMallocAsync(&pointer, 64, foreign.stream));
  RT_OK(cudaFreeAsync(pointer, foreign.stream));
  RT_OK(cudaLaunchHostFunc(
      foreign.stream, [](void*) {}, nullptr));
  RT_OK(cudaGraphLaunch(foreign.exec, foreign.stream));
  RT_OK(cudaGraphLaunch(foreign.exec, own.stream));
  RT_OK(cudaGraphLaunch(own.exec, foreign.stream));

  RT_OK(cudaEventRecord(foreign.event, foreign.stream));
  RT_IS(cudaEventRecord(foreign.event, own.stream), InvalidResourceHandle);
  RT_IS(cudaEventRecord(own.event, foreign.stream), InvalidResourceHandle);
  RT_IS(cudaEventRecord(foreign.event, nullptr), InvalidResourceHandle);
  RT_OK(cudaStreamWaitEvent(own.stream, foreign.event, 0));
  RT_OK(cudaStreamWaitEvent(foreign.stream, own.event, 0));
  RT_OK(cudaEventSynchronize(foreign.event));
  RT_OK(cudaEventQuery(foreign.event));
  RT_OK(cudaEventElapsedTime(&milliseconds, foreign.event, foreign.event));
  RT_IS(cudaEventElapsedTime(&milliseconds, own.event, foreign.event), InvalidResourceHandle);

  cudaGraph_t graph = nullptr;
  RT_OK(cudaStreamBeginCapture(foreign.stream, cudaStreamCaptureModeRelaxed));
  RT_OK(cudaMemsetAsync(foreign.pointer(), 0, 64, foreign.stream));
  RT_OK(cudaStreamEndCapture(foreign.stream, &graph));
  RT_OK(cudaGraphDestroy(graph));
  BOOST_CHECK(GetStack() == Entries{own.context});
  cudaGetLastError();
}

// Runs `call` while a stream captures; whether the capture survived it.
template <typename Call>
bool CaptureSurvives(cudaError_t expected, const Call& call) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  RT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  RT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  BOOST_CHECK_EQUAL(call(stream), expected);
  const cudaError_t end = cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) RT_OK(cudaGraphDestroy(graph));
  RT_OK(cudaStreamDestroy(stream));
  cudaGetLastError();
  return end == cudaSuccess;
}

}  // namespace

BOOST_AUTO_TEST_CASE(objects_of_a_user_context_under_the_primary) {
  const Retained retained;
  const OwnContext a;
  CheckForeignObjects(Objects(a.get()), Objects(PrimaryHandle()));
}

BOOST_AUTO_TEST_CASE(objects_of_the_primary_under_a_user_context) {
  const Retained retained;
  const OwnContext a;
  CheckForeignObjects(Objects(PrimaryHandle()), Objects(a.get()));
}

BOOST_AUTO_TEST_CASE(objects_of_a_user_context_under_another) {
  const Unused unused;
  const OwnContext a;
  const OwnContext b;
  CheckForeignObjects(Objects(a.get()), Objects(b.get()));
  BOOST_CHECK(!IsActive(0));
}

// Most calls on a stream bind the primary though the stream has a context; allocation and
// the question for its device do not.
BOOST_AUTO_TEST_CASE(objects_of_a_user_context_with_nothing_current) {
  const Retained retained;
  const OwnContext a;
  const Objects objects(a.get());
  int number = -1;
  void* pointer = nullptr;
  RT_OK(cudaStreamGetDevice(objects.stream, &number));
  RT_OK(cudaMallocAsync(&pointer, 64, objects.stream));
  RT_OK(cudaFreeAsync(pointer, objects.stream));
  RT_IS(cudaEventQuery(nullptr), InvalidResourceHandle);
  RT_OK(cudaEventQuery(objects.event));
  RT_OK(cudaEventSynchronize(objects.event));
  BOOST_CHECK(GetStack().empty());
  RT_OK(cudaStreamSynchronize(objects.stream));
  BOOST_CHECK(GetStack() == Entries{PrimaryHandle()});
}

BOOST_AUTO_TEST_CASE(the_drivers_calls_take_the_runtimes_objects) {
  const Retained retained;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CUcontext context = nullptr;
  RT_OK(cudaStreamCreate(&stream));
  RT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  SetStack({});
  OK(RAW(cuStreamGetCtx)(stream, &context));
  BOOST_CHECK(context == PrimaryHandle());
  OK(RAW(cuEventRecord)(event, stream));
  OK(RAW(cuEventSynchronize)(event));
  OK(RAW(cuEventDestroy)(event));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(a_capture_becomes_a_graph_of_its_calls) {
  const Retained retained;
  cudaStream_t stream = nullptr;
  void* pointer = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  size_t count = 0;
  RT_OK(cudaStreamCreate(&stream));
  RT_OK(cudaMalloc(&pointer, 64));
  RT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  RT_OK(cudaMemsetAsync(pointer, 1, 64, stream));
  RT_OK(cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, &count));
  BOOST_CHECK_EQUAL(status, cudaStreamCaptureStatusActive);
  BOOST_TEST(count == 1u);
  RT_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node = nullptr;
  cudaGraphNodeType type;
  count = 1;
  RT_OK(cudaGraphGetNodes(graph, &node, &count));
  BOOST_TEST(count == 1u);
  RT_OK(cudaGraphNodeGetType(node, &type));
  BOOST_CHECK_EQUAL(type, cudaGraphNodeTypeMemset);
  RT_OK(cudaGraphInstantiate(&exec, graph, 0));
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  unsigned char value = 0;
  RT_OK(cudaMemcpy(&value, pointer, 1, cudaMemcpyDeviceToHost));
  BOOST_TEST(value == 1);
  RT_OK(cudaGraphExecDestroy(exec));
  RT_OK(cudaGraphDestroy(graph));
  RT_OK(cudaFree(pointer));
  RT_OK(cudaStreamDestroy(stream));
}

BOOST_AUTO_TEST_CASE(an_executable_graph_is_updated) {
  const Retained retained;
  void* pointer = nullptr;
  cudaStream_t stream = nullptr;
  RT_OK(cudaMalloc(&pointer, 64));
  RT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto capture = [&](int value, int fills) {
    cudaGraph_t graph = nullptr;
    RT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    while (fills-- > 0) RT_OK(cudaMemsetAsync(pointer, value, 64, stream));
    RT_OK(cudaStreamEndCapture(stream, &graph));
    return graph;
  };
  cudaGraphExec_t exec = nullptr;
  const cudaGraph_t graphs[] = {capture(1, 1), capture(2, 1), capture(3, 2)};
  RT_OK(cudaGraphInstantiate(&exec, graphs[0], 0));
  cudaGraphExecUpdateResultInfo info = {cudaGraphExecUpdateError, nullptr, nullptr};
  RT_OK(cudaGraphExecUpdate(exec, graphs[1], &info));
  BOOST_CHECK_EQUAL(info.result, cudaGraphExecUpdateSuccess);
  RT_IS(cudaGraphExecUpdate(exec, graphs[2], &info), GraphExecUpdateFailure);
  BOOST_CHECK_EQUAL(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  RT_IS(cudaGraphExecUpdate(exec, nullptr, &info), InvalidValue);
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  unsigned char value = 0;
  RT_OK(cudaMemcpy(&value, pointer, 1, cudaMemcpyDeviceToHost));
  BOOST_TEST(value == 2);
  RT_OK(cudaGraphExecDestroy(exec));
  for (const cudaGraph_t graph : graphs) RT_OK(cudaGraphDestroy(graph));
  RT_OK(cudaStreamDestroy(stream));
  RT_OK(cudaFree(pointer));
}

BOOST_AUTO_TEST_CASE(a_capture_survives_questions_and_work) {
  const Retained retained;
  void* pointer = nullptr;
  RT_OK(cudaMalloc(&pointer, 64));
  const auto survives = [](const auto& call) {
    return CaptureSurvives(cudaSuccess, [&](cudaStream_t stream) { return call(stream); });
  };
  int number = 0;
  size_t sizes[2];
  cudaPointerAttributes attributes;
  cudaStreamCaptureStatus status;
  BOOST_TEST(survives([&](cudaStream_t) { return cudaGetDevice(&number); }));
  BOOST_TEST(survives([&](cudaStream_t) { return cudaSetDevice(0); }));
  BOOST_TEST(survives([&](cudaStream_t) { return cudaMemGetInfo(&sizes[0], &sizes[1]); }));
  BOOST_TEST(
      survives([&](cudaStream_t) { return cudaPointerGetAttributes(&attributes, pointer); }));
  BOOST_TEST(survives([&](cudaStream_t stream) { return cudaStreamIsCapturing(stream, &status); }));
  BOOST_TEST(survives([&](cudaStream_t stream) { return cudaStreamGetPriority(stream, &number); }));
  BOOST_TEST(survives([&](cudaStream_t stream) { return cudaMemsetAsync(pointer, 0, 8, stream); }));
  BOOST_TEST(survives([&](cudaStream_t) { return cudaMemset(pointer, 0, 8); }));
  BOOST_TEST(
      survives([&](cudaStream_t) { return cudaMemcpy(host, pointer, 8, cudaMemcpyDeviceToHost); }));
  BOOST_TEST(survives([&](cudaStream_t stream) {
    return cudaLaunchHostFunc(
        stream, [](void*) {}, nullptr);
  }));
  RT_OK(cudaFree(pointer));
}

BOOST_AUTO_TEST_CASE(allocation_and_waiting_invalidate_a_capture) {
  const Retained retained;
  void* pointer = nullptr;
  int number = 0;
  unsigned flags = 0;
  unsigned long long id = 0;
  const auto lost = [](const auto& call) {
    return !CaptureSurvives(cudaErrorStreamCaptureUnsupported,
                            [&](cudaStream_t stream) { return call(stream); });
  };
  BOOST_TEST(lost([&](cudaStream_t) { return cudaMalloc(&pointer, 64); }));
  BOOST_TEST(lost([&](cudaStream_t) { return cudaMallocHost(&pointer, 64); }));
  BOOST_TEST(lost([&](cudaStream_t) { return cudaFree(nullptr); }));
  BOOST_TEST(lost([&](cudaStream_t) { return cudaFreeHost(nullptr); }));
  BOOST_TEST(lost([&](cudaStream_t) { return cudaDeviceSynchronize(); }));
  BOOST_TEST(lost([&](cudaStream_t) { return cudaStreamSynchronize(nullptr); }));
  BOOST_TEST(lost([&](cudaStream_t stream) { return cudaStreamQuery(stream); }));
  BOOST_TEST(lost([&](cudaStream_t stream) { return cudaStreamGetDevice(stream, &number); }));
  BOOST_TEST(lost([&](cudaStream_t stream) { return cudaStreamGetFlags(stream, &flags); }));
  BOOST_TEST(lost([&](cudaStream_t stream) { return cudaStreamGetId(stream, &id); }));
  BOOST_TEST(lost([&](cudaStream_t) { return cudaHostRegister(host, sizeof(host), 0); }));
}

BOOST_AUTO_TEST_CASE(a_callback_gets_its_stream_and_code) {
  const Retained retained;
  struct Seen {
    cudaStream_t stream = nullptr;
    cudaError_t code = cudaErrorUnknown;
  } seen;
  cudaStream_t stream = nullptr;
  RT_OK(cudaStreamCreate(&stream));
  const auto note = [](cudaStream_t on, cudaError_t code, void* data) {
    *static_cast<Seen*>(data) = {on, code};
  };
  RT_OK(cudaStreamAddCallback(stream, note, &seen, 0));
  RT_OK(cudaStreamSynchronize(stream));
  BOOST_CHECK(seen.stream == stream);
  BOOST_CHECK_EQUAL(seen.code, cudaSuccess);
  RT_OK(cudaStreamDestroy(stream));
}

BOOST_AUTO_TEST_CASE(an_event_is_recorded_with_flags) {
  const Unused unused;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  RT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  RT_OK(cudaEventCreate(&event));
  RT_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault));
  RT_OK(cudaEventSynchronize(event));
  cudaGraph_t graph = nullptr;
  RT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  RT_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  RT_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  RT_OK(cudaGraphGetNodes(graph, &node, &count));
  BOOST_TEST(count == 1u);
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  RT_OK(cudaGraphNodeGetType(node, &type));
  BOOST_CHECK_EQUAL(type, cudaGraphNodeTypeEventRecord);
  RT_OK(cudaGraphDestroy(graph));
  RT_OK(cudaEventDestroy(event));
  RT_OK(cudaStreamDestroy(stream));
}

BOOST_AUTO_TEST_SUITE_END()
