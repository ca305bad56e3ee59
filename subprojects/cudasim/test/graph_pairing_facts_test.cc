// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which node of a graph cuGraphExecUpdate takes for which one of what was instantiated, and the
// first difference that it tells: of pairs of graphs that are drawn at random.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(graph_pairing_facts)

using namespace cudasim_facts;

namespace {

// Nodes in the order in which they are made, each with what it depends on.
struct Plan {
  struct Node {
    bool is_empty = true;  // or else a host function
    std::vector<int> dependencies;
  };
  std::vector<Node> nodes;

  int size() const { return static_cast<int>(nodes.size()); }

  // The nodes that no other depends on, the last one first.
  std::vector<int> Exits() const {
    std::vector<bool> is_exit(nodes.size(), true);
    for (const Node& node : nodes) {
      for (const int dependency : node.dependencies) is_exit[dependency] = false;
    }
    std::vector<int> exits;
    for (int i = size(); i-- > 0;) {
      if (is_exit[i]) exits.push_back(i);
    }
    return exits;
  }
};

std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  for (const Plan::Node& node : plan.nodes) {
    out << (node.is_empty ? 'E' : 'H');
    for (const int dependency : node.dependencies) out << dependency;
    out << ' ';
  }
  return out;
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int operator()(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Plan AnyPlan() {
    Plan plan;
    const int size = 1 + (*this)(6);
    for (int i = 0; i < size; ++i) {
      Plan::Node node = {(*this)(4) != 0, {}};
      for (int before = 0; before < i; ++before) {
        if ((*this)(2) != 0) node.dependencies.push_back(before);
      }
      std::shuffle(node.dependencies.begin(), node.dependencies.end(), random_);
      plan.nodes.push_back(node);
    }
    return plan;
  }

  // Most of the plan.
  Plan Changed(const Plan& plan) {
    Plan changed = plan;
    const int changes = (*this)(3);
    for (int i = 0; i < changes; ++i) Change(&changed);
    return changed;
  }

 private:
  void Change(Plan* plan) {
    const int at = (*this)(plan->size());
    Plan::Node& node = plan->nodes[at];
    std::vector<int>& dependencies = node.dependencies;
    switch ((*this)(6)) {
      case 0:
        node.is_empty = !node.is_empty;
        return;
      case 1:
        std::reverse(dependencies.begin(), dependencies.end());
        return;
      case 2:
        if (!dependencies.empty()) dependencies.pop_back();
        return;
      case 3:
        for (int before = 0; before < at; ++before) {
          if (std::count(dependencies.begin(), dependencies.end(), before) != 0) continue;
          dependencies.push_back(before);
          return;
        }
        return;
      case 4:
        if (plan->size() > 1) plan->nodes.pop_back();
        return;
      default:
        Swap(plan, at);
        return;
    }
  }

  // Two neighbours change places, unless one depends on the other.
  static void Swap(Plan* plan, int at) {
    if (at + 1 == plan->size()) return;
    const std::vector<int>& after = plan->nodes[at + 1].dependencies;
    if (std::count(after.begin(), after.end(), at) != 0) return;
    std::swap(plan->nodes[at], plan->nodes[at + 1]);
    for (Plan::Node& node : plan->nodes) {
      for (int& dependency : node.dependencies) {
        if (dependency == at || dependency == at + 1) dependency = 2 * at + 1 - dependency;
      }
    }
  }

  std::mt19937 random_;
};

// A result, and places of nodes in the new graph: -1 for none.
struct Told {
  CUgraphExecUpdateResult result;
  int node;
  int from;

  bool operator==(const Told& other) const {
    return result == other.result && node == other.node && from == other.from;
  }
};

std::ostream& operator<<(std::ostream& out, const Told& told) {
  return out << "result " << told.result << ", node " << told.node << ", from " << told.from;
}

// The exits are paired, and then what two paired nodes depend on, in the order of their edges.
Told Expected(const Plan& old, const Plan& plan) {
  constexpr auto kTopology = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (old.size() != plan.size()) return {kTopology, -1, -1};
  const std::vector<int> old_exits = old.Exits();
  const std::vector<int> exits = plan.Exits();
  if (exits.size() < old_exits.size()) return {kTopology, -1, -1};
  if (exits.size() > old_exits.size()) return {kTopology, exits[old_exits.size()], -1};
  std::vector<std::pair<int, int>> pairs;
  std::map<int, int> new_of;
  std::map<int, int> old_of;
  const auto pair = [&](int one, int other) {
    if (new_of.count(one) != 0 || old_of.count(other) != 0) return new_of[one] == other;
    new_of[one] = other;
    old_of[other] = one;
    pairs.emplace_back(one, other);
    return true;
  };
  for (size_t i = 0; i < exits.size(); ++i) pair(old_exits[i], exits[i]);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [one, other] = pairs[i];
    const Plan::Node& before = old.nodes[one];
    const Plan::Node& after = plan.nodes[other];
    if (before.dependencies.size() != after.dependencies.size()) return {kTopology, other, -1};
    if (before.is_empty != after.is_empty) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other, -1};
    }
    for (size_t edge = 0; edge < after.dependencies.size(); ++edge) {
      const int from = after.dependencies[edge];
      if (!pair(before.dependencies[edge], from)) return {kTopology, other, from};
    }
  }
  return {CU_GRAPH_EXEC_UPDATE_SUCCESS, -1, -1};
}

class Built {
 public:
  explicit Built(const Plan& plan) {
    OK(RAW(cuGraphCreate)(&graph_, 0));
    for (const Plan::Node& node : plan.nodes) nodes_.push_back(Add(node));
  }
  Built(const Built&) = delete;
  Built& operator=(const Built&) = delete;
  ~Built() { OK(RAW(cuGraphDestroy)(graph_)); }

  CUgraph graph() const { return graph_; }
  int PlaceOf(CUgraphNode node) const {
    if (node == nullptr) return -1;
    return static_cast<int>(std::find(nodes_.begin(), nodes_.end(), node) - nodes_.begin());
  }

 private:
  CUgraphNode Add(const Plan::Node& node) const {
    std::vector<CUgraphNode> before;
    for (const int dependency : node.dependencies) before.push_back(nodes_[dependency]);
    CUDA_HOST_NODE_PARAMS params = {};
    params.fn = [](void*) {};
    CUgraphNode made = nullptr;
    OK(node.is_empty
           ? RAW(cuGraphAddEmptyNode)(&made, graph_, before.data(), before.size())
           : RAW(cuGraphAddHostNode)(&made, graph_, before.data(), before.size(), &params));
    return made;
  }

  CUgraph graph_ = nullptr;
  std::vector<CUgraphNode> nodes_;
};

Told Update(const Plan& old, const Plan& plan) {
  const Built first(old);
  const Built second(plan);
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, first.graph(), 0));
  CUgraphExecUpdateResultInfo info = {};
  const CUresult code = RAW(cuGraphExecUpdate)(executable, second.graph(), &info);
  const bool is_updated = info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS;
  BOOST_CHECK_EQUAL(code, is_updated ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  OK(RAW(cuGraphExecDestroy)(executable));
  return {info.result, second.PlaceOf(info.errorNode), second.PlaceOf(info.errorFromNode)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(nodes_are_paired_from_the_last_exit_on) {
  const OwnContext context;
  SetStack({context.get()});
  Draw draw(1);
  std::map<CUgraphExecUpdateResult, int> seen;
  for (int i = 0; i < 3000; ++i) {
    const Plan old = draw.AnyPlan();
    const Plan plan = draw.Changed(old);
    const Told expected = Expected(old, plan);
    BOOST_TEST_CONTEXT(old << "updated with " << plan) {
      BOOST_CHECK_EQUAL(Update(old, plan), expected);
    }
    ++seen[expected.result];
  }
  BOOST_TEST(seen[CU_GRAPH_EXEC_UPDATE_SUCCESS] > 500);
  BOOST_TEST(seen[CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED] > 500);
  BOOST_TEST(seen[CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED] > 100);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
