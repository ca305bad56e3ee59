// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs that are built node by node, and changed.

#include "conformance/call.h"

namespace conformance {
namespace {

// --- what graphs refer to, which must stay ---

void Keep(Frame& frame, size_t i) {
  Object* object = frame.ObjectOf(i);
  if (object == nullptr) return;
  object->is_kept = true;
  // Of a function, its module or kernel; of that, its library.
  for (Object* code = frame.world.Find(object->place); code != nullptr;
       code = frame.world.Find(code->place)) {
    if (IsContext(code->name)) break;
    code->is_kept = true;
  }
}

Then Keeps(std::initializer_list<size_t> arguments) {
  const std::vector<size_t> kept = arguments;
  return [=](Frame& frame) {
    for (const size_t i : kept) Keep(frame, i);
  };
}
// Argument 0 is a node of the graph that is argument 1, and refers to the arguments `kept`.
Then NodeOf(CUgraphNodeType type, std::initializer_list<size_t> kept = {}) {
  const Then keep = Keeps(kept);
  return [=](Frame& frame) {
    if (Object* node = frame.ObjectOf(0)) {
      node->owner = frame.value(1);
      node->type = type;
    }
    keep(frame);
  };
}

// Handles of destroyed contexts are not given to calls that take them as parameters of work.
bool TopLives(const World& world) { return world.Top().number == 0 || world.IsAlive(world.Top()); }
When InTop(const When& when) {
  return [=](const World& world, const Values& values) {
    return TopLives(world) && when(world, values);
  };
}
// Where none is current, making or changing a kernel's node ends the process (measured on an H200,
// driver 580.159.04).
bool HasTop(const World& world, const Values&) { return world.Top().number != 0; }
CUcontext Current() {
  CUcontext context = nullptr;
  RAW(cuCtxGetCurrent)(&context);
  return context;
}

bool Is(const World& world, const Value& node, CUgraphNodeType type) {
  const Object* object = world.Find(node);
  return object != nullptr && object->type == type;
}
// Now and then what does not match.
bool IsOdd(const Values& values) {
  std::uint64_t mixed = 0;
  for (const Value& value : values) {
    mixed = (mixed + static_cast<std::uint64_t>(value.number)) * 0x9E3779B97F4A7C15u;
  }
  return (mixed >> 32) % 48 == 0;
}
// Argument `node` is of that type.
When OfType(size_t node, CUgraphNodeType type, const When& when = {}) {
  return [=](const World& world, const Values& values) {
    return (Is(world, values[node], type) || IsOdd(values)) && (!when || when(world, values));
  };
}
// Argument `node` is of the graph `graph`.
bool IsOf(const World& world, const Value& node, const Value& graph) {
  const Object* object = world.Find(node);
  return object != nullptr && object->owner == graph;
}
Value OriginOf(const World& world, const Value& made) {
  const Object* object = world.Find(made);
  return object != nullptr ? object->place : Value{'R', 0};
}
// Argument 1 is of the graph that argument 0 was instantiated from.
When OfItsGraph(const When& when = {}) {
  return [=](const World& world, const Values& values) {
    const bool matches = IsOf(world, values[1], OriginOf(world, values[0]));
    return (matches || IsOdd(values)) && (!when || when(world, values));
  };
}
// Argument 2 is of the graph that argument 1 was cloned from.
bool IsOfOrigin(const World& world, const Values& values) {
  return IsOf(world, values[2], OriginOf(world, values[1])) || IsOdd(values);
}
// Both nodes are of the graph.
bool AreOfGraph(const World& world, const Values& values) {
  return (IsOf(world, values[1], values[0]) && IsOf(world, values[2], values[0])) || IsOdd(values);
}

// An edge from an older node to a newer one, or to itself: no cycle of several.
bool LeadsForward(const World& world, const Values& values) {
  return values[1].number <= values[2].number && AreOfGraph(world, values);
}

// --- nodes that are made: a place, a graph, a node that it depends on or none ---

using Add = std::function<CUresult(Frame&, CUgraphNode*, const CUgraphNode*, size_t)>;

Run Adds(const Add& add) {
  return [=](Frame& frame) {
    CUgraphNode node;
    std::memset(&node, Frame::kUntouched, sizeof(node));
    const auto before = frame.As<CUgraphNode>(2);
    frame.code = add(frame, frame.IsNull(0) ? nullptr : &node, &before, frame.IsNull(2) ? 0 : 1);
    if (!frame.IsNull(0)) frame.SayOut(0, &node, sizeof(node), frame.code == 0);
    return frame.code;
  };
}

Run AddPlain(CUresult (*add)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t)) {
  return Adds([=](Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
    return add(node, frame.As<CUgraph>(1), before, count);
  });
}
// With a graph or an event, argument 3.
template <typename Handle>
Run AddWith(CUresult (*add)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, Handle)) {
  return Adds([=](Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
    return add(node, frame.As<CUgraph>(1), before, count, frame.As<Handle>(3));
  });
}

// Memory, bytes, a value: from argument `first` on.
CUDA_MEMSET_NODE_PARAMS Fill(Frame& frame, size_t first) {
  CUDA_MEMSET_NODE_PARAMS params = {};
  params.dst = frame.As<CUdeviceptr>(first);
  params.elementSize = params.height = 1;
  params.width = frame.As<size_t>(first + 1);
  params.value = frame.As<unsigned>(first + 2);
  return params;
}
CUresult AddFill(Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
  const CUDA_MEMSET_NODE_PARAMS params = Fill(frame, 3);
  return RAW(cuGraphAddMemsetNode)(node, frame.As<CUgraph>(1), before, count, &params, Current());
}

// From host memory, argument `first`, to the device's, of as many bytes as the next one says.
CUDA_MEMCPY3D Upload(Frame& frame, size_t first) {
  CUDA_MEMCPY3D params = {};
  params.srcMemoryType = CU_MEMORYTYPE_HOST;
  params.srcHost = frame.As<const void*>(first);
  params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.dstDevice = frame.As<CUdeviceptr>(first + 1);
  params.WidthInBytes = frame.As<size_t>(first + 2);
  params.Height = params.Depth = 1;
  return params;
}
CUresult AddCopy(Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
  const CUDA_MEMCPY3D params = Upload(frame, 3);
  return RAW(cuGraphAddMemcpyNode)(node, frame.As<CUgraph>(1), before, count, &params, Current());
}

// Parameters for either kernel of code.cc.
struct Kernel {
  Kernel(Frame& frame, size_t first) {
    params.func = frame.As<CUfunction>(first);
    params.gridDimX = frame.As<unsigned>(first + 1);
    params.blockDimX = frame.As<unsigned>(first + 2);
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  std::uint64_t first = 0;
  unsigned second = 0;
  void* arguments[2] = {&first, &second};
  CUDA_KERNEL_NODE_PARAMS params = {};
};
CUresult AddKernel(Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
  const Kernel kernel(frame, 3);
  return RAW(cuGraphAddKernelNode)(node, frame.As<CUgraph>(1), before, count, &kernel.params);
}

CUresult AddHost(Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
  CUDA_HOST_NODE_PARAMS params = {};
  params.fn = [](void*) {};
  return RAW(cuGraphAddHostNode)(node, frame.As<CUgraph>(1), before, count, &params);
}

// And a node that frees it.
CUresult AddAllocation(Frame& frame, CUgraphNode* node, const CUgraphNode* before, size_t count) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = frame.As<size_t>(3);
  const auto graph = frame.As<CUgraph>(1);
  const CUresult code = RAW(cuGraphAddMemAllocNode)(node, graph, before, count, &params);
  if (code != CUDA_SUCCESS) return code;
  CUgraphNode freeing = nullptr;
  frame.SayNumber(RAW(cuGraphAddMemFreeNode)(&freeing, graph, node, 1, params.dptr));
  return code;
}

// --- what nodes are asked and told ---

int ChangeFill(Frame& frame) {
  const CUDA_MEMSET_NODE_PARAMS params = Fill(frame, 1);
  return RAW(cuGraphMemsetNodeSetParams)(frame.As<CUgraphNode>(0), &params);
}
int ChangeFillOf(Frame& frame) {
  const CUDA_MEMSET_NODE_PARAMS params = Fill(frame, 2);
  return RAW(cuGraphExecMemsetNodeSetParams)(frame.As<CUgraphExec>(0), frame.As<CUgraphNode>(1),
                                             &params, Current());
}
int TellFill(Frame& frame) {
  CUDA_MEMSET_NODE_PARAMS params = {};
  const CUresult code = RAW(cuGraphMemsetNodeGetParams)(frame.As<CUgraphNode>(0),
                                                        frame.IsNull(1) ? nullptr : &params);
  frame.SayNumber(static_cast<long long>(params.width));
  frame.SayNumber(params.value);
  return code;
}

int ChangeCopyOf(Frame& frame) {
  const CUDA_MEMCPY3D params = Upload(frame, 2);
  return RAW(cuGraphExecMemcpyNodeSetParams)(frame.As<CUgraphExec>(0), frame.As<CUgraphNode>(1),
                                             &params, Current());
}

int ChangeKernel(Frame& frame) {
  const Kernel kernel(frame, 1);
  return RAW(cuGraphKernelNodeSetParams)(frame.As<CUgraphNode>(0), &kernel.params);
}
int ChangeKernelOf(Frame& frame) {
  const Kernel kernel(frame, 2);
  return RAW(cuGraphExecKernelNodeSetParams)(frame.As<CUgraphExec>(0), frame.As<CUgraphNode>(1),
                                             &kernel.params);
}
int TellKernel(Frame& frame) {
  CUDA_KERNEL_NODE_PARAMS params = {};
  const CUresult code = RAW(cuGraphKernelNodeGetParams)(frame.As<CUgraphNode>(0),
                                                        frame.IsNull(1) ? nullptr : &params);
  frame.SayNumber(params.gridDimX);
  frame.SayNumber(params.blockDimX);
  return code;
}

// --- edges ---

int AddEdge(Frame& frame) {
  const auto from = frame.As<CUgraphNode>(1);
  const auto to = frame.As<CUgraphNode>(2);
  return RAW(cuGraphAddDependencies)(frame.As<CUgraph>(0), &from, &to, nullptr, 1);
}
int RemoveEdge(Frame& frame) {
  const auto from = frame.As<CUgraphNode>(1);
  const auto to = frame.As<CUgraphNode>(2);
  return RAW(cuGraphRemoveDependencies)(frame.As<CUgraph>(0), &from, &to, nullptr, 1);
}
// The number of what `ask` would write, argument 1.
using Ask = std::function<CUresult(Frame&, size_t*)>;
Run Counts(const Ask& ask) {
  return [=](Frame& frame) {
    size_t count = 0;
    const CUresult code = ask(frame, frame.IsNull(1) ? nullptr : &count);
    if (code == CUDA_SUCCESS) frame.SayNumber(static_cast<long long>(count));
    return static_cast<int>(code);
  };
}
CUresult AskEdges(Frame& frame, size_t* count) {
  return RAW(cuGraphGetEdges)(frame.As<CUgraph>(0), nullptr, nullptr, nullptr, count);
}
CUresult AskRoots(Frame& frame, size_t* count) {
  return RAW(cuGraphGetRootNodes)(frame.As<CUgraph>(0), nullptr, count);
}
Ask AskNeighbours(CUresult (*neighbours)(CUgraphNode, CUgraphNode*, CUgraphEdgeData*, size_t*)) {
  return [=](Frame& frame, size_t* count) {
    return neighbours(frame.As<CUgraphNode>(0), nullptr, nullptr, count);
  };
}

// --- whole graphs ---

// A node that has no name yet gets one: two names for a node would outlive it.
void SayNode(Frame& frame, CUgraphNode node) {
  const Object* known = frame.world.FindByHandle("N", reinterpret_cast<std::uintptr_t>(node));
  if (known != nullptr) return frame.SayText(ToText(known->name));
  frame.SayOut(0, &node, sizeof(node), true);
  if (Object* named = frame.ObjectOf(0)) named->owner = frame.value(1);
}
int OneNode(Frame& frame) {
  CUgraphNode node = nullptr;
  size_t count = 1;
  const CUresult code = RAW(cuGraphGetNodes)(frame.As<CUgraph>(1), &node, &count);
  if (code == CUDA_SUCCESS && count != 0) SayNode(frame, node);
  return code;
}
// Of the graph that is argument 1, what argument 2 became.
int FindInClone(Frame& frame) {
  CUgraphNode node = nullptr;
  const CUresult code =
      RAW(cuGraphNodeFindInClone)(&node, frame.As<CUgraphNode>(2), frame.As<CUgraph>(1));
  if (code == CUDA_SUCCESS) SayNode(frame, node);
  return code;
}

int Update(Frame& frame) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult code =
      RAW(cuGraphExecUpdate)(frame.As<CUgraphExec>(0), frame.As<CUgraph>(1), &info);
  frame.SayNumber(info.result);
  return code;
}

int Instantiate(Frame& frame) {
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  params.flags = frame.As<cuuint64_t>(2);
  CUgraphExec executable;
  std::memset(&executable, Frame::kUntouched, sizeof(executable));
  frame.code = RAW(cuGraphInstantiateWithParams)(frame.IsNull(0) ? nullptr : &executable,
                                                 frame.As<CUgraph>(1), &params);
  if (!frame.IsNull(0)) frame.SayOut(0, &executable, sizeof(executable), frame.code == 0);
  frame.SayNumber(params.result_out);
  return frame.code;
}

// The graph of itself is none of its nodes'.
bool AreTwo(const World&, const Values& values) { return values[1] != values[3]; }
// What waits in a graph for another process's event is not for every context.
bool IsOwn(const World& world, const Values& values, size_t event) {
  const Object* object = world.Find(values[event]);
  return object == nullptr || !object->is_shared;
}

}  // namespace

Room NodeRoom() {
  const Param before = Use("N", 40);
  const Param bytes = Number({1, 4, 4, 16, 64, 0});
  const Param fill = Number({0, 1, 255, 256});
  const Param grid = Number({1, 1, 2, 0});
  const Param block = Number({1, 1, 32, 1025});
  const When own = [](const World& world, const Values& values) { return IsOwn(world, values, 3); };
  const When changed = [](const World& world, const Values& values) {
    return IsOwn(world, values, values.size() - 1);
  };
  return {
      "nodes",
      {
          {"cuGraphAddEmptyNode",
           AddPlain(RAW(cuGraphAddEmptyNode)),
           5,
           {Make("N"), Use("R"), before},
           NodeOf(CU_GRAPH_NODE_TYPE_EMPTY)},
          {"cuGraphAddMemsetNode",
           Adds(AddFill),
           6,
           {Make("N"), Use("R"), before, Use("M", 2), bytes, fill},
           NodeOf(CU_GRAPH_NODE_TYPE_MEMSET, {3}),
           InTop(Fits({3}, 4))},
          {"cuGraphAddMemcpyNode",
           Adds(AddCopy),
           4,
           {Make("N"), Use("R"), before, Use("BBH", 2), Use("M", 2), bytes},
           NodeOf(CU_GRAPH_NODE_TYPE_MEMCPY, {3, 4}),
           InTop(Fits({3, 4}, 5))},
          {"cuGraphAddKernelNode",
           Adds(AddKernel),
           5,
           {Make("N"), Use("R"), before, Use("F", 0), grid, block},
           NodeOf(CU_GRAPH_NODE_TYPE_KERNEL, {3}),
           HasTop},
          {"cuGraphAddHostNode",
           Adds(AddHost),
           3,
           {Make("N"), Use("R"), before},
           NodeOf(CU_GRAPH_NODE_TYPE_HOST)},
          {"cuGraphAddChildGraphNode",
           AddWith(RAW(cuGraphAddChildGraphNode)),
           3,
           {Make("N"), Use("R"), before, Use("R")},
           NodeOf(CU_GRAPH_NODE_TYPE_GRAPH),
           AreTwo},
          {"cuGraphAddEventRecordNode",
           AddWith(RAW(cuGraphAddEventRecordNode)),
           3,
           {Make("N"), Use("R"), before, Use("E")},
           NodeOf(CU_GRAPH_NODE_TYPE_EVENT_RECORD, {3}),
           own},
          {"cuGraphAddEventWaitNode",
           AddWith(RAW(cuGraphAddEventWaitNode)),
           3,
           {Make("N"), Use("R"), before, Use("E")},
           NodeOf(CU_GRAPH_NODE_TYPE_WAIT_EVENT, {3}),
           own},
          {"cuGraphAddMemAllocNode.freed",
           Adds(AddAllocation),
           1,
           {Make("N", 0), Use("R"), before, bytes},
           NodeOf(CU_GRAPH_NODE_TYPE_MEM_ALLOC)},
          {"cuGraphGetNodes.one", OneNode, 3, {Make("N", 0), Use("R")}},
          {"cuGraphAddDependencies",
           AddEdge,
           8,
           {Use("R"), Use("N", 2), Use("N", 2)},
           {},
           LeadsForward},
          {"cuGraphRemoveDependencies",
           RemoveEdge,
           4,
           {Use("R"), Use("N", 2), Use("N", 2)},
           {},
           LeadsForward},
          {"cuGraphGetEdges", Counts(AskEdges), 3, {Use("R"), Out()}},
          {"cuGraphGetRootNodes", Counts(AskRoots), 2, {Use("R"), Out()}},
          {"cuGraphNodeGetDependencies",
           Counts(AskNeighbours(RAW(cuGraphNodeGetDependencies))),
           2,
           {Use("N"), Out()}},
          {"cuGraphNodeGetDependentNodes",
           Counts(AskNeighbours(RAW(cuGraphNodeGetDependentNodes))),
           2,
           {Use("N"), Out()}},
          {DRIVER(cuGraphClone), 3, {Make("R"), Use("R")}, CameFrom(1)},
          {"cuGraphNodeFindInClone",
           FindInClone,
           4,
           {Make("N", 0), Use("R"), Use("N")},
           {},
           IsOfOrigin},
          {DRIVER(cuGraphChildGraphNodeGetGraph),
           1,
           {Use("N"), Hidden()},
           {},
           OfType(0, CU_GRAPH_NODE_TYPE_GRAPH)},
          {"cuGraphMemsetNodeSetParams",
           ChangeFill,
           6,
           {Use("N", 2), Use("M", 2), bytes, fill},
           Keeps({1}),
           OfType(0, CU_GRAPH_NODE_TYPE_MEMSET, InTop(Fits({1}, 2)))},
          {"cuGraphExecMemsetNodeSetParams",
           ChangeFillOf,
           8,
           {Use("X", 2), Use("N", 2), Use("M", 2), bytes, fill},
           Keeps({2}),
           OfType(1, CU_GRAPH_NODE_TYPE_MEMSET, OfItsGraph(InTop(Fits({2}, 3))))},
          {"cuGraphMemsetNodeGetParams",
           TellFill,
           1,
           {Use("N", 2), Out()},
           {},
           OfType(0, CU_GRAPH_NODE_TYPE_MEMSET)},
          {"cuGraphExecMemcpyNodeSetParams",
           ChangeCopyOf,
           8,
           {Use("X", 2), Use("N", 2), Use("BBH", 2), Use("M", 2), bytes},
           Keeps({2, 3}),
           OfType(1, CU_GRAPH_NODE_TYPE_MEMCPY, OfItsGraph(InTop(Fits({2, 3}, 4))))},
          {"cuGraphKernelNodeSetParams",
           ChangeKernel,
           6,
           {Use("N", 2), Use("F", 0), grid, block},
           Keeps({1}),
           OfType(0, CU_GRAPH_NODE_TYPE_KERNEL, HasTop)},
          {"cuGraphExecKernelNodeSetParams",
           ChangeKernelOf,
           8,
           {Use("X", 2), Use("N", 2), Use("F", 0), grid, block},
           Keeps({2}),
           OfType(1, CU_GRAPH_NODE_TYPE_KERNEL, OfItsGraph(HasTop))},
          {"cuGraphKernelNodeGetParams",
           TellKernel,
           1,
           {Use("N", 2), Out()},
           {},
           OfType(0, CU_GRAPH_NODE_TYPE_KERNEL)},
          {DRIVER(cuGraphEventRecordNodeGetEvent),
           1,
           {Use("N"), Out("E")},
           {},
           OfType(0, CU_GRAPH_NODE_TYPE_EVENT_RECORD)},
          {DRIVER(cuGraphEventWaitNodeGetEvent),
           1,
           {Use("N"), Out("E")},
           {},
           OfType(0, CU_GRAPH_NODE_TYPE_WAIT_EVENT)},
          {DRIVER(cuGraphEventRecordNodeSetEvent),
           2,
           {Use("N"), Use("E")},
           Keeps({1}),
           OfType(0, CU_GRAPH_NODE_TYPE_EVENT_RECORD, changed)},
          {DRIVER(cuGraphEventWaitNodeSetEvent),
           2,
           {Use("N"), Use("E")},
           Keeps({1}),
           OfType(0, CU_GRAPH_NODE_TYPE_WAIT_EVENT, changed)},
          {DRIVER(cuGraphExecEventRecordNodeSetEvent),
           2,
           {Use("X"), Use("N"), Use("E")},
           Keeps({2}),
           OfType(1, CU_GRAPH_NODE_TYPE_EVENT_RECORD, OfItsGraph(changed))},
          {DRIVER(cuGraphExecEventWaitNodeSetEvent),
           2,
           {Use("X"), Use("N"), Use("E")},
           Keeps({2}),
           OfType(1, CU_GRAPH_NODE_TYPE_WAIT_EVENT, OfItsGraph(changed))},
          {DRIVER(cuGraphNodeSetEnabled),
           6,
           {Use("X"), Use("N"), Number({0, 0, 1, 2})},
           {},
           OfItsGraph()},
          {DRIVER(cuGraphNodeGetEnabled), 3, {Use("X"), Use("N"), Out()}, {}, OfItsGraph()},
          {"cuGraphExecUpdate", Update, 4, {Use("X", 2), Use("R", 2)}},
          {"cuGraphInstantiateWithParams",
           Instantiate,
           3,
           {Make("X"), Use("R"), Number({0, 0, 1, 8, 64})},
           CameFrom(1)},
          {DRIVER(cuGraphUpload), 1, {Use("X"), UseStream()}},
          {DRIVER(cuGraphExecGetFlags), 1, {Use("X"), Out()}},
      },
  };
}

}  // namespace conformance
