// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scratch memory in the order of a stream that somebody handed in, capturing or not.

#include "cuguest/objects/scratch_buffer.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "cuguest/objects/copy.h"
#include "test/objects/graph/graphs.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(scratch_buffer)

namespace {

using namespace cuguest_graphs;
using cuguest::Incident;
using cuguest::ScratchBuffer;
using cuguest::Stream;
using Scratch = ScratchBuffer<unsigned>;

constexpr char kNodes[] = "memory nodes of graphs";
constexpr unsigned kOthers = 77;

Scratch Made(absl::StatusOr<Scratch> scratch) {
  BOOST_TEST_REQUIRE(scratch.ok(), scratch.status().ToString());
  return *std::move(scratch);
}

// What it leaves of kValue in each counter went through `memory`.
template <typename Memory>
absl::Status JobWith(Memory& memory, Counter& counter, const StreamRef& stream) {
  CUGUEST_RETURN_IF_ERROR(cuguest::FillAsync(memory.view(), 1U, stream));
  CUGUEST_RETURN_IF_ERROR(
      Launch(counter.kernel(), counter.shape(), stream, kCount, kValue - 1, memory));
  return cuguest::CopyAsync(counter.buffer().view(), memory.view(), stream);
}

// The job of a library without a state.
absl::Status Job(Counter& counter, const StreamRef& stream) {
  CUGUEST_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Allocate(stream, kCount));
  CUGUEST_RETURN_IF_ERROR(JobWith(scratch, counter, stream));
  return scratch.Release();
}

// What a host does around it.
CUgraph Captured(Counter& counter, const StreamRef& stream,
                 CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  const bool is_named = stream.get() == CU_STREAM_PER_THREAD;
  if (is_named) counter.owner().Enter();
  OK(RAW(cuStreamBeginCapture)(stream.get(), mode));
  if (is_named) SetStack({});
  SUCCEEDS(Job(counter, stream));
  if (is_named) counter.owner().Enter();
  BOOST_TEST(Captures(stream.get()));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(stream.get(), &graph));
  if (is_named) SetStack({});
  BOOST_TEST_REQUIRE(graph != nullptr);
  return graph;
}
Graph CapturedGraph(Counter& counter) {
  return Graph::Adopt(Captured(counter, counter.stream()), counter.ref()).value();
}

using Types = std::vector<CUgraphNodeType>;
CUgraphNodeType TypeOf(CUgraphNode node) {
  auto type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(RAW(cuGraphNodeGetType)(node, &type));
  return type;
}
std::vector<CUgraphNode> NodesOf(CUgraph graph) {
  size_t count = 0;
  OK(RAW(cuGraphGetNodes)(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  OK(RAW(cuGraphGetNodes)(graph, nodes.data(), &count));
  return nodes;
}

size_t MemoryNodes(CUgraph graph) {
  const std::vector<CUgraphNode> nodes = NodesOf(graph);
  return static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [](CUgraphNode node) {
    const CUgraphNodeType type = TypeOf(node);
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  }));
}

// Of what the node that frees memory depends on.
Types TypesBeforeFree(CUgraph graph) {
  Types types;
  for (const CUgraphNode node : NodesOf(graph)) {
    if (TypeOf(node) != CU_GRAPH_NODE_TYPE_MEM_FREE) continue;
    size_t count = 0;
    OK(RAW(cuGraphNodeGetDependencies)(node, nullptr, nullptr, &count));
    std::vector<CUgraphNode> before(count);
    OK(RAW(cuGraphNodeGetDependencies)(node, before.data(), nullptr, &count));
    for (const CUgraphNode each : before) types.push_back(TypeOf(each));
  }
  return types;
}

// What is neither freed nor given up, of the incidents since the last call.
size_t Left() {
  size_t left = 0;
  for (const auto& incident : TakeIncidents()) {
    const bool is_ours =
        incident.kind == Incident::Kind::kOwed && incident.result == CUDA_ERROR_ILLEGAL_STATE;
    BOOST_TEST(is_ours);
    if (is_ours) ++left;
  }
  return left;
}

}  // namespace

BOOST_AUTO_TEST_CASE(job_on_each_stream_outside_captures) {
  Counter counter;
  const OwnContext other;
  const cuguest::Stream blocking = Stream::Create(counter.ref(), CU_STREAM_DEFAULT).value();
  for (const CUstream handle : {counter.stream().get(), blocking.get(), CUstream{nullptr},
                                CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    const StreamRef stream = StreamRef::Borrow(handle, counter.ref());
    for (const Stack& stack : {Stack{}, Stack{counter.ref().get()}, Stack{other.get()}}) {
      SetStack(stack);
      {
        const Undisturbed undisturbed;
        SUCCEEDS(Job(counter, stream));
        SUCCEEDS(stream.Synchronize());
      }
      BOOST_TEST(counter.Took());
      BOOST_TEST(BytesOfPool() == 0U);
      SetStack({});
    }
  }
}

BOOST_AUTO_TEST_CASE(job_in_each_capture, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  const OwnContext other;
  const cuguest::Stream blocking = Stream::Create(counter.ref(), CU_STREAM_DEFAULT).value();
  for (const CUstream handle : {counter.stream().get(), blocking.get(), CU_STREAM_PER_THREAD}) {
    const StreamRef stream = StreamRef::Borrow(handle, counter.ref());
    for (const CUstreamCaptureMode mode : kCaptureModes) {
      for (const Stack& stack : {Stack{}, Stack{counter.ref().get()}, Stack{other.get()}}) {
        if (handle == CU_STREAM_PER_THREAD && !stack.empty()) continue;  // Captured() sets its own
        SetStack(stack);
        {
          const Undisturbed undisturbed;
          Graph graph = Graph::Adopt(Captured(counter, stream, mode), counter.ref()).value();
          BOOST_TEST(MemoryNodes(graph.get()) == 2u);
          ExecutableGraph ready = graph.Instantiate().value();
          SUCCEEDS(graph.Release());
          for (int i = 0; i < 3; ++i) {
            SUCCEEDS(ready.Launch(counter.stream()));
            BOOST_TEST(counter.Took());
          }
        }
        BOOST_TEST((GetStack() == stack));
        BOOST_TEST(BytesOfPool() == 0U);
        SetStack({});
      }
    }
  }
}

// The stream takes part in a capture that another one began, which goes on with its own work: the
// memory is freed behind the work that used it, and not behind the other stream's.
BOOST_AUTO_TEST_CASE(job_in_stream_that_joined_capture, *NeedsDriver(12030, "edges with data")) {
  Counter counter;
  const Stream second = Stream::Create(counter.ref()).value();
  cuguest::Event forked = cuguest::Event::Create(counter.ref()).value();
  cuguest::Event joined = cuguest::Event::Create(counter.ref()).value();
  auto others = DeviceBuffer<unsigned>::Allocate(counter.ref(), kCount).value();
  CaptureScope capture = CaptureScope::Begin(counter.stream()).value();
  SUCCEEDS(forked.Record(counter.stream()));
  SUCCEEDS(second.ref().WaitFor(forked));
  SUCCEEDS(cuguest::FillAsync(others.view(), kOthers, counter.stream()));
  SUCCEEDS(Job(counter, second));
  SUCCEEDS(joined.Record(second));
  SUCCEEDS(counter.stream().WaitFor(joined));
  const Graph graph = capture.End().value();
  BOOST_TEST((TypesBeforeFree(graph.get()) == Types{CU_GRAPH_NODE_TYPE_MEMCPY}));
  ExecutableGraph ready = graph.Instantiate().value();
  for (int i = 0; i < 3; ++i) {
    SUCCEEDS(ready.Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

// As a host of many requests: memory that is allocated after the capture is not written to.
BOOST_AUTO_TEST_CASE(captured_job_writes_no_freed_memory, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  int right = 0;
  for (int run = 0; run < 60; ++run) {
    Graph graph = CapturedGraph(counter);
    auto others = DeviceBuffer<unsigned>::CopyOf(counter.ref(), Counts(kCount, kOthers)).value();
    auto pooled = DeviceBuffer<unsigned>::AllocateAsync(counter.stream(), kCount).value();
    SUCCEEDS(cuguest::FillAsync(pooled.view(), kOthers, counter.stream()));
    ExecutableGraph ready = graph.Instantiate().value();
    SUCCEEDS(ready.Launch(counter.stream()));
    const bool is_right =
        counter.Took() && cuguest::Download(others.view()).value() == Counts(kCount, kOthers);
    Counts of_pool(kCount);
    SUCCEEDS(cuguest::DownloadAsync(pooled.view(), of_pool, counter.stream()));
    SUCCEEDS(counter.stream().Synchronize());
    if (is_right && of_pool == Counts(kCount, kOthers)) ++right;
  }
  BOOST_TEST(right == 60);
}

// What the refusal of AllocateAsync() advises: each of the two does what it says.
BOOST_AUTO_TEST_CASE(advice_in_capture_holds, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  auto kept = DeviceBuffer<unsigned>::AllocateAsync(counter.stream(), kCount).value();
  OK(RAW(cuStreamBeginCapture)(counter.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL));
  REFUSES(DeviceBuffer<unsigned>::AllocateAsync(counter.stream(), kCount).status(),
          kFailedPrecondition,
          Advised("for one call take a ScratchBuffer (scratch_buffer.h), which the graph allocates "
                  "and frees; other memory that the graph uses must outlive it, so allocate that "
                  "before the capture, and keep it with the graph"));
  SUCCEEDS(Job(counter, counter.stream()));
  SUCCEEDS(cuguest::FillAsync(kept.view(), kOthers, counter.stream()));
  REFUSES(kept.Release(), kFailedPrecondition, "when the capture is over");
  CUgraph captured = nullptr;
  OK(RAW(cuStreamEndCapture)(counter.stream().get(), &captured));
  {
    ExecutableGraph ready = Graph::Adopt(captured, counter.ref()).value().Instantiate().value();
    for (int i = 0; i < 3; ++i) {
      SUCCEEDS(ready.Launch(counter.stream()));
      BOOST_TEST(counter.Took());
      Counts values(kCount);
      SUCCEEDS(cuguest::DownloadAsync(kept.view(), values, counter.stream()));
      SUCCEEDS(counter.stream().Synchronize());
      BOOST_TEST((values == Counts(kCount, kOthers)));
    }
  }
  SUCCEEDS(kept.Release());
}

BOOST_AUTO_TEST_CASE(stream_zero_beside_blocking_capture) {
  Counter counter;
  const cuguest::Stream blocking = Stream::Create(counter.ref(), CU_STREAM_DEFAULT).value();
  const StreamRef zero = StreamRef::Borrow(CU_STREAM_LEGACY, counter.ref());
  const Undisturbed undisturbed;
  const Capture capture(blocking.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  REFUSES(Scratch::Allocate(zero, kCount).status(), kFailedPrecondition, "CU_STREAM_NON_BLOCKING");
  SUCCEEDS(Scratch::Allocate(zero, 0).status());
}

BOOST_AUTO_TEST_CASE(graph_with_scratch_is_updated, *NeedsDriver(12000, "cuGraphExecUpdate_v2")) {
  Counter counter;
  Graph graph = CapturedGraph(counter);
  std::optional<ExecutableGraph> ready = graph.Instantiate().value();
  const CUgraph next = Captured(counter, counter.stream());
  counter.owner().Enter();
  CUgraphExecUpdateResultInfo info = {};
  const CUresult code = RAW(cuGraphExecUpdate)(ready->get(), next, &info);
  SetStack({});
  BOOST_TEST_MESSAGE("cuGraphExecUpdate of a graph with memory nodes: " << code << ", result "
                                                                        << info.result);
  Graph newer = Graph::Adopt(next, counter.ref()).value();
  if (code != CUDA_SUCCESS) {  // then it is instantiated anew
    ready.reset();
    ready = newer.Instantiate().value();
  }
  for (int i = 0; i < 3; ++i) {
    SUCCEEDS(ready->Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

// The driver refuses it all, and the graph stays as it is. What the host can do instead: capture
// the job in the graph that is to have it.
BOOST_AUTO_TEST_CASE(graph_with_scratch_is_not_copied, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  Graph graph = CapturedGraph(counter);
  CUgraph clone = nullptr;
  BOOST_TEST((RAW(cuGraphClone)(&clone, graph.get()) != CUDA_SUCCESS));
  CUgraph parent = nullptr;
  OK(RAW(cuGraphCreate)(&parent, 0));
  CUgraphNode node = nullptr;
  BOOST_TEST(
      (RAW(cuGraphAddChildGraphNode)(&node, parent, nullptr, 0, graph.get()) != CUDA_SUCCESS));
  OK(RAW(cuGraphDestroy)(parent));
  ExecutableGraph ready = graph.Instantiate().value();
  REFUSES(graph.Instantiate().status(), kUnimplemented,
          Advised("one ExecutableGraph at a time: release that, or capture the work again"));
  SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
  ExecutableGraph captured_again = CapturedGraph(counter).Instantiate().value();
  SUCCEEDS(captured_again.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
  SUCCEEDS(ready.Release());
  ExecutableGraph again = graph.Instantiate().value();
  SUCCEEDS(again.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(two_graphs_of_one_library, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  Graph first = CapturedGraph(counter);
  Graph second = CapturedGraph(counter);
  ExecutableGraph one = first.Instantiate().value();
  ExecutableGraph other = second.Instantiate().value();
  for (ExecutableGraph* each : {&one, &other, &one, &other}) {
    SUCCEEDS(each->Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

BOOST_AUTO_TEST_CASE(in_invalidated_capture, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  const CUstream stream = counter.stream().get();
  const Undisturbed undisturbed;
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  Scratch scratch = Made(Scratch::Allocate(counter.stream(), kCount));
  {
    const Scratch left = Made(Scratch::Allocate(counter.stream(), kCount));
    BOOST_TEST((RAW(cuStreamSynchronize)(stream) != CUDA_SUCCESS));
  }
  REFUSES(Scratch::Allocate(counter.stream(), kCount).status(), kFailedPrecondition,
          "STREAM_CAPTURE_INVALIDATED", "end the capture first");
  BOOST_TEST(!Scratch::Allocate(stream, kCount).ok());  // whose context cannot be found
  REFUSES(scratch.Release(), kFailedPrecondition, "STREAM_CAPTURE_INVALIDATED",
          "went with the capture");
  BOOST_TEST(scratch.empty());
  SUCCEEDS(scratch.Release());
  BOOST_TEST(EndCapture(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEEDS(Job(counter, counter.stream()));
  BOOST_TEST(counter.Took());
  BOOST_TEST(Left() == 0u);
}

// The graph has the memory then, and says so at its second launch.
BOOST_AUTO_TEST_CASE(kept_beyond_its_capture, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  const CUstream stream = counter.stream().get();
  for (const bool captures_again : {false, true}) {
    OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    std::optional<Scratch> dropped = Made(Scratch::Allocate(counter.stream(), kCount));
    Scratch released = Made(Scratch::Allocate(counter.stream(), kCount));
    const CUdeviceptr pointers[] = {dropped->get(), released.get()};
    CUgraph captured = nullptr;
    OK(RAW(cuStreamEndCapture)(stream, &captured));
    Graph graph = Graph::Adopt(captured, counter.ref()).value();
    BOOST_TEST(MemoryNodes(graph.get()) == 2u);
    if (captures_again) {
      OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    }
    TakeIncidents();
    dropped.reset();
    BOOST_TEST(Left() == 1u);
    REFUSES(released.Release(), kFailedPrecondition, "CUDA_ERROR_ILLEGAL_STATE",
            Advised("the second launch fails; release it before the capture ends, or free it by "
                    "cuMemFreeAsync after each launch"));
    BOOST_TEST(released.empty());
    if (captures_again) {
      CUgraph next = nullptr;
      OK(RAW(cuStreamEndCapture)(stream, &next));
      BOOST_TEST(MemoryNodes(next) == 0u);  // which stayed as it was
      OK(RAW(cuGraphDestroy)(next));
    }
    ExecutableGraph ready = graph.Instantiate().value();
    for (int i = 0; i < 2; ++i) {
      SUCCEEDS(ready.Launch(counter.stream()));
      for (const CUdeviceptr pointer : pointers) OK(RAW(cuMemFreeAsync)(pointer, stream));
      SUCCEEDS(counter.stream().Synchronize());
    }
    SUCCEEDS(ready.Launch(counter.stream()));
    REFUSES(ready.Launch(counter.stream()), kInvalidArgument, "AUTO_FREE_ON_LAUNCH");
    for (const CUdeviceptr pointer : pointers) OK(RAW(cuMemFreeAsync)(pointer, stream));
    SUCCEEDS(counter.stream().Synchronize());
  }
  ExecutableGraph ready = CapturedGraph(counter).Instantiate().value();  // Job() releases in time
  for (int i = 0; i < 2; ++i) SUCCEEDS(ready.Launch(counter.stream()));
  BOOST_TEST(counter.Took());
}

// A capture goes on when a stream that had joined it is destroyed.
BOOST_AUTO_TEST_CASE(joined_stream_ends_before_it, *NeedsDriver(12000, "cuCtxGetId")) {
  Counter counter;
  cuguest::Event forked = cuguest::Event::Create(counter.ref()).value();
  cuguest::Event joined = cuguest::Event::Create(counter.ref()).value();
  for (const bool is_in_time : {false, true}) {
    Stream second = Stream::Create(counter.ref()).value();
    CaptureScope capture = CaptureScope::Begin(counter.stream()).value();
    SUCCEEDS(forked.Record(counter.stream()));
    SUCCEEDS(second.ref().WaitFor(forked));
    Scratch scratch = Made(Scratch::Allocate(second, kCount));
    const CUdeviceptr pointer = scratch.get();
    if (is_in_time) SUCCEEDS(scratch.Release());
    SUCCEEDS(joined.Record(second));
    SUCCEEDS(counter.stream().WaitFor(joined));
    second = Stream();
    if (!is_in_time) {
      REFUSES(scratch.Release(), kFailedPrecondition,
              Advised("if the stream had joined a capture, the graph allocates the memory at each "
                      "launch and does not free it: release it before the stream ends"));
      BOOST_TEST(scratch.empty());
    }
    const Graph graph = capture.End().value();
    BOOST_TEST(MemoryNodes(graph.get()) == (is_in_time ? 2U : 1U));
    ExecutableGraph ready = graph.Instantiate().value();
    for (int i = 0; i < 2; ++i) {
      SUCCEEDS(ready.Launch(counter.stream()));
      if (!is_in_time) OK(RAW(cuMemFreeAsync)(pointer, counter.stream().get()));
      SUCCEEDS(counter.stream().Synchronize());
    }
  }
}

BOOST_AUTO_TEST_CASE(outside_memory_while_stream_captures) {
  Counter counter;
  Scratch scratch = Made(Scratch::Allocate(counter.stream(), kCount));
  const CUdeviceptr pointer = scratch.get();
  {
    const Capture capture(counter.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    REFUSES(scratch.Release(), kFailedPrecondition, "its stream captures");
    BOOST_TEST(scratch.get() == pointer);
  }
  SUCCEEDS(scratch.Release());
  SUCCEEDS(counter.stream().Synchronize());
  BOOST_TEST(BytesOfPool() == 0U);
}

BOOST_AUTO_TEST_CASE(stream_or_context_ends_before_it, *NeedsDriver(12000, "cuCtxGetId")) {
  for (const bool ends_context : {false, true}) {
    std::optional<OwnContext> context(std::in_place);
    Stream stream = Stream::Create(ContextRef::Borrow(context->get())).value();
    OK(RAW(cuStreamBeginCapture)(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED));
    Scratch scratch = Made(Scratch::Allocate(stream, kCount));
    { const Scratch ended = Made(Scratch::Allocate(stream, kCount)); }
    if (ends_context) {
      Destroy(context->release());
      REFUSES(scratch.Release(), kFailedPrecondition, "CONTEXT_IS_DESTROYED", "with its context");
      REFUSES(Scratch::Allocate(stream, kCount).status(), kFailedPrecondition, "CONTEXT_IS_DESTR");
    } else {
      stream = Stream();
      REFUSES(scratch.Release(), kFailedPrecondition, "its stream was destroyed");
    }
    BOOST_TEST(scratch.empty());
  }
}

BOOST_AUTO_TEST_CASE(per_thread_stream_of_another_thread, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  const StreamRef stream = StreamRef::Borrow(CU_STREAM_PER_THREAD, counter.ref());
  counter.owner().Enter();
  OK(RAW(cuStreamBeginCapture)(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED));
  Scratch scratch = Made(Scratch::Allocate(stream, kCount));
  std::thread([&] {
    REFUSES(scratch.Release(), kFailedPrecondition, "per-thread stream of another thread",
            Advised("release it on that thread, while it captures"));
  }).join();
  SUCCEEDS(scratch.Release());
  OK(EndCapture(stream.get()));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Counter counter;
  REFUSES(Scratch::Allocate(StreamRef(), kCount).status(), kInvalidArgument, "StreamRef is empty");
  const auto refused = [&] {
    REFUSES(Scratch::Allocate(counter.stream(), ~std::size_t{0} / 2).status(), kInvalidArgument,
            "allocate");
    BOOST_TEST(Scratch::Allocate(counter.stream(), 0).value().empty());
  };
  refused();
  REFUSES(Scratch::Allocate(counter.stream(), std::size_t{1} << 56).status(), kResourceExhausted,
          "from a pool");
  {
    const Capture capture(counter.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    refused();
    if (Sim::IsActive() && HasDriver(11040)) {  // a real one may notice it when it instantiates
      REFUSES(Scratch::Allocate(counter.stream(), std::size_t{1} << 56).status(),
              kResourceExhausted, "in a capture");
    }
  }
  Scratch empty;
  SUCCEEDS(empty.Release());
  BOOST_TEST((empty.get() == 0 && empty.data() == nullptr && empty.size() == 0));
  BOOST_TEST((empty.view().empty() && empty.device() == cuguest::Device::Borrow(0)));
}

BOOST_AUTO_TEST_CASE(it_moves, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  for (const bool captures : {false, true}) {
    std::optional<CaptureScope> capture;
    if (captures) capture = CaptureScope::Begin(counter.stream()).value();
    Scratch first = Made(Scratch::Allocate(counter.stream(), kCount));
    const CUdeviceptr pointer = first.get();
    Scratch second = std::move(first);
    first = Made(Scratch::Allocate(counter.stream(), 2 * kCount));
    BOOST_TEST((second.get() == pointer && second.size() == kCount));
    BOOST_TEST((second.view().data() == second.data()));
    second = std::move(first);
    BOOST_TEST((second.size() == 2 * kCount && second.size_bytes() == 8 * kCount));
    SUCCEEDS(second.Release());
    if (captures) {
      const Graph graph = capture->End().value();
      BOOST_TEST(MemoryNodes(graph.get()) == 4u);
      SUCCEEDS(graph.Instantiate().value().Launch(counter.stream()));
    }
    SUCCEEDS(counter.stream().Synchronize());
    BOOST_TEST(BytesOfPool() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(from_a_stream_callback, *NeedsDriver(11040, kNodes)) {
  Counter counter;
  const Stream second = Stream::Create(counter.ref()).value();
  CaptureScope capture = CaptureScope::Begin(second, CU_STREAM_CAPTURE_MODE_RELAXED).value();
  Scratch scratch = Made(Scratch::Allocate(second, kCount));
  std::optional<Scratch> owed = Made(Scratch::Allocate(second, kCount));
  const auto denied = [&](const std::function<absl::Status()>& call) {
    REFUSES(InCallback(counter.stream().get(), call), kPermissionDenied, "bytes");
  };
  denied([&] { return Scratch::Allocate(second, kCount).status(); });
  denied([&] { return scratch.Release(); });
  TakeIncidents();
  SUCCEEDS(InCallback(counter.stream().get(), [&] {
    owed.reset();
    return absl::OkStatus();
  }));
  BOOST_TEST(TakeIncidents().size() == 1u);
  SUCCEEDS(scratch.Release());
  { const DeviceBuffer<int> any; }
  { auto any = cuguest::Event::Create(counter.ref()).value(); }  // whose end frees what is owed
  const Graph graph = capture.End().value();
  BOOST_TEST(MemoryNodes(graph.get()) == 4u);
}

// A driver or a device that cannot have such nodes is not asked, the text says `why`, and the
// capture goes on with other memory.
void CheckWithoutNodes(Counter& counter, const char* why) {
  auto kept = DeviceBuffer<unsigned>::Allocate(counter.ref(), kCount).value();
  CaptureScope capture = CaptureScope::Begin(counter.stream()).value();
  cuguest_test::BeginCount();
  REFUSES(Scratch::Allocate(counter.stream(), kCount).status(), kUnimplemented, why,
          Advised("use memory that was allocated before the capture and is kept as long as the "
                  "graph: the caller's, or a DeviceBuffer"));
  BOOST_TEST(Sim::Calls("cuMemAllocAsync") == 0u);
  SUCCEEDS(JobWith(kept, counter, counter.stream()));
  const Graph graph = capture.End().value();
  if (!HasDriver(11040)) return;  // which has no ExecutableGraph
  ExecutableGraph ready = graph.Instantiate().value();
  for (int i = 0; i < 2; ++i) {
    SUCCEEDS(ready.Launch(counter.stream()));
    BOOST_TEST(counter.Took());
  }
}

BOOST_AUTO_TEST_CASE(device_without_memory_pools, *OnlySim() * NeedsDriver(11040, kNodes)) {
  Counter counter;
  const Undisturbed undisturbed;
  Sim::SupportMemoryPools(false);
  REFUSES(Scratch::Allocate(counter.stream(), kCount).status(), kUnimplemented,
          Advised("DeviceBuffer::Allocate() needs none"));
  CheckWithoutNodes(counter, "memory pools");
  Sim::SupportMemoryPools(true);
}

BOOST_AUTO_TEST_CASE(driver_without_memory_nodes, *NeedsDriverBefore(11040, kNodes)) {
  Counter counter;
  if (HasDriver(11020)) {
    CheckWithoutNodes(counter, "CUDA 11.4");
  } else {
    REFUSES(Scratch::Allocate(counter.stream(), kCount).status(), kUnimplemented,
            "cuMemAllocAsync");
  }
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *OnlySim() * NeedsDriver(12000, "cuCtxGetId")) {
  Counter counter;
  std::vector<std::string> entries = {
      "cuCtxGetId",       "cuStreamIsCapturing",  "cuStreamGetCaptureInfo",
      "cuCtxPushCurrent", "cuDeviceGetAttribute", "cuMemAllocAsync"};
  FailEachCall(entries, [&] { return Scratch::Allocate(counter.stream(), kCount); });
  entries.emplace_back("cuMemFreeAsync");
  FailEachCall(entries, [&] {
    const Capture capture(counter.stream().get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    absl::StatusOr<Scratch> scratch = Scratch::Allocate(counter.stream(), kCount);
    if (!scratch.ok()) return scratch.status();
    const absl::Status status = scratch->Release();
    SUCCEEDS(scratch->Release());  // it still owned it
    return status;
  });
  for (const CUstream handle : {counter.stream().get(), CU_STREAM_PER_THREAD}) {
    const StreamRef stream = StreamRef::Borrow(handle, counter.ref());
    counter.owner().Enter();
    const Capture capture(handle, CU_STREAM_CAPTURE_MODE_RELAXED);
    for (const char* entry : {"cuCtxGetId", "cuStreamGetCaptureInfo",
                              "cuThreadExchangeStreamCaptureMode", "cuMemFreeAsync"}) {
      SetStack({});
      Scratch scratch = Made(Scratch::Allocate(stream, kCount));
      Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
      BOOST_TEST((cuguest::CodeOf(scratch.Release()) == CUDA_ERROR_OPERATING_SYSTEM), entry);
      Sim::ClearFaults();
      BOOST_TEST(!scratch.empty(), entry);
      SUCCEEDS(scratch.Release());
      // A destructor can tell nobody else.
      scratch = Made(Scratch::Allocate(stream, kCount));
      Sim::FailCall(entry, 1, CUDA_ERROR_OPERATING_SYSTEM);
      scratch = Scratch();
      Sim::ClearFaults();
      const std::vector<Incident> incidents = TakeIncidents();
      BOOST_TEST_REQUIRE(incidents.size() == 1u, entry);
      BOOST_TEST((incidents[0].kind == Incident::Kind::kOwed), entry);
      BOOST_TEST((incidents[0].result == CUDA_ERROR_OPERATING_SYSTEM), entry);
      counter.owner().Enter();
    }
  }
  SetStack({});
}

// The header's `Cost:`. A thread asks for the device when its last allocation was in another
// context.
BOOST_AUTO_TEST_CASE(driver_calls, *NeedsDriver(13000, "cuCtxGetDevice of a context") * OnlySim()) {
  Counter counter;
  Counter other;
  const auto calls = [](const auto& work) {
    cuguest_test::BeginCount();
    work();
    return Sim::TotalCalls();
  };
  Scratch scratch;
  const auto allocate = [&] { scratch = Made(Scratch::Allocate(counter.stream(), kCount)); };
  const auto release = [&] { SUCCEEDS(scratch.Release()); };
  const auto forget = [&] { SUCCEEDS(Made(Scratch::Allocate(other.stream(), kCount)).Release()); };
  for (const bool is_current : {false, true}) {
    if (is_current) counter.owner().Enter();
    const unsigned asked = is_current ? 4 : 6;
    forget();
    BOOST_TEST(calls(allocate) == 5u + asked);
    BOOST_TEST(calls(release) == 5u);
    BOOST_TEST(calls(allocate) == 5u);
    BOOST_TEST(calls(release) == 5u);
    const Capture capture(counter.stream().get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    forget();
    BOOST_TEST(calls(allocate) == 10u + asked);
    BOOST_TEST(calls(release) == 5u);
    BOOST_TEST(calls(allocate) == 10u);
    BOOST_TEST(calls(release) == 5u);
  }
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
