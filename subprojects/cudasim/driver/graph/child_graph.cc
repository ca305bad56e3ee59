// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of graphs, and nodes that stand for one.
//
// Measured on an H100, driver 580.159.04, where child_graph_facts_test says nothing else.

#include <map>

#include "driver/api.h"
#include "driver/graph/graph.h"
#include "driver/stream/capture.h"

namespace cudasim::driver {
namespace {

GraphPointer Embed(GraphPointer graph) {
  graph->is_embedded = true;
  return graph;
}

GraphPointer Clone(const Graph& original) {
  const GraphPointer clone = MakeGraph();
  clone->user_objects.AddAll(original.user_objects);
  std::map<NodePointer, NodePointer> clones;
  for (const NodePointer& node : original.nodes) {
    Work work = node->work;
    if (work.child != nullptr) work.child = Embed(Clone(*work.child));
    const NodePointer copy = AddNode(clone, work, {});
    copy->original = node;
    clones[node] = copy;
  }
  for (const auto& [node, copy] : clones) {
    for (const NodePointer& dependency : node->dependencies) {
      copy->dependencies.push_back(clones.at(dependency));
    }
  }
  return clone;
}

CUresult FindCloneable(CUgraph handle, GraphPointer* original) {
  const CUresult code = FindGraph(handle, original);
  return code == CUDA_SUCCESS && HasMemoryNow(**original) ? CUDA_ERROR_NOT_SUPPORTED : code;
}

}  // namespace

CUresult GraphClone(CUgraph* handle, CUgraph original) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphPointer graph;
  const CUresult code = FindCloneable(original, &graph);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  *handle = Clone(*graph)->handle;
  return CUDA_SUCCESS;
}

CUresult GraphNodeFindInClone(CUgraphNode* handle, CUgraphNode original_handle, CUgraph clone) {
  NodePointer original;
  GraphPointer graph;
  CUresult code = FindNode(original_handle, &original);
  if (code == CUDA_SUCCESS) code = FindGraph(clone, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto lock = Captures::Lock();
  for (const NodePointer& node : graph->nodes) {
    if (node->original.lock() != original) continue;
    *handle = node->handle;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult GraphAddChildGraphNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUgraph child) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphPointer original;  // asked about before the graph and the dependencies
  const CUresult code = FindCloneable(child, &original);
  if (code != CUDA_SUCCESS) return code;
  return AddNodeOf(handle, graph, dependencies, count, [&](Work* work) {
    const auto lock = Captures::Lock();
    work->type = CU_GRAPH_NODE_TYPE_GRAPH;
    work->child = Embed(Clone(*original));
    return CUDA_SUCCESS;
  });
}

CUresult GraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  NodePointer node;
  const CUresult code = FindNode(handle, &node);
  if (code != CUDA_SUCCESS) return code;
  if (graph == nullptr || node->work.child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = node->work.child->handle;
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
