// SPDX-License-Identifier: Apache-2.0

#include "driver/graph/graph.h"

#include <algorithm>
#include <mutex>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
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
};
struct Executable {
  Eternal incarnation;
  std::vector<NodePointer> nodes;
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

CUresult FindGraph(CUgraph handle, GraphPointer* graph) {
  GraphEntry entry;
  const CUresult code = FindIn(Graphs(), handle, &entry);
  *graph = entry.graph;
  return code;
}

void PanicIfContextIsGone(const void* handle, const std::vector<NodePointer>& nodes) {
  for (const NodePointer& node : nodes) {
    if (node->work.incarnation.IsAlive()) continue;
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

}  // namespace

GraphPointer MakeGraph() {
  GraphEntry entry;
  entry.graph = std::make_shared<Graph>();
  Graphs().Add(entry, &entry.graph->handle);
  return entry.graph;
}

void DropGraph(const GraphPointer& graph) {
  Graphs().Remove(graph->handle);
  for (const NodePointer& node : graph->nodes) Nodes().Remove(node->handle);
}

size_t CountGraphs() { return Graphs().CountAlive() + Executables().CountAlive(); }

NodePointer AddNode(const GraphPointer& graph, const Work& work,
                    const std::vector<NodePointer>& dependencies) {
  NodeEntry entry;
  entry.node = std::make_shared<Node>();
  entry.node->work = work;
  entry.node->dependencies = dependencies;
  Nodes().Add(entry, &entry.node->handle);
  graph->nodes.push_back(entry.node);
  return entry.node;
}

CUresult GraphCreate(CUgraph* handle, unsigned flags) {
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = MakeGraph()->handle;
  return CUDA_SUCCESS;
}

// The graph that a capture still records into is refused, and the capture goes on.
CUresult GraphDestroy(CUgraph handle) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  if (graph->is_capturing) return CUDA_ERROR_ILLEGAL_STATE;
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
    executable.nodes = graph->nodes;
  }
  PanicIfContextIsGone(graph_handle, executable.nodes);
  for (const NodePointer& node : executable.nodes) {
    if (!node->work.is_valid()) return CUDA_ERROR_INVALID_VALUE;
  }
  return Executables().Add(executable, handle);
}

CUresult GraphInstantiate(CUgraphExec* handle, CUgraph graph, CUgraphNode* error_node, char* log,
                          size_t log_size) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_size > 0) *log = '\0';
  return GraphInstantiateWithFlags(handle, graph, 0);
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
  for (const NodePointer& node : executable.nodes) node->work.run(stream_handle);
  return CUDA_SUCCESS;
}

CUresult GraphExecDestroy(CUgraphExec handle) {
  Executable executable;
  const CUresult code = FindIn(Executables(), handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  PanicIfContextIsGone(handle, executable.nodes);
  Executables().Remove(handle);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
