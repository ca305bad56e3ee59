// SPDX-License-Identifier: Apache-2.0

#include "driver/graph/graph.h"

#include <algorithm>
#include <mutex>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/graph/graph_memory.h"
#include "driver/graph/node_parameters.h"
#include "driver/handle_table.h"
#include "driver/launch/launch.h"
#include "driver/memory/copy.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

struct GraphEntry {
  Eternal incarnation;  // graphs live in no context
  GraphPointer graph;
};
struct NodeEntry {
  Eternal incarnation;
  NodePointer node;
  CUgraph graph = nullptr;
};
// A node as it was instantiated, or as it was changed since.
struct ExecutableNode {
  NodePointer node;
  Work work;
};
struct Executable {
  Eternal incarnation;
  std::vector<ExecutableNode> nodes;
  unsigned long long flags = 0;
  std::vector<std::shared_ptr<const UserReferences>> user_objects;  // its child graphs', too
  std::shared_ptr<void> instance;                                   // see Graph
  TaskPointer last;  // of its last launch, which the next one waits for
};

HandleTable<CUgraph, GraphEntry>& Graphs() {
  static auto& table = *new HandleTable<CUgraph, GraphEntry>(5);
  return table;
}

HandleTable<CUgraphNode, NodeEntry>& Nodes() {
  static auto& table = *new HandleTable<CUgraphNode, NodeEntry>(6);
  return table;
}

HandleTable<CUgraphExec, Executable>& Executables() {
  static auto& table = *new HandleTable<CUgraphExec, Executable>(7);
  return table;
}

// Null and what was destroyed are told; any other value is read as a pointer
// (measured on an H100, driver 580.159.04).
template <typename Handle, typename Value>
CUresult FindIn(HandleTable<Handle, Value>& table, Handle handle, Value* value) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Handled found = table.Find(handle, value);
  if (found == Handled::kNever) {
    PanicHandle(handle,
                "this never was a graph, node or executable graph; a real driver reads the memory "
                "it points at");
  }
  return found == Handled::kAlive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void PanicIfContextIsGone(const void* handle, const std::vector<ExecutableNode>& nodes) {
  for (const ExecutableNode& node : nodes) {
    if (node.work.incarnation.IsAlive()) continue;
    PanicHandle(handle,
                "a node is of a context that was destroyed; a real driver crashes here (measured "
                "on an H100, driver 580.159.04)");
  }
}

bool AreInstantiateFlags(unsigned long long flags) {
  constexpr unsigned long long kFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  return (flags & ~kFlags) == 0;
}

bool HasMemory(const std::vector<ExecutableNode>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const ExecutableNode& node) { return node.work.memory != nullptr; });
}

// The nodes that do something, and those of child graphs in the place of their nodes.
void Collect(const Graph& graph, Executable* executable) {
  for (const NodePointer& node : graph.nodes) {
    if (node->work.run != nullptr) executable->nodes.push_back({node, node->work});
    if (node->work.child != nullptr) Collect(*node->work.child, executable);
  }
  executable->user_objects.push_back(std::make_shared<UserReferences>(graph.user_objects));
}

// Of one graph, and each of them once.
CUresult FindDependencies(const GraphPointer& graph, const CUgraphNode* handles, size_t count,
                          std::vector<NodePointer>* dependencies) {
  if (count != 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    NodeEntry entry;
    const CUresult code = FindIn(Nodes(), handles[i], &entry);
    if (code != CUDA_SUCCESS) return code;
    const auto is_node = [&](const std::vector<NodePointer>& nodes) {
      return std::find(nodes.begin(), nodes.end(), entry.node) != nodes.end();
    };
    if (!is_node(graph->nodes) || is_node(*dependencies)) return CUDA_ERROR_INVALID_VALUE;
    dependencies->push_back(entry.node);
  }
  return CUDA_SUCCESS;
}

// Puts the launch into the stream. Its nodes run one after another: branches are not followed.
TaskPointer SubmitNodes(const Executable& executable, CUstream handle, const Stream& stream) {
  TaskPointer last = executable.last;
  for (const ExecutableNode& node : executable.nodes) {
    const std::shared_ptr<GraphMemory>& memory = node.work.memory;
    if (memory != nullptr) memory->Own(node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    last = SubmitUncaptured(handle, stream, node.work, last);
  }
  if (last == nullptr) return nullptr;
  Job end;  // until when the launch keeps the user objects
  end.incarnation = stream.incarnation;
  end.run = [objects = executable.user_objects] {};
  return Schedule::Submit(stream, end, {last});
}

}  // namespace

CUresult FindGraph(CUgraph handle, GraphPointer* graph) {
  GraphEntry entry;
  const CUresult code = FindIn(Graphs(), handle, &entry);
  *graph = entry.graph;
  return code;
}

GraphPointer MakeGraph() {
  GraphEntry entry;
  entry.graph = std::make_shared<Graph>();
  Graphs().Add(entry, &entry.graph->handle);
  return entry.graph;
}

namespace {

void DropNode(const NodePointer& node) {
  Nodes().Remove(node->handle);
  if (node->work.child != nullptr) DropGraph(node->work.child);
}

}  // namespace

void DropGraph(const GraphPointer& graph) {
  Graphs().Remove(graph->handle);
  for (const NodePointer& node : graph->nodes) DropNode(node);
}

CUresult FindNode(CUgraphNode handle, NodePointer* node) {
  NodeEntry entry;
  const CUresult code = FindIn(Nodes(), handle, &entry);
  *node = entry.node;
  return code;
}

size_t CountGraphs() {
  const auto is_own = [](const GraphEntry& entry) { return !entry.graph->is_embedded; };
  return Graphs().CountIf(is_own) + Executables().CountAlive();
}

NodePointer AddNode(const GraphPointer& graph, const Work& work,
                    const std::vector<NodePointer>& dependencies) {
  NodeEntry entry;
  entry.node = std::make_shared<Node>();
  entry.node->work = work;
  entry.node->dependencies = dependencies;
  entry.graph = graph->handle;
  Nodes().Add(entry, &entry.node->handle);
  graph->nodes.push_back(entry.node);
  return entry.node;
}

CUresult GraphCreate(CUgraph* handle, unsigned flags) {
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = MakeGraph()->handle;
  return CUDA_SUCCESS;
}

// The graph that a capture still records into is refused, and the capture goes on. Not measured: a
// child graph, which its node owns.
CUresult GraphDestroy(CUgraph handle) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  if (graph->is_capturing) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph->is_embedded) return CUDA_ERROR_INVALID_VALUE;
  DropGraph(graph);
  return CUDA_SUCCESS;
}

// Without `handles` only the number; places beyond the number become null.
CUresult GraphGetNodes(CUgraph handle, CUgraphNode* handles, size_t* count) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto lock = Captures::Lock();
  const auto& nodes = graph->nodes;
  if (handles == nullptr) {
    *count = nodes.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) {
    handles[i] = i < nodes.size() ? nodes[i]->handle : nullptr;
  }
  *count = std::min(*count, nodes.size());
  return CUDA_SUCCESS;
}

CUresult GraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  NodeEntry entry;
  const CUresult code = FindIn(Nodes(), handle, &entry);
  if (code != CUDA_SUCCESS) return code;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = entry.node->work.type;
  return CUDA_SUCCESS;
}

CUresult GraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph_handle,
                                   unsigned long long flags) {
  if (!AreInstantiateFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphPointer graph;
  code = FindGraph(graph_handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  Executable executable;
  {
    const auto lock = Captures::Lock();
    Collect(*graph, &executable);
  }
  PanicIfContextIsGone(graph_handle, executable.nodes);
  for (const ExecutableNode& node : executable.nodes) {
    if (!node.work.is_valid()) return CUDA_ERROR_INVALID_VALUE;
  }
  // One at a time.
  if (HasMemory(executable.nodes)) {
    if (!graph->instance.expired()) return CUDA_ERROR_NOT_SUPPORTED;
    executable.instance = std::make_shared<int>();
    graph->instance = executable.instance;
  }
  executable.flags = flags;
  return Executables().Add(executable, handle);
}

CUresult GraphInstantiate(CUgraphExec* handle, CUgraph graph, CUgraphNode* error_node, char* log,
                          size_t log_size) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_size > 0) *log = '\0';
  return GraphInstantiateWithFlags(handle, graph, 0);
}

// There is nothing to upload, and nothing for a device to launch. Not measured.
CUresult GraphInstantiateWithParams(CUgraphExec* handle, CUgraph graph,
                                    CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool uploads = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  Stream stream;
  CUresult code = uploads ? FindReadyStream(params->hUploadStream, &stream) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) {
    code = GraphInstantiateWithFlags(
        handle, graph,
        params->flags & ~static_cast<cuuint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
  }
  if (code == CUDA_SUCCESS) params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return code;
}

CUresult GraphUpload(CUgraphExec handle, CUstream stream_handle) {
  Stream stream;
  const CUresult code = FindReadyStream(stream_handle, &stream);
  Executable executable;
  return code != CUDA_SUCCESS ? code : FindIn(Executables(), handle, &executable);
}

CUresult GraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  Executable executable;
  const CUresult code = FindIn(Executables(), handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  return CUDA_SUCCESS;
}

// In any stream: each node works in the context it was captured in.
CUresult GraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Executable executable;
  code = FindIn(Executables(), handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  PanicIfContextIsGone(handle, executable.nodes);
  const bool frees_on_launch =
      (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (const ExecutableNode& node : executable.nodes) {
    const bool is_left = node.work.memory != nullptr && node.work.memory->is_owned();
    if (is_left && !frees_on_launch) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const ExecutableNode& node : executable.nodes) {
    const std::shared_ptr<GraphMemory>& memory = node.work.memory;
    if (memory != nullptr && memory->is_owned()) memory->UnmapIn(stream);
  }
  executable.last = SubmitNodes(executable, stream_handle, stream);
  if (executable.last != nullptr) Executables().Set(handle, executable);
  return CUDA_SUCCESS;
}

CUresult GraphExecDestroy(CUgraphExec handle) {
  CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  Executable executable;
  code = FindIn(Executables(), handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  PanicIfContextIsGone(handle, executable.nodes);
  Executables().Remove(handle);
  return CUDA_SUCCESS;
}

CUresult AddNodeOf(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependency_handles,
                   size_t count, const std::function<CUresult(Work*)>& make) {
  GraphPointer graph;
  CUresult code = FindGraph(graph_handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<NodePointer> dependencies;
  code = FindDependencies(graph, dependency_handles, count, &dependencies);
  Work work;
  if (code == CUDA_SUCCESS) code = make(&work);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  *handle = AddNode(graph, work, dependencies)->handle;
  return CUDA_SUCCESS;
}

namespace {

// The context that a node names, or the current one.
CUresult FindContextOfNode(CUcontext handle, Incarnation* incarnation) {
  if (handle == nullptr) return CurrentReady(incarnation);
  Context* context = Context::FindOrPanic(handle);
  *incarnation = IncarnationOf(context);
  return context->IsAlive() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

// It does nothing, in no context. Source, also of the others: test/graph_node_facts_test.cc.
CUresult GraphAddEmptyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                           size_t count) {
  return AddNodeOf(handle, graph, dependencies, count, [](Work*) { return CUDA_SUCCESS; });
}

CUresult GraphAddMemcpyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
  return AddNodeOf(handle, graph, dependencies, count, [&](Work* work) {
    Incarnation incarnation;
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult code = FindContextOfNode(context, &incarnation);
    return code != CUDA_SUCCESS ? code : MakeCopyWork(*copy, incarnation, work);
  });
}

CUresult GraphAddMemsetNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  return AddNodeOf(handle, graph, dependencies, count, [&](Work* work) {
    Incarnation incarnation;
    if (fill == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult code = FindContextOfNode(context, &incarnation);
    return code != CUDA_SUCCESS ? code : MakeFillWork(*fill, incarnation, work);
  });
}

CUresult GraphAddKernelNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  return AddNodeOf(handle, graph, dependencies, count, [&](Work* work) {
    return parameters != nullptr ? MakeKernelWork(*parameters, {}, work) : CUDA_ERROR_INVALID_VALUE;
  });
}

// Nodes of other types, edges with data, and child graphs that the node takes over, are not
// modelled.
CUresult GraphAddNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                      const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (edges != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return GraphAddEmptyNode(handle, graph, dependencies, count);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return GraphAddMemcpyNode(handle, graph, dependencies, count, &params->memcpy.copyParams,
                                params->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = ToFillParams(params->memset);
      return GraphAddMemsetNode(handle, graph, dependencies, count, &fill, params->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v2 kernel = ToKernelParams(params->kernel);
      return GraphAddKernelNode(handle, graph, dependencies, count, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (params->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) break;
      return GraphAddChildGraphNode(handle, graph, dependencies, count, params->graph.graph);
    default:
      break;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult GraphAddNodeFirst(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                           size_t count, CUgraphNodeParams* params) {
  return GraphAddNode(handle, graph, dependencies, nullptr, count, params);
}

CUresult GraphAddKernelNodeFirst(CUgraphNode* handle, CUgraph graph,
                                 const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS_v1* first) {
  if (first == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 parameters = ToKernelParams(*first);
  return GraphAddKernelNode(handle, graph, dependencies, count, &parameters);
}

CUresult GraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                     const CUkernelNodeAttrValue* value) {
  NodeEntry entry;
  CUresult code = FindIn(Nodes(), handle, &entry);
  if (code != CUDA_SUCCESS) return code;
  if (value == nullptr || entry.node->work.type != CU_GRAPH_NODE_TYPE_KERNEL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUlaunchAttribute attribute = {};
  attribute.id = id;
  attribute.value = *value;
  Work work;
  code = entry.node->work.with(attribute, &work);
  if (code == CUDA_SUCCESS) entry.node->work = work;
  return code;
}

CUresult RemakeInExecutable(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeType type,
                            const Remake& remake) {
  Executable executable;
  CUresult code = FindIn(Executables(), handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  NodePointer node;
  code = FindNode(node_handle, &node);
  if (code != CUDA_SUCCESS) return code;
  const auto found =
      std::find_if(executable.nodes.begin(), executable.nodes.end(),
                   [&](const ExecutableNode& candidate) { return candidate.node == node; });
  if (found == executable.nodes.end() || found->work.type != type) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  code = remake(found->work, &work);
  if (code != CUDA_SUCCESS) return code;
  if (work.incarnation.id != found->work.incarnation.id) return CUDA_ERROR_INVALID_VALUE;
  found->work = work;
  Executables().Set(handle, executable);
  return CUDA_SUCCESS;
}

CUresult GraphDestroyNode(CUgraphNode handle) {
  NodeEntry entry;
  const CUresult code = FindIn(Nodes(), handle, &entry);
  if (code != CUDA_SUCCESS) return code;
  GraphPointer graph;
  {
    GraphEntry owner;
    if (FindIn(Graphs(), entry.graph, &owner) == CUDA_SUCCESS) graph = owner.graph;
  }
  const auto lock = Captures::Lock();
  auto& nodes = graph->nodes;
  nodes.erase(std::remove(nodes.begin(), nodes.end(), entry.node), nodes.end());
  for (const NodePointer& other : nodes) {
    auto& edges = other->dependencies;
    edges.erase(std::remove(edges.begin(), edges.end(), entry.node), edges.end());
  }
  DropNode(entry.node);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
