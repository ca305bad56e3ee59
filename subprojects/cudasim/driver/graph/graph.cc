// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/graph/graph.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/graph/executable.h"
#include "driver/graph/graph_handle.h"
#include "driver/graph/memory_node.h"
#include "driver/graph/node_parameters.h"
#include "driver/launch/launch.h"
#include "driver/memory/copy.h"
#include "driver/stream/capture.h"
#include "driver/stream/event.h"
#include "driver/stream/host_function.h"

namespace cudasim::driver {
namespace {

struct GraphEntry {
  Eternal incarnation;  // graphs live in no context
  GraphPointer graph;
};
struct NodeEntry {
  Eternal incarnation;
  NodePointer node;
};

HandleTable<CUgraph, GraphEntry>& Graphs() {
  static auto& table = *new HandleTable<CUgraph, GraphEntry>(5);
  return table;
}

HandleTable<CUgraphNode, NodeEntry>& Nodes() {
  static auto& table = *new HandleTable<CUgraphNode, NodeEntry>(6);
  return table;
}

// Of one graph, and each of them once.
CUresult FindDependencies(const GraphPointer& graph, const CUgraphNode* handles, size_t count,
                          std::vector<NodePointer>* dependencies) {
  if (count != 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    NodePointer node;
    const CUresult code = FindNodeOf(*graph, handles[i], &node);
    if (code != CUDA_SUCCESS) return code;
    const bool is_known =
        std::find(dependencies->begin(), dependencies->end(), node) != dependencies->end();
    if (is_known) return CUDA_ERROR_INVALID_VALUE;
    dependencies->push_back(node);
  }
  return CUDA_SUCCESS;
}

void AddInOrder(const NodePointer& node, std::set<const Node*>* known,
                std::vector<NodePointer>* order) {
  if (!known->insert(node.get()).second) return;
  for (const NodePointer& dependency : node->dependencies) AddInOrder(dependency, known, order);
  order->push_back(node);
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

CUresult FindNodeOf(const Graph& graph, CUgraphNode handle, NodePointer* node) {
  const CUresult code = FindNode(handle, node);
  if (code != CUDA_SUCCESS) return code;
  return (*node)->graph == graph.handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::vector<NodePointer> InOrder(const Graph& graph) {
  std::set<const Node*> known;
  std::vector<NodePointer> order;
  for (const NodePointer& node : graph.nodes) AddInOrder(node, &known, &order);
  return order;
}

NodePointer FindCycle(const Graph& graph) {
  std::set<NodePointer> before;
  for (const NodePointer& node : InOrder(graph)) {
    for (const NodePointer& dependency : node->dependencies) {
      if (before.count(dependency) == 0) return node;
    }
    before.insert(node);
    const NodePointer inner = node->work.child != nullptr ? FindCycle(*node->work.child) : nullptr;
    if (inner != nullptr) return inner;
  }
  return nullptr;
}

bool HasMemory(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const NodePointer& node) {
    return node->work.memory != nullptr ||
           (node->work.child != nullptr && HasMemory(*node->work.child));
  });
}

bool HasMemoryNow(const Graph& graph) {
  const auto lock = Captures::Lock();
  return HasMemory(graph);
}

CUresult ListNodes(const std::vector<NodePointer>& nodes, CUgraphNode* handles, size_t* count) {
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

size_t CountGraphs() {
  const auto is_own = [](const GraphEntry& entry) { return !entry.graph->is_embedded; };
  return Graphs().CountIf(is_own) + CountExecutables();
}

NodePointer AddNode(const GraphPointer& graph, const Work& work,
                    const std::vector<NodePointer>& dependencies) {
  NodeEntry entry;
  entry.node = std::make_shared<Node>();
  entry.node->work = work;
  entry.node->dependencies = dependencies;
  entry.node->graph = graph->handle;
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

CUresult GraphGetNodes(CUgraph handle, CUgraphNode* handles, size_t* count) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto lock = Captures::Lock();
  return ListNodes(graph->nodes, handles, count);
}

CUresult GraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  NodeEntry entry;
  const CUresult code = FindIn(Nodes(), handle, &entry);
  if (code != CUDA_SUCCESS) return code;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = entry.node->work.type;
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

// The context that a node names, if it names one.
CUresult FindContextOfNode(CUcontext handle, Incarnation* incarnation) {
  if (handle == nullptr) return CUDA_SUCCESS;
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
    return code != CUDA_SUCCESS ? code : MakeCopyWork(*copy, NamedOrGreen(incarnation), work);
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

// In no context: it runs in that of the stream it is launched in.
CUresult GraphAddHostNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                          size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  return AddNodeOf(handle, graph, dependencies, count, [&](Work* work) {
    return params != nullptr ? MakeHostWork(*params, {}, work) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult GraphAddEventRecordNode(CUgraphNode* handle, CUgraph graph,
                                 const CUgraphNode* dependencies, size_t count, CUevent event) {
  return AddNodeOf(handle, graph, dependencies, count,
                   [=](Work* work) { return MakeRecordWork(event, {}, work); });
}

CUresult GraphAddEventWaitNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUevent event) {
  return AddNodeOf(handle, graph, dependencies, count,
                   [=](Work* work) { return MakeWaitWork(event, {}, work); });
}

// Not modelled: nodes of conditions, of external semaphores and of batched memory operations, and
// child graphs that a node takes over.
CUresult GraphAddNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                      const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (edges != nullptr) return NotModelled();
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
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = ToHostParams(params->host);
      return GraphAddHostNode(handle, graph, dependencies, count, &host);
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return GraphAddEventRecordNode(handle, graph, dependencies, count, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return GraphAddEventWaitNode(handle, graph, dependencies, count, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return AddAllocationOfAny(handle, graph, dependencies, count, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return GraphAddMemFreeNode(handle, graph, dependencies, count, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (params->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) break;
      return GraphAddChildGraphNode(handle, graph, dependencies, count, params->graph.graph);
    default:
      break;
  }
  return NotModelled();
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

CUresult GraphDestroyNode(CUgraphNode handle) {
  NodePointer node;
  CUresult code = FindNode(handle, &node);
  if (code != CUDA_SUCCESS) return code;
  GraphPointer graph;
  code = FindGraph(node->graph, &graph);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  if (HasMemory(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
  auto& nodes = graph->nodes;
  nodes.erase(std::remove(nodes.begin(), nodes.end(), node), nodes.end());
  for (const NodePointer& other : nodes) {
    auto& edges = other->dependencies;
    edges.erase(std::remove(edges.begin(), edges.end(), node), edges.end());
  }
  DropNode(node);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
