// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuGraphExecUpdate. Source: test/graph_update_facts_test.cc.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "driver/api.h"
#include "driver/graph/executable.h"
#include "driver/graph/replacement.h"
#include "driver/stream/capture.h"

namespace cudasim::driver {
namespace {

constexpr size_t kNoNode = static_cast<size_t>(-1);

// The nodes that no other depends on, the last one first.
std::vector<size_t> ExitsOf(const Shape& shape) {
  std::vector<bool> is_exit(shape.nodes.size(), true);
  for (const Shape::Node& node : shape.nodes) {
    for (const size_t dependency : node.dependencies) is_exit[dependency] = false;
  }
  std::vector<size_t> exits;
  for (size_t i = is_exit.size(); i-- > 0;) {
    if (is_exit[i]) exits.push_back(i);
  }
  return exits;
}

// How many nodes of an executable graph are of this one of its shape.
size_t CountWorks(const Shape::Node& node) {
  if (node.child == nullptr) return node.does_work ? 1 : 0;
  size_t count = 0;
  for (const Shape::Node& inner : node.child->nodes) count += CountWorks(inner);
  return count;
}

// Where each node's are among those of the executable graph; those of `shape` begin at `place`.
std::vector<size_t> PlacesOf(const Shape& shape, size_t place) {
  std::vector<size_t> places;
  for (const Shape::Node& node : shape.nodes) {
    places.push_back(place);
    place += CountWorks(node);
  }
  return places;
}

// A graph with its child graphs, in order, as it was when this was made.
struct Snapshot {
  struct Node {
    CUgraphNode handle;
    Work work;
    std::shared_ptr<const Snapshot> child;
  };

  explicit Snapshot(const Graph& graph) : shape(ShapeOf(graph)) {
    for (const NodePointer& node : InOrder(graph)) {
      nodes.push_back({node->handle, node->work, nullptr});
      const GraphPointer& child = node->work.child;
      if (child != nullptr) nodes.back().child = std::make_shared<Snapshot>(*child);
    }
  }

  Shape shape;
  std::vector<Node> nodes;
};

// Pairing
//
// Which node of a graph stands for which one of what was instantiated. The exits are paired, the
// last ones first, and then what two paired nodes depend on, in the order of their edges. A pair is
// compared whole before the next one. Source: test/graph_pairing_facts_test.cc. Not measured: that
// its parameters are compared before its edges, and child graphs behind the graph that has them.
class Pairing {
 public:
  // `compare`: what forbids that the second node, which is of the same type, takes over the first.
  using Compare = std::function<CUgraphExecUpdateResult(size_t old, size_t node)>;

  Pairing(const Shape& old, const Shape& shape, Compare compare)
      : old_(old),
        new_(shape),
        compare_(std::move(compare)),
        new_of_(old.nodes.size(), kNoNode),
        old_of_(shape.nodes.size(), kNoNode) {}

  // False if the two do not match: then failure() says why, with nodes of the new graph.
  bool Run() {
    if (old_.nodes.size() != new_.nodes.size()) return Fail();
    const std::vector<size_t> old_exits = ExitsOf(old_);
    const std::vector<size_t> exits = ExitsOf(new_);
    if (exits.size() < old_exits.size()) return Fail();
    if (exits.size() > old_exits.size()) return Fail(exits[old_exits.size()]);
    for (size_t i = 0; i < exits.size(); ++i) Pair(old_exits[i], exits[i]);
    for (size_t i = 0; i < pairs_.size(); ++i) {  // which grow
      const auto [old, node] = pairs_[i];
      if (!PairDependencies(old, node)) return false;
    }
    return pairs_.size() == new_.nodes.size() || Fail();
  }

  struct Failure {
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    size_t node = kNoNode;
    size_t from = kNoNode;
  };
  const Failure& failure() const { return failure_; }

  size_t NewOf(size_t old) const { return new_of_[old]; }

 private:
  bool Fail(size_t node = kNoNode, size_t from = kNoNode) {
    failure_ = {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from};
    return false;
  }

  void Pair(size_t old, size_t node) {
    new_of_[old] = node;
    old_of_[node] = old;
    pairs_.emplace_back(old, node);
  }

  bool PairDependencies(size_t old, size_t node) {
    const std::vector<size_t>& before = old_.nodes[old].dependencies;
    const std::vector<size_t>& after = new_.nodes[node].dependencies;
    if (before.size() != after.size()) return Fail(node);
    const CUgraphExecUpdateResult result = old_.nodes[old].type == new_.nodes[node].type
                                               ? compare_(old, node)
                                               : CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      failure_ = {result, node, kNoNode};
      return false;
    }
    for (size_t i = 0; i < before.size(); ++i) {
      const bool is_first = new_of_[before[i]] == kNoNode && old_of_[after[i]] == kNoNode;
      if (is_first) Pair(before[i], after[i]);
      if (new_of_[before[i]] != after[i]) return Fail(node, after[i]);
    }
    return true;
  }

  const Shape& old_;
  const Shape& new_;
  const Compare compare_;
  std::vector<size_t> new_of_;
  std::vector<size_t> old_of_;
  std::vector<std::pair<size_t, size_t>> pairs_;
  Failure failure_;
};

// Update
//
// The work of a graph's nodes on its way into an executable graph.
class Update {
 public:
  explicit Update(std::vector<ExecutableNode>* nodes) : nodes_(*nodes), works_(nodes->size()) {}

  // Of the graph and its child graphs, which must outlive this; the shape's nodes begin at `first`.
  // Not SUCCESS: the graph does not match.
  CUresult Collect(const Shape& shape, const Snapshot& graph, size_t first = 0) {
    const std::vector<size_t> places = PlacesOf(shape, first);
    const auto compare = [&](size_t old, size_t node) {
      const Snapshot::Node& now = graph.nodes[node];
      if (!shape.nodes[old].does_work) return CU_GRAPH_EXEC_UPDATE_SUCCESS;
      works_[places[old]] = &now;
      return CheckReplacement(nodes_[places[old]].work, now.work);
    };
    Pairing pairing(shape, graph.shape, compare);
    if (!pairing.Run()) {
      const Pairing::Failure& failure = pairing.failure();
      return Fail(failure.result, HandleOf(graph, failure.node), HandleOf(graph, failure.from));
    }
    for (size_t old = 0; old < shape.nodes.size(); ++old) {
      const auto& child = shape.nodes[old].child;
      if (child == nullptr) continue;
      const CUresult code = Collect(*child, *graph.nodes[pairing.NewOf(old)].child, places[old]);
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }

  // Not SUCCESS: some nodes of the executable graph are changed.
  CUresult TakeOver() {
    for (size_t i = 0; i < works_.size(); ++i) {
      const Snapshot::Node& node = *works_[i];
      const CUgraphExecUpdateResult result = Replace(&nodes_[i].work, node.work);
      if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return Fail(result, node.handle);
      info_ = {CU_GRAPH_EXEC_UPDATE_ERROR, node.handle, nullptr};
      if (!node.work.is_valid()) return CUDA_ERROR_INVALID_VALUE;
    }
    info_ = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
    return CUDA_SUCCESS;
  }

  const CUgraphExecUpdateResultInfo& info() const { return info_; }

 private:
  static CUgraphNode HandleOf(const Snapshot& graph, size_t node) {
    return node != kNoNode ? graph.nodes[node].handle : nullptr;
  }

  CUresult Fail(CUgraphExecUpdateResult result, CUgraphNode node, CUgraphNode from = nullptr) {
    info_ = {result, node, from};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }

  std::vector<ExecutableNode>& nodes_;        // in the order of the shape's
  std::vector<const Snapshot::Node*> works_;  // that they become
  CUgraphExecUpdateResultInfo info_ = {};
};

}  // namespace

// The nodes stay those of the graph that was instantiated; the user objects and the memory become
// the other's. Memory has one instance at a time; that it is the updated one from here on is not
// measured.
CUresult GraphExecUpdate(CUgraphExec handle, CUgraph graph_handle,
                         CUgraphExecUpdateResultInfo* info) {
  CUgraphExecUpdateResultInfo unread;
  if (info == nullptr) info = &unread;
  *info = {};
  Executable executable;
  CUresult code = FindExecutable(handle, &executable);
  if (code != CUDA_SUCCESS) return code;
  GraphPointer graph;
  code = FindGraph(graph_handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  Update update(&executable.nodes);
  std::optional<Snapshot> snapshot;
  UserObjects objects;
  bool has_memory = false;
  {
    const auto lock = Captures::Lock();
    has_memory = HasMemory(*graph);
    const auto instance = graph->instance.lock();
    if (instance != nullptr && instance != executable.instance) return CUDA_ERROR_NOT_SUPPORTED;
    snapshot.emplace(*graph);
    objects = UserObjectsOf(*graph);
  }
  code = update.Collect(executable.shape, *snapshot);
  if (code == CUDA_SUCCESS) code = update.TakeOver();
  *info = update.info();
  if (code != CUDA_SUCCESS) return code;
  std::swap(executable.user_objects, objects);
  if (has_memory) {
    executable.instance = std::make_shared<int>();
    graph->instance = executable.instance;
  }
  SetExecutable(handle, executable);
  return CUDA_SUCCESS;
}

CUresult GraphExecUpdateFirst(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                              CUgraphExecUpdateResult* result) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info = {};
  const CUresult code = GraphExecUpdate(executable, graph, &info);
  *result = info.result;
  if (error_node != nullptr) *error_node = info.errorNode;
  return code;
}

}  // namespace cudasim::driver
