// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of kernels, and what is launched of them.

#include "cuguest/objects/graph.h"

#include <optional>
#include <vector>

#include "cuguest/green_context.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "test/objects/graph/graphs.h"
#include "test/objects/stream/streams.h"

BOOST_AUTO_TEST_SUITE(graph)

namespace {

using namespace cuguest_graphs;

constexpr char kNodes[] = "cuGraphAddKernelNode with a context";
using Nodes = std::vector<CUgraphNode>;

// A graph that counts up `times` times, one after the other.
struct CountingGraph {
  explicit CountingGraph(Counter& of, int times = 1)
      : counter(of), graph(Graph::Create(of.ref()).value()) {
    for (int i = 0; i < times; ++i) {
      Nodes after;
      if (i > 0) after.push_back(node);
      node = Add(after).value();
    }
  }
  absl::StatusOr<CUgraphNode> Add(const Nodes& after = {}, unsigned value = kValue) {
    return graph.AddKernel(counter.kernel(), counter.shape(), after, kCount, value,
                           counter.memory());
  }
  Counter& counter;
  Graph graph;
  CUgraphNode node = nullptr;
};

absl::Status SetCount(const CountingGraph& from, ExecutableGraph* graph, unsigned value,
                      const LaunchShape& shape = Counter::shape()) {
  return graph->SetKernel(from.node, from.counter.kernel(), shape, kCount, value,
                          from.counter.memory());
}

}  // namespace

BOOST_AUTO_TEST_CASE(kernels_run_at_each_launch, *NeedsDriver(12000, kNodes)) {
  Counter counter;
  const Owner other;
  for (const Stack& stack : {Stack{}, Stack{counter.ref().get()}, Stack{other.get()}}) {
    SetStack(stack);
    {
      const Undisturbed undisturbed;
      CountingGraph counting(counter, 3);
      ExecutableGraph ready = counting.graph.Instantiate().value();
      BOOST_TEST(counter.Took(0));
      SUCCEEDS(ready.Launch(counter.stream()));
      SUCCEEDS(ready.Launch(counter.stream()));
      BOOST_TEST(counter.Took(6));
    }
    SetStack({});
  }
}

BOOST_AUTO_TEST_CASE(a_buffer_is_a_parameter, *NeedsDriver(12000, kNodes)) {
  Counter counter;
  Graph graph = Graph::Create(counter.ref()).value();
  const auto node =
      graph.AddKernel(counter.kernel(), counter.shape(), {}, kCount, kValue, counter.buffer());
  SUCCEEDS(node.status());
  ExecutableGraph ready = graph.Instantiate().value();
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
  SUCCEEDS(ready.SetKernel(*node, counter.kernel(), counter.shape(), kCount, 2 * kValue,
                           counter.buffer().view()));
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took(2));
}

BOOST_AUTO_TEST_CASE(a_buffer_of_another_device_is_refused,
                     *cuguest_test::NeedsDevices(2) * NeedsDriver(12000, kNodes)) {
  Counter counter;
  const Owner far(1);
  const auto buffer = cuguest::DeviceBuffer<unsigned>::Allocate(far.ref(), kCount).value();
  Graph graph = Graph::Create(counter.ref()).value();
  REFUSES(graph.AddKernel(counter.kernel(), counter.shape(), {}, kCount, kValue, buffer).status(),
          kInvalidArgument, "parameter 3 of 3 is device memory of device 1");
}

BOOST_AUTO_TEST_CASE(packed_parameters_are_copied, *NeedsDriver(12000, kNodes)) {
  Counter counter;
  Graph graph = Graph::Create(counter.ref()).value();
  ParamBuffer params = Packed(kCount, kValue, counter.memory());
  const auto node = graph.AddKernel(counter.kernel(), counter.shape(), {}, params);
  SUCCEEDS(node.status());
  SUCCEEDS(graph.AddKernel(counter.Get("nothing"), {}, {}, ParamBuffer()).status());
  SUCCEEDS(graph.AddKernel(counter.Get("nothing"), {}, {}).status());
  ExecutableGraph ready = graph.Instantiate().value();
  ExecutableGraph changed = graph.Instantiate().value();
  SUCCEEDS(changed.SetKernel(*node, counter.kernel(), counter.shape(), params));
  params.Clear();
  SUCCEEDS(params.Add(0U));  // where kCount was
  SUCCEEDS(ready.Launch(counter.stream()));
  SUCCEEDS(changed.Launch(counter.stream()));
  BOOST_TEST(counter.Took(2));
}

BOOST_AUTO_TEST_CASE(a_graph_runs_in_any_stream, *NeedsDriver(12000, kNodes)) {
  Counter counter;
  const Owner other;
  CountingGraph counting(counter);
  ExecutableGraph ready = counting.graph.Instantiate().value();
  const StreamRef streams[] = {StreamRef::Borrow(other.stream(), other.ref()),
                               StreamRef::Borrow(CU_STREAM_LEGACY, other.ref()),
                               StreamRef::Borrow(CU_STREAM_PER_THREAD, counter.ref())};
  for (const StreamRef& stream : streams) {
    const Undisturbed undisturbed;
    SUCCEEDS(ready.Launch(stream));
    SUCCEEDS(stream.Synchronize());
    BOOST_TEST(counter.Took());
  }
}

// It is the variable of that context that the kernel sets.
BOOST_AUTO_TEST_CASE(a_kernel_runs_in_the_context_of_its_graph, *NeedsDriver(12000, kNodes)) {
  Bench<unsigned> here(1);
  Bench<unsigned> elsewhere(1);
  const Module module = LoadLaunchKernels(here.ref());
  const Kernel set = module.GetKernel("set_mark").value();
  const Kernel get = module.GetKernel("get_mark").value();
  for (Bench<unsigned>* bench : {&here, &elsewhere}) {
    SUCCEEDS(Launch(set, {}, bench->stream(), 1U));
    SUCCEEDS(bench->stream().Synchronize());
  }
  Graph graph = Graph::Create(here.ref()).value();
  SUCCEEDS(graph.AddKernel(set, {}, {}, 5U).status());
  elsewhere.owner().Enter();
  ExecutableGraph ready = graph.Instantiate().value();
  SetStack({});
  SUCCEEDS(ready.Launch(elsewhere.stream()));
  SUCCEEDS(elsewhere.stream().Synchronize());
  for (Bench<unsigned>* bench : {&here, &elsewhere}) {
    SUCCEEDS(Launch(get, {}, bench->stream(), bench->memory()));
    BOOST_TEST(bench->Take()[0] == (bench == &here ? 5U : 1U));
  }
}

// With the same code and words, and nothing is added.
BOOST_AUTO_TEST_CASE(what_a_launch_refuses_no_node_takes,
                     *NeedsDriver(12040, "cuFuncGetParamInfo")) {
  Counter counter;
  CountingGraph counting(counter);
  ExecutableGraph ready = counting.graph.Instantiate().value();
  const auto check = [&](const Kernel& kernel, const LaunchShape& shape, const auto&... params) {
    const absl::Status launched = Launch(kernel, shape, counter.stream(), params...);
    const absl::Status added = counting.graph.AddKernel(kernel, shape, {}, params...).status();
    BOOST_TEST(!launched.ok());
    BOOST_TEST((added == launched), added.ToString() << " and not " << launched.ToString());
    if (shape.cluster.has_value()) return;
    const absl::Status set = ready.SetKernel(counting.node, kernel, shape, params...);
    BOOST_TEST((set == launched), set.ToString() << " and not " << launched.ToString());
  };
  const auto memory = counter.memory();
  const Kernel& kernel = counter.kernel();
  check(Kernel(), {}, kCount, kValue, memory);
  check(kernel, {0, 32}, kCount, kValue, memory);
  check(kernel, {1, 4096}, kCount, kValue, memory);
  check(kernel, {1, 32, 1 << 20}, kCount, kValue, memory);
  check(kernel, {1, 32}, kCount, kValue);
  check(kernel, {1, 32}, kCount, 1.0, memory);
  check(kernel, {1, 32}, Packed(kCount));
  LaunchShape odd(3, 32);
  odd.cluster = LaunchShape::Dim3(2);
  check(kernel, odd, kCount, kValue, memory);
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
  ready = counting.graph.Instantiate().value();
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(bad_dependencies, *NeedsDriver(12000, kNodes)) {
  Counter counter;
  CountingGraph counting(counter);
  CountingGraph other(counter);
  REFUSES(counting.Add({counting.node, counting.node}).status(), kInvalidArgument, "\"count_up\"",
          "after 2 others");
  REFUSES(counting.Add({other.node}).status(), kInvalidArgument, "of this graph");
  ExecutableGraph ready = counting.graph.Instantiate().value();
  REFUSES(SetCount(other, &ready, 1), kInvalidArgument, "\"count_up\"", "kernel node of what");
}

BOOST_AUTO_TEST_CASE(set_kernel_changes_what_was_instantiated, *NeedsDriver(12000, kNodes)) {
  Counter counter;
  CountingGraph counting(counter);
  ExecutableGraph ready = counting.graph.Instantiate().value();
  ExecutableGraph kept = counting.graph.Instantiate().value();
  const Undisturbed undisturbed;
  SUCCEEDS(SetCount(counting, &ready, 5 * kValue));
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took(5));
  SUCCEEDS(kept.Launch(counter.stream()));
  BOOST_TEST(counter.Took(1));
  LaunchShape cooperative = counter.shape();
  cooperative.cooperative = true;
  REFUSES(SetCount(counting, &ready, 1, cooperative), kInvalidArgument,
          "as they were in the graph");
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took(5));
}

BOOST_AUTO_TEST_CASE(a_node_has_the_attributes_of_its_shape, *NeedsDriver(12000, kNodes)) {
  Bench<unsigned> bench(10);
  const Module module = LoadLaunchKernels(bench.ref());
  const Kernel get_shape = module.GetKernel("get_shape").value();
  Graph graph = Graph::Create(bench.ref()).value();
  LaunchShape shape(4, 32);
  shape.cluster = LaunchShape::Dim3(2);
  shape.cooperative = true;
  SUCCEEDS(graph.AddKernel(get_shape, shape, {}, bench.memory()).status());
  CUlaunchAttribute of_streams = {};
  of_streams.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
  LaunchShape bad(4, 32);
  bad.attributes = HostSpan<const CUlaunchAttribute>(&of_streams, 1);
  REFUSES(graph.AddKernel(get_shape, bad, {}, bench.memory()).status(), kInvalidArgument,
          "\"get_shape\"", "attribute 3 of its node");
  std::size_t count = 0;
  OK(RAW(cuGraphGetNodes)(graph.get(), nullptr, &count));
  BOOST_TEST(count == 1u);
  ExecutableGraph ready = graph.Instantiate().value();
  SUCCEEDS(ready.Launch(bench.stream()));
  BOOST_TEST(bench.Take() == std::vector<unsigned>({4, 1, 1, 32, 1, 1, 2, 1, 1, 0}));
}

// It has a part of the multiprocessors, and so of the blocks that run at once.
BOOST_AUTO_TEST_CASE(kernels_run_in_a_green_context, *cuguest_streams::NeedsGreenContexts()) {
  Bench<unsigned> bench(10);
  const cuguest::GreenContext green =
      cuguest::GreenContext::Create(cuguest::Device::Borrow(0), cuguest::SmCount(8)).value();
  const ContextRef& ref = green.context();
  const Module module = LoadLaunchKernels(ref);
  const Kernel get_shape = module.GetKernel("get_shape").value();
  Graph graph = Graph::Create(ref).value();
  LaunchShape shape(2, 32);
  shape.cooperative = true;
  SUCCEEDS(graph.AddKernel(get_shape, shape, {}, bench.memory()).status());
  shape.grid.x = 1U << 16;
  REFUSES(graph.AddKernel(get_shape, shape, {}, bench.memory()).status(), kResourceExhausted,
          "multiprocessors");
  ExecutableGraph ready = graph.Instantiate().value();
  SUCCEEDS(ready.Launch(bench.stream()));
  BOOST_TEST(bench.Take()[0] == 2u);
}

BOOST_AUTO_TEST_CASE(a_context_of_the_graph_is_over) {
  Counter counter;
  const auto captured = [&](const StreamRef& stream) {
    CaptureScope capture = CaptureScope::Begin(stream).value();
    return capture.End().value();
  };
  for (const bool is_further : {false, true}) {
    OwnContext context;
    SetStack({context.get()});
    CUstream stream = nullptr;
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    SetStack({});
    const ContextRef ref = ContextRef::Borrow(context.get());
    Graph graph = captured(is_further ? counter.stream() : StreamRef::Borrow(stream, ref));
    if (is_further) SUCCEEDS(graph.AddContext(ref));
    ExecutableGraph ready = graph.Instantiate().value();
    ExecutableGraph unreleased = graph.Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    SUCCEEDS(counter.stream().Synchronize());
    Destroy(context.release());
    REFUSES(graph.Instantiate().status(), kFailedPrecondition, "instantiate a graph",
            "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    REFUSES(ready.Launch(counter.stream()), kFailedPrecondition, "launch a graph",
            "which nodes of the graph run in");
    if (HasDriver(12000) && !is_further) {
      REFUSES(graph.AddKernel(counter.kernel(), {}, {}, 1U, 1U, counter.memory()).status(),
              kFailedPrecondition, "\"count_up\"");
    }
    REFUSES(ready.Release(), kFailedPrecondition, "which was let go");
    BOOST_TEST((ready.get() == nullptr));
    REFUSES(graph.Release(), kFailedPrecondition, "which was let go");
    BOOST_TEST((graph.context() == ContextRef()));
    BOOST_TEST((graph.get() == nullptr));
  }
}

// As by a library that names the context with each piece of work that it adds.
BOOST_AUTO_TEST_CASE(a_context_is_named_often) {
  Counter counter;
  const Owner other;
  const Undisturbed undisturbed;
  Graph graph = Graph::Create(counter.ref()).value();
  const auto name = [&](int times) {
    bool all = true;
    for (int i = 0; i < times; ++i) {
      all = graph.AddContext(other.ref()).ok() && graph.AddContext(counter.ref()).ok() && all;
    }
    return all;
  };
  BOOST_TEST(name(100000));
  Sim::ResetCalls();
  SUCCEEDS(graph.Release());
  if (Sim::IsActive()) BOOST_TEST(Sim::Calls("cuCtxGetId") == 2U);
}

BOOST_AUTO_TEST_CASE(no_launch_invalidates_a_capture) {
  Counter counter;
  Graph graph = Graph::Create(counter.ref()).value();
  ExecutableGraph ready = graph.Instantiate().value();
  const Owner other;
  {
    const Capture capture(other.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    REFUSES(ready.Launch(StreamRef::Borrow(other.stream(), other.ref())), kFailedPrecondition,
            "launch a graph", "which captures");
  }
  counter.owner().Enter();
  cuguest::Stream blocking = cuguest::Stream::Create(counter.ref(), CU_STREAM_DEFAULT).value();
  SetStack({});
  {
    const Capture capture(blocking.get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    REFUSES(ready.Launch(StreamRef::Borrow(CU_STREAM_LEGACY, counter.ref())), kFailedPrecondition,
            "CU_STREAM_NON_BLOCKING");
    SUCCEEDS(ready.Launch(counter.stream()));
  }
}

BOOST_AUTO_TEST_CASE(everything_while_somebody_captures) {
  Counter counter;
  const Owner other;
  const Capture capture(other.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  const auto work = [&] {
    Graph graph = Graph::Create(counter.ref()).value();
    if (HasDriver(12000)) {
      SUCCEEDS(
          graph.AddKernel(counter.kernel(), counter.shape(), {}, kCount, kValue, counter.memory())
              .status());
    }
    ExecutableGraph ready = graph.Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    SUCCEEDS(graph.Release());
    SUCCEEDS(ready.Release());
  };
  work();
  std::thread(work).join();
}

BOOST_AUTO_TEST_CASE(from_a_stream_callback) {
  Counter counter;
  Graph graph = Graph::Create(counter.ref()).value();
  ExecutableGraph ready = graph.Instantiate().value();
  const CUstream stream = counter.stream().get();
  const auto denied = [&](const std::function<absl::Status()>& call) {
    REFUSES(InCallback(stream, call), kPermissionDenied, "graph");
  };
  denied([&] { return Graph::Create(counter.ref()).status(); });
  denied([&] { return graph.Instantiate().status(); });
  denied([&] { return ready.Launch(counter.stream()); });
  denied([&] { return graph.Release(); });
  denied([&] { return ready.Release(); });
  SUCCEEDS(ready.Release());
  SUCCEEDS(graph.Release());
}

BOOST_AUTO_TEST_CASE(empty_objects) {
  Counter counter;
  Graph graph;
  ExecutableGraph ready;
  BOOST_TEST((graph.context().get() == nullptr));
  SUCCEEDS(graph.Release());
  SUCCEEDS(ready.Release());
  REFUSES(graph.Instantiate().status(), kInvalidArgument, "empty");
  REFUSES(graph.AddContext(counter.ref()), kInvalidArgument, "empty");
  REFUSES(ready.Launch(counter.stream()), kInvalidArgument, "empty");
  REFUSES(graph.AddKernel(counter.kernel(), {}, {}).status(), kInvalidArgument, "empty");
  REFUSES(ready.SetKernel(nullptr, counter.kernel(), {}), kInvalidArgument, "empty");
  REFUSES(Graph::Create(ContextRef()).status(), kInvalidArgument, "ContextRef is empty");
  REFUSES(Graph::Adopt(nullptr, counter.ref()).status(), kInvalidArgument, "null");
  Graph made = Graph::Create(counter.ref()).value();
  REFUSES(Graph::Adopt(made.get(), ContextRef()).status(), kInvalidArgument, "ContextRef is empty");
  REFUSES(made.AddContext(ContextRef()), kInvalidArgument, "ContextRef is empty");
  REFUSES(made.Instantiate(0x100).status(), kInvalidArgument, "flags 0x100");
  ready = made.Instantiate().value();
  REFUSES(ready.Launch(StreamRef()), kInvalidArgument, "an empty stream");
}

BOOST_AUTO_TEST_CASE(ownership_moves, *OnlySim()) {
  Counter counter;
  const Undisturbed undisturbed;
  Graph graph = Graph::Create(counter.ref()).value();
  const CUgraph handle = graph.get();
  Graph moved = std::move(graph);
  BOOST_TEST((moved.get() == handle));
  Graph assigned = Graph::Create(counter.ref()).value();
  assigned = std::move(moved);
  BOOST_TEST((assigned.get() == handle));
  BOOST_TEST((assigned.context() == counter.ref()));
  moved = std::move(assigned);
  Graph adopted = Graph::Adopt(moved.Leak(), counter.ref()).value();
  BOOST_TEST((adopted.context() == counter.ref()));
  BOOST_TEST((moved.context() == ContextRef()));  // of nothing
  Graph released = Graph::Create(counter.ref()).value();
  SUCCEEDS(released.Release());
  BOOST_TEST((released.context() == ContextRef()));
  ExecutableGraph ready = adopted.Instantiate().value();
  ExecutableGraph taken = std::move(ready);
  ready = adopted.Instantiate().value();
  ready = std::move(taken);
  SUCCEEDS(ready.Launch(counter.stream()));
  OK(RAW(cuGraphExecDestroy)(ready.Leak()));
}

template <typename T>
T Value(absl::StatusOr<T> made) {
  return std::move(made).value();
}
template <typename T>
T Value(T made) {
  return made;
}

// Every owner: ended in each of its ways, or moved from, it names no context.
template <typename Make, typename Context, typename... Ends>
void CheckNamesNothing(const char* name, const Make& make, const Context& context,
                       const Ends&... ends) {
  BOOST_TEST_CONTEXT(name) {
    const auto check = [&](const auto& end) {
      auto owned = Value(make());
      BOOST_TEST((context(owned) != ContextRef()));
      end(owned);
      BOOST_TEST((context(owned) == ContextRef()));
    };
    (check(ends), ...);
    auto from = Value(make());
    const auto to = std::move(from);
    BOOST_TEST((context(from) == ContextRef()));
  }
}

BOOST_AUTO_TEST_CASE(what_owns_nothing_names_no_context) {
  using cuguest::Array;
  using cuguest::Event;
  using cuguest::PrimaryContext;
  using cuguest::SharedContext;
  using cuguest::Stream;
  using Buffer = cuguest::DeviceBuffer<int>;
  using Pinned = cuguest::PinnedBuffer<int>;
  const Owner owner;
  owner.Enter();
  const ContextRef in = owner.ref();
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = shape.NumChannels = 1;
  shape.Format = CU_AD_FORMAT_FLOAT;
  const auto context = [](const auto& owned) { return owned.context(); };
  const auto incarnation = [](const auto& owned) { return owned.context(); };
  CheckNamesNothing(
      "Graph", [&] { return Graph::Create(in); }, context,
      [](Graph& graph) { SUCCEEDS(graph.Release()); },
      [](Graph& graph) { OK(RAW(cuGraphDestroy)(graph.Leak())); });
  CheckNamesNothing(
      "Stream", [&] { return Stream::Create(in); }, context,
      [](Stream& stream) { SUCCEEDS(stream.Release()); },
      [](Stream& stream) { OK(RAW(cuStreamDestroy)(stream.Leak())); });
  CheckNamesNothing(
      "Event", [&] { return Event::Create(in); }, context,
      [](Event& event) { SUCCEEDS(event.Release()); },
      [](Event& event) { OK(RAW(cuEventDestroy)(event.Leak())); });
  CheckNamesNothing(
      "DeviceBuffer", [&] { return Buffer::Allocate(in, 1); }, context,
      [](Buffer& buffer) { SUCCEEDS(buffer.Release()); },
      [](Buffer& buffer) { OK(RAW(cuMemFree)(buffer.Leak().get())); });
  CheckNamesNothing(
      "PinnedBuffer", [&] { return Pinned::Allocate(in, 1); }, context,
      [](Pinned& buffer) { SUCCEEDS(buffer.Release()); },
      [](Pinned& buffer) { OK(RAW(cuMemFreeHost)(buffer.Leak().data())); });
  CheckNamesNothing(
      "Array", [&] { return Array::Create(in, shape); }, context,
      [](Array& array) { SUCCEEDS(array.Release()); },
      [](Array& array) { OK(RAW(cuArrayDestroy)(array.Leak())); });
  CheckNamesNothing(
      "PrimaryContext", [] { return PrimaryContext::Retain(cuguest::Device::Borrow(0)); },
      incarnation, [](PrimaryContext& primary) { SUCCEEDS(ToStatus(primary.Release())); },
      [](PrimaryContext& primary) {
        static_cast<void>(primary.Leak());
        OK(RAW(cuDevicePrimaryCtxRelease)(0));
      });
  CheckNamesNothing(
      "SharedContext", [&] { return SharedContext::Attach(in); }, incarnation,
      [](SharedContext& shared) { SUCCEEDS(ToStatus(shared.Release())); });
  if (HasDriver(12040)) {
    CheckNamesNothing(
        "GreenContext",
        [] {
          return cuguest::GreenContext::Create(cuguest::Device::Borrow(0), cuguest::SmCount{8});
        },
        incarnation, [](cuguest::GreenContext& green) { SUCCEEDS(green.Release()); });
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(memory_that_a_launch_left_is_freed_before_the_next,
                     *NeedsDriver(11040, "memory of graphs")) {
  const Owner owner;
  CUgraph captured = nullptr;
  CUdeviceptr memory = 0;
  SetStack({owner.get()});
  OK(RAW(cuStreamBeginCapture)(owner.stream(), CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(RAW(cuMemAllocAsync)(&memory, 64, owner.stream()));
  OK(RAW(cuStreamEndCapture)(owner.stream(), &captured));
  SetStack({});
  const StreamRef stream = StreamRef::Borrow(owner.stream(), owner.ref());
  Graph graph = Graph::Adopt(captured, owner.ref()).value();
  ExecutableGraph ready = graph.Instantiate().value();
  for (int i = 0; i < 2; ++i) {
    SUCCEEDS(ready.Launch(stream));
    REFUSES(ready.Launch(stream), kInvalidArgument, "FLAG_AUTO_FREE_ON_LAUNCH");
    OK(RAW(cuMemFreeAsync)(memory, stream.get()));
  }
  SUCCEEDS(stream.Synchronize());
}

// The header's `Cost:`.
BOOST_AUTO_TEST_CASE(driver_calls, *NeedsDriver(12000, kNodes) * OnlySim()) {
  Counter counter;
  const Owner other;
  CountingGraph counting(counter);
  ExecutableGraph ready = counting.graph.Instantiate().value();
  const StreamRef elsewhere = StreamRef::Borrow(other.stream(), other.ref());
  const auto calls = [](const auto& work) {
    cuguest_test::BeginCount();
    work();
    return Sim::TotalCalls();
  };
  std::optional<Graph> graph;
  std::optional<ExecutableGraph> made;
  BOOST_TEST(calls([&] { graph = Graph::Create(counter.ref()).value(); }) == 2u);
  BOOST_TEST(calls([&] { SUCCEEDS(counting.Add().status()); }) == 8u);
  BOOST_TEST(calls([&] { made = graph->Instantiate().value(); }) == 8u);
  BOOST_TEST(calls([&] { SUCCEEDS(SetCount(counting, &ready, 1)); }) == 8u);
  BOOST_TEST(calls([&] { SUCCEEDS(made->Launch(counter.stream())); }) == 3u);
  BOOST_TEST(calls([&] { SUCCEEDS(made->Launch(elsewhere)); }) == 4u);
  BOOST_TEST(calls([&] { SUCCEEDS(made->Release()); }) == 4u);
  BOOST_TEST(calls([&] { SUCCEEDS(graph->Release()); }) == 2u);
  SetStack({counter.ref().get()});
  BOOST_TEST(calls([&] { SUCCEEDS(counting.Add().status()); }) == 6u);
  BOOST_TEST(calls([&] { made = counting.graph.Instantiate().value(); }) == 6u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *OnlySim()) {
  Counter counter;
  FailEachCall({"cuCtxGetId", "cuGraphCreate"}, [&] { return Graph::Create(counter.ref()); });
  Graph empty = Graph::Create(counter.ref()).value();
  FailEachCall({"cuCtxGetCurrent", "cuCtxPushCurrent", "cuGraphInstantiateWithFlags"},
               [&] { return empty.Instantiate(); });
  ExecutableGraph ready = empty.Instantiate().value();
  FailEachCall({"cuCtxGetId", "cuStreamGetCaptureInfo", "cuGraphLaunch"},
               [&] { return ready.Launch(counter.stream()); });
  if (!HasDriver(12000)) return;
  CountingGraph counting(counter);
  LaunchShape shape = counter.shape();
  shape.cooperative = true;
  FailEachCall({"cuCtxPushCurrent", "cuGraphAddKernelNode", "cuGraphKernelNodeSetAttribute"}, [&] {
    Graph graph = Graph::Create(counter.ref()).value();
    const absl::Status added =
        graph.AddKernel(counter.kernel(), shape, {}, kCount, kValue, counter.memory()).status();
    std::size_t nodes = 0;
    OK(RAW(cuGraphGetNodes)(graph.get(), nullptr, &nodes));
    BOOST_TEST(nodes == (added.ok() ? 1u : 0u));
    return added;
  });
  ready = counting.graph.Instantiate().value();
  FailEachCall({"cuCtxPushCurrent", "cuGraphExecKernelNodeSetParams"},
               [&] { return SetCount(counting, &ready, 1); });
}

BOOST_AUTO_TEST_CASE(what_could_not_be_destroyed_is_still_owned, *OnlySim()) {
  Counter counter;
  const Undisturbed undisturbed;
  Graph graph = Graph::Create(counter.ref()).value();
  ExecutableGraph ready = graph.Instantiate().value();
  Sim::FailCall("cuGraphExecDestroy", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST((cuguest::CodeOf(ready.Release()) == CUDA_ERROR_OPERATING_SYSTEM));
  Sim::FailCall("cuGraphDestroy", 1, CUDA_ERROR_OPERATING_SYSTEM);
  BOOST_TEST((cuguest::CodeOf(graph.Release()) == CUDA_ERROR_OPERATING_SYSTEM));
  Sim::ClearFaults();
  BOOST_TEST((graph.get() != nullptr && ready.get() != nullptr));
}

BOOST_AUTO_TEST_CASE(older_drivers_capture_instead, *NeedsDriverBefore(12000, kNodes)) {
  Counter counter;
  Graph graph = Graph::Create(counter.ref()).value();
  REFUSES(graph.AddKernel(counter.kernel(), {}, {}, kCount, kValue, counter.memory()).status(),
          kUnimplemented, "cuGraphAddKernelNode", "12.0");
}

BOOST_AUTO_TEST_SUITE_END()
