// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The edges of graphs. Source: test/graph_topology_facts_test.cc.
//
// Edges with data other than the default are not modelled.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "driver/api.h"
#include "driver/graph/graph.h"
#include "driver/stream/capture.h"

namespace cudasim::driver {
namespace {

struct Edge {
  NodePointer from;
  NodePointer to;

  bool IsThere() const {
    const auto& edges = to->dependencies;
    return std::find(edges.begin(), edges.end(), from) != edges.end();
  }
};
using Edges = std::vector<Edge>;

bool AreDefault(const CUgraphEdgeData* data, size_t count) {
  constexpr CUgraphEdgeData kDefault = {};
  return data == nullptr || std::all_of(data, data + count, [&](const CUgraphEdgeData& edge) {
           return std::memcmp(&edge, &kDefault, sizeof(edge)) == 0;
         });
}

// Between two nodes of the graph, and each of them once.
CUresult FindEdges(const Graph& graph, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                   Edges* edges) {
  if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::set<std::pair<NodePointer, NodePointer>> known;
  for (size_t i = 0; i < count; ++i) {
    Edge edge;
    CUresult code = FindNodeOf(graph, from[i], &edge.from);
    if (code == CUDA_SUCCESS) code = FindNodeOf(graph, to[i], &edge.to);
    if (code != CUDA_SUCCESS) return code;
    const bool is_new = known.emplace(edge.from, edge.to).second;
    if (edge.from == edge.to || !is_new) return CUDA_ERROR_INVALID_VALUE;
    edges->push_back(edge);
  }
  return CUDA_SUCCESS;
}

// What the calls that list an end of edges tell.
CUresult ListEnds(const std::vector<NodePointer>& nodes, CUgraphNode* handles,
                  CUgraphEdgeData* data, size_t* count) {
  if (count == nullptr || (data != nullptr && handles == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = ListNodes(nodes, handles, count);
  if (data != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  return code;
}

}  // namespace

// A cycle is refused when the graph is instantiated, except for an edge from a node to itself.
CUresult GraphAddDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                              const CUgraphEdgeData* data, size_t count) {
  GraphPointer graph;
  Edges edges;
  CUresult code = FindGraph(handle, &graph);
  if (code == CUDA_SUCCESS) code = FindEdges(*graph, from, to, count, &edges);
  if (code != CUDA_SUCCESS) return code;
  // Not modelled: edges with data, of a graph or of a capture.
  if (!AreDefault(data, count)) return NotModelled();
  const auto lock = Captures::Lock();
  for (const Edge& edge : edges) {
    if (edge.IsThere()) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const Edge& edge : edges) edge.to->dependencies.push_back(edge.from);
  return CUDA_SUCCESS;
}

CUresult GraphRemoveDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                 const CUgraphEdgeData* data, size_t count) {
  GraphPointer graph;
  CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (HasMemoryNow(*graph)) return CUDA_ERROR_NOT_SUPPORTED;  // whatever the edges are
  Edges edges;
  code = FindEdges(*graph, from, to, count, &edges);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  if (!AreDefault(data, count)) return CUDA_ERROR_INVALID_VALUE;  // no edge is like that
  for (const Edge& edge : edges) {
    if (!edge.IsThere()) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const Edge& edge : edges) {
    auto& dependencies = edge.to->dependencies;
    dependencies.erase(std::find(dependencies.begin(), dependencies.end(), edge.from));
  }
  return CUDA_SUCCESS;
}

CUresult GraphGetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                       size_t* count) {
  GraphPointer graph;
  CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<NodePointer> starts;
  std::vector<NodePointer> ends;
  const auto lock = Captures::Lock();
  for (const NodePointer& node : graph->nodes) {
    starts.insert(starts.end(), node->dependencies.begin(), node->dependencies.end());
    ends.resize(starts.size(), node);
  }
  size_t places = *count;
  code = ListEnds(starts, from, data, count);
  return code == CUDA_SUCCESS ? ListNodes(ends, to, &places) : code;
}

CUresult GraphGetRootNodes(CUgraph handle, CUgraphNode* handles, size_t* count) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto lock = Captures::Lock();
  std::vector<NodePointer> roots;
  std::copy_if(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(roots),
               [](const NodePointer& node) { return node->dependencies.empty(); });
  return ListNodes(roots, handles, count);
}

CUresult GraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* dependencies,
                                  CUgraphEdgeData* data, size_t* count) {
  NodePointer node;
  const CUresult code = FindNode(handle, &node);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  return ListEnds(node->dependencies, dependencies, data, count);
}

CUresult GraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode* dependents,
                                    CUgraphEdgeData* data, size_t* count) {
  NodePointer node;
  CUresult code = FindNode(handle, &node);
  GraphPointer graph;
  if (code == CUDA_SUCCESS) code = FindGraph(node->graph, &graph);
  if (code != CUDA_SUCCESS) return code;
  const auto lock = Captures::Lock();
  std::vector<NodePointer> nodes;
  std::copy_if(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(nodes),
               [&](const NodePointer& other) {
                 return Edge{node, other}.IsThere();
               });
  return ListEnds(nodes, dependents, data, count);
}

// From before edges had data.

CUresult GraphAddDependenciesFirst(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return GraphAddDependencies(graph, from, to, nullptr, count);
}

CUresult GraphRemoveDependenciesFirst(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      size_t count) {
  return GraphRemoveDependencies(graph, from, to, nullptr, count);
}

CUresult GraphGetEdgesFirst(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return GraphGetEdges(graph, from, to, nullptr, count);
}

CUresult GraphNodeGetDependenciesFirst(CUgraphNode node, CUgraphNode* dependencies, size_t* count) {
  return GraphNodeGetDependencies(node, dependencies, nullptr, count);
}

CUresult GraphNodeGetDependentNodesFirst(CUgraphNode node, CUgraphNode* dependents, size_t* count) {
  return GraphNodeGetDependentNodes(node, dependents, nullptr, count);
}

}  // namespace cudasim::driver
