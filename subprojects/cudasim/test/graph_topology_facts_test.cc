// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The edges of graphs.

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(graph_topology_facts)

using namespace cudasim_facts;

namespace {

using NodeSet = std::set<CUgraphNode>;
using Edge = std::pair<CUgraphNode, CUgraphNode>;
using EdgeSet = std::set<Edge>;

// From before edges had data.
using ChangeFirst = CUresult(CUDAAPI*)(CUgraph, const CUgraphNode*, const CUgraphNode*, size_t);
using EdgesFirst = CUresult(CUDAAPI*)(CUgraph, CUgraphNode*, CUgraphNode*, size_t*);
using ListFirst = CUresult(CUDAAPI*)(CUgraphNode, CUgraphNode*, size_t*);

bool IsDefault(const CUgraphEdgeData& data) {
  const CUgraphEdgeData none = {};
  return std::memcmp(&data, &none, sizeof(data)) == 0;
}

// What a list tells to one who asks for the number first; `ask` is called with the places and
// their number.
template <typename Ask>
NodeSet SetOf(const Ask& ask) {
  size_t count = 99;
  OK(ask(nullptr, &count));
  Nodes nodes(count);
  if (count != 0) OK(ask(nodes.data(), &count));
  BOOST_TEST(count == nodes.size());
  return {nodes.begin(), nodes.end()};
}

NodeSet RootsOf(CUgraph graph) {
  return SetOf([&](CUgraphNode* nodes, size_t* count) {
    return RAW(cuGraphGetRootNodes)(graph, nodes, count);
  });
}
NodeSet DependenciesOf(CUgraphNode node) {
  return SetOf([&](CUgraphNode* nodes, size_t* count) {
    return RAW(cuGraphNodeGetDependencies)(node, nodes, nullptr, count);
  });
}
NodeSet DependentsOf(CUgraphNode node) {
  return SetOf([&](CUgraphNode* nodes, size_t* count) {
    return RAW(cuGraphNodeGetDependentNodes)(node, nodes, nullptr, count);
  });
}
EdgeSet EdgesOf(CUgraph graph) {
  size_t count = 99;
  OK(RAW(cuGraphGetEdges)(graph, nullptr, nullptr, nullptr, &count));
  Nodes from(count + 1);
  Nodes to(count + 1);
  OK(RAW(cuGraphGetEdges)(graph, from.data(), to.data(), nullptr, &count));
  EdgeSet edges;
  for (size_t i = 0; i < count; ++i) edges.emplace(from[i], to[i]);
  BOOST_TEST(edges.size() == count);
  return edges;
}

CUresult Add(CUgraph graph, const Edge& edge) {
  return RAW(cuGraphAddDependencies)(graph, &edge.first, &edge.second, nullptr, 1);
}
CUresult Remove(CUgraph graph, const Edge& edge) {
  return RAW(cuGraphRemoveDependencies)(graph, &edge.first, &edge.second, nullptr, 1);
}

CUgraphNode AddEmpty(CUgraph graph, const Nodes& after = {}) {
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&node, graph, after.data(), after.size()));
  return node;
}

// Two ways from a node to another.
struct Diamond : GraphGuest {
  Diamond()
      : top(AddEmpty(graph)),
        left(AddEmpty(graph, {top})),
        right(AddEmpty(graph, {top})),
        bottom(AddEmpty(graph, {left, right})) {}

  EdgeSet Edges() const { return {{top, left}, {top, right}, {left, bottom}, {right, bottom}}; }

  const CUgraphNode top;
  const CUgraphNode left;
  const CUgraphNode right;
  const CUgraphNode bottom;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_graph_tells_its_edges) {
  const Diamond guest;
  BOOST_CHECK(EdgesOf(guest.graph) == guest.Edges());
  BOOST_CHECK(RootsOf(guest.graph) == NodeSet({guest.top}));
  BOOST_CHECK(DependenciesOf(guest.bottom) == NodeSet({guest.left, guest.right}));
  BOOST_CHECK(DependenciesOf(guest.top) == NodeSet());
  BOOST_CHECK(DependentsOf(guest.top) == NodeSet({guest.left, guest.right}));
  BOOST_CHECK(DependentsOf(guest.bottom) == NodeSet());
}

BOOST_AUTO_TEST_CASE(lists_have_as_many_places_as_they_are_given) {
  const Diamond guest;
  const auto mark = reinterpret_cast<CUgraphNode>(0x77);
  Nodes from(6, mark);
  Nodes to(6, mark);
  std::vector<CUgraphEdgeData> data(6);
  size_t count = 5;
  OK(RAW(cuGraphGetEdges)(guest.graph, from.data(), to.data(), data.data(), &count));
  BOOST_TEST(count == 4u);
  for (size_t i = 0; i < 4; ++i) {
    BOOST_TEST(guest.Edges().count({from[i], to[i]}) == 1u);
    BOOST_TEST(IsDefault(data[i]));
  }
  BOOST_TEST(from[4] == nullptr);
  BOOST_TEST(to[4] == nullptr);
  BOOST_TEST(from[5] == mark);
  BOOST_TEST(to[5] == mark);

  Nodes nodes(4, mark);
  count = 3;
  OK(RAW(cuGraphNodeGetDependencies)(guest.bottom, nodes.data(), data.data(), &count));
  BOOST_TEST(count == 2u);
  BOOST_TEST(nodes[2] == nullptr);
  BOOST_TEST(nodes[3] == mark);
  count = 3;
  OK(RAW(cuGraphNodeGetDependentNodes)(guest.top, nodes.data(), data.data(), &count));
  BOOST_TEST(count == 2u);
  BOOST_TEST(nodes[2] == nullptr);
  count = 3;
  OK(RAW(cuGraphGetRootNodes)(guest.graph, nodes.data(), &count));
  BOOST_TEST(count == 1u);
  BOOST_TEST(nodes[0] == guest.top);
  BOOST_TEST(nodes[1] == nullptr);

  count = 1;
  nodes.assign(4, mark);
  OK(RAW(cuGraphNodeGetDependencies)(guest.bottom, nodes.data(), nullptr, &count));
  BOOST_TEST(count == 1u);
  BOOST_TEST((nodes[0] == guest.left || nodes[0] == guest.right));
  BOOST_TEST(nodes[1] == mark);
}

BOOST_AUTO_TEST_CASE(the_first_forms_do_the_same) {
  const Diamond guest;
  Nodes from(4);
  Nodes to(4);
  size_t count = 4;
  OK(RAW_AS(EdgesFirst, "cuGraphGetEdges")(guest.graph, from.data(), to.data(), &count));
  BOOST_TEST(count == 4u);
  for (size_t i = 0; i < count; ++i) BOOST_TEST(guest.Edges().count({from[i], to[i]}) == 1u);
  OK(RAW_AS(ListFirst, "cuGraphNodeGetDependencies")(guest.left, from.data(), &count));
  BOOST_TEST(count == 1u);
  BOOST_TEST(from[0] == guest.top);
  OK(RAW_AS(ListFirst, "cuGraphNodeGetDependentNodes")(guest.left, to.data(), &count));
  BOOST_TEST(count == 1u);
  BOOST_TEST(to[0] == guest.bottom);
  OK(RAW_AS(ChangeFirst, "cuGraphAddDependencies")(guest.graph, &guest.top, &guest.bottom, 1));
  BOOST_TEST(EdgesOf(guest.graph).count({guest.top, guest.bottom}) == 1u);
  OK(RAW_AS(ChangeFirst, "cuGraphRemoveDependencies")(guest.graph, &guest.top, &guest.bottom, 1));
  BOOST_CHECK(EdgesOf(guest.graph) == guest.Edges());
}

BOOST_AUTO_TEST_CASE(edges_order_nodes_that_were_added_the_other_way_round) {
  const GraphGuest guest;
  const CUgraphNode last = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode second = guest.AddFill(guest.graph, 0, 2);
  const CUgraphNode first = guest.AddFill(guest.graph, 0, 3);
  const CUgraphNode from[] = {first, second};
  const CUgraphNode to[] = {second, last};
  const CUgraphEdgeData data[2] = {};
  OK(RAW(cuGraphAddDependencies)(guest.graph, from, to, data, 2));
  BOOST_CHECK(EdgesOf(guest.graph) == EdgeSet({{first, second}, {second, last}}));
  BOOST_CHECK(RootsOf(guest.graph) == NodeSet({first}));
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 0, 0, 0}));
  OK(RAW(cuGraphRemoveDependencies)(guest.graph, from, to, data, 2));
  OK(RAW(cuGraphAddDependencies)(guest.graph, to, from, nullptr, 2));
  BOOST_CHECK(RootsOf(guest.graph) == NodeSet({last}));
  BOOST_TEST(Is(guest.Run(guest.graph), {3, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(edges_are_taken_out) {
  const Diamond guest;
  OK(Remove(guest.graph, {guest.top, guest.left}));
  BOOST_CHECK(RootsOf(guest.graph) == NodeSet({guest.top, guest.left}));
  BOOST_CHECK(DependentsOf(guest.top) == NodeSet({guest.right}));
  IS(Remove(guest.graph, {guest.top, guest.left}), INVALID_VALUE);
  OK(Add(guest.graph, {guest.top, guest.left}));
  BOOST_CHECK(EdgesOf(guest.graph) == guest.Edges());
  OK(RAW(cuGraphDestroyNode)(guest.left));
  BOOST_CHECK(EdgesOf(guest.graph) ==
              EdgeSet({{guest.top, guest.right}, {guest.right, guest.bottom}}));
}

BOOST_AUTO_TEST_CASE(bad_edges_are_refused) {
  const Diamond guest;
  CUgraph other = nullptr;
  OK(RAW(cuGraphCreate)(&other, 0));
  const CUgraphNode foreign = AddEmpty(other);
  const auto add = [&](const CUgraphNode* from, const CUgraphNode* to, size_t count) {
    return RAW(cuGraphAddDependencies)(guest.graph, from, to, nullptr, count);
  };
  IS(Add(guest.graph, {guest.top, guest.left}), INVALID_VALUE);  // it is there
  IS(Add(guest.graph, {guest.top, foreign}), INVALID_VALUE);
  IS(Add(guest.graph, {foreign, guest.top}), INVALID_VALUE);
  IS(Add(guest.graph, {guest.top, nullptr}), INVALID_VALUE);
  IS(Add(nullptr, {guest.top, guest.bottom}), INVALID_VALUE);
  IS(add(nullptr, &guest.bottom, 1), INVALID_VALUE);
  IS(add(&guest.top, nullptr, 1), INVALID_VALUE);
  OK(add(nullptr, nullptr, 0));
  OK(add(&guest.top, &guest.top, 0));
  IS(Remove(guest.graph, {guest.top, guest.bottom}), INVALID_VALUE);  // it is not there
  IS(Remove(guest.graph, {foreign, guest.bottom}), INVALID_VALUE);
  IS(Remove(guest.graph, {guest.left, guest.top}), INVALID_VALUE);
  IS(Remove(guest.graph, {guest.left, guest.left}), INVALID_VALUE);
  BOOST_CHECK(EdgesOf(guest.graph) == guest.Edges());
  size_t count = 1;
  CUgraphNode node = nullptr;
  IS(RAW(cuGraphGetEdges)(guest.graph, nullptr, nullptr, nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphGetEdges)(nullptr, nullptr, nullptr, nullptr, &count), INVALID_VALUE);
  IS(RAW(cuGraphGetRootNodes)(guest.graph, &node, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphNodeGetDependencies)(guest.left, &node, nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphNodeGetDependentNodes)(nullptr, &node, nullptr, &count), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(other));
}

BOOST_AUTO_TEST_CASE(a_graph_with_a_cycle_is_not_instantiated) {
  const Diamond guest;
  OK(Add(guest.graph, {guest.bottom, guest.top}));
  CUgraphExec executable = nullptr;
  IS(RAW(cuGraphInstantiateWithFlags)(&executable, guest.graph, 0), INVALID_VALUE);
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  IS(RAW(cuGraphInstantiateWithParams)(&executable, guest.graph, &params), INVALID_VALUE);
  BOOST_CHECK_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  const CUgraphNode nodes[] = {guest.top, guest.left, guest.right, guest.bottom};
  BOOST_TEST(std::count(nodes, nodes + 4, params.hErrNode_out) == 1);
  OK(Remove(guest.graph, {guest.bottom, guest.top}));
  guest.AddFill(guest.graph, 0, 4, {guest.bottom});
  BOOST_TEST(Is(guest.Run(guest.graph), {4, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_captured_graph_has_the_edges_of_its_streams) {
  const GraphGuest guest;
  OK(Begin(guest.stream));
  OK(guest.Fill(guest.stream));
  guest.Fork(guest.second);
  OK(guest.Fill(guest.second));
  OK(guest.Fill(guest.stream));
  OK(guest.Record(guest.captured, guest.second));
  OK(guest.Wait(guest.stream, guest.captured));
  OK(guest.Fill(guest.stream));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  BOOST_TEST(EdgesOf(graph).size() == 4u);
  const NodeSet roots = RootsOf(graph);
  BOOST_REQUIRE(roots.size() == 1u);
  const NodeSet branches = DependentsOf(*roots.begin());
  BOOST_REQUIRE(branches.size() == 2u);
  const NodeSet joined = DependentsOf(*branches.begin());
  BOOST_REQUIRE(joined.size() == 1u);
  BOOST_CHECK(DependenciesOf(*joined.begin()) == branches);
  OK(Add(graph, {*branches.begin(), *branches.rbegin()}));
  BOOST_TEST(EdgesOf(graph).size() == 5u);
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(a_clone_has_the_same_edges) {
  const GraphGuest guest;
  const CUgraphNode last = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode first = guest.AddFill(guest.graph, 0, 2);
  OK(Add(guest.graph, {first, last}));
  CUgraph clone = nullptr;
  OK(RAW(cuGraphClone)(&clone, guest.graph));
  Edge edge;
  OK(RAW(cuGraphNodeFindInClone)(&edge.first, first, clone));
  OK(RAW(cuGraphNodeFindInClone)(&edge.second, last, clone));
  BOOST_CHECK(EdgesOf(clone) == EdgeSet({edge}));
  OK(Remove(guest.graph, {first, last}));
  BOOST_CHECK(EdgesOf(clone) == EdgeSet({edge}));
  BOOST_TEST(Is(guest.Run(clone), {1, 0, 0, 0}));
  OK(RAW(cuGraphDestroy)(clone));
}

BOOST_AUTO_TEST_CASE(an_executable_graph_takes_over_nodes_that_were_added_in_another_order) {
  const GraphGuest guest;
  const CUgraphNode first = guest.AddFill(guest.graph, 0, 1);
  guest.AddFill(guest.graph, 0, 2, {first});
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, guest.graph, 0));
  CUgraph other = nullptr;
  OK(RAW(cuGraphCreate)(&other, 0));
  const CUgraphNode last = guest.AddFill(other, 0, 4);
  OK(Add(other, {guest.AddFill(other, 0, 3), last}));
  CUgraphExecUpdateResultInfo info = {};
  OK(RAW(cuGraphExecUpdate)(executable, other, &info));
  BOOST_TEST(Is(guest.Launch(executable), {4, 0, 0, 0}));
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(other));
}

BOOST_AUTO_TEST_CASE(a_graph_with_memory_keeps_its_nodes_and_edges) {
  const GraphGuest guest;
  CUdeviceptr pointer = 0;
  OK(Begin(guest.stream));
  OK(RAW(cuMemAllocAsync)(&pointer, 256, guest.stream));
  OK(RAW(cuMemFreeAsync)(pointer, guest.stream));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  const EdgeSet edges = EdgesOf(graph);
  BOOST_REQUIRE(edges.size() == 1u);
  const CUgraphNode node = edges.begin()->second;
  IS(Remove(graph, *edges.begin()), NOT_SUPPORTED);
  IS(Remove(graph, {node, node}), NOT_SUPPORTED);  // whatever the edge is
  IS(RAW(cuGraphRemoveDependencies)(graph, nullptr, nullptr, nullptr, 0), NOT_SUPPORTED);
  IS(RAW(cuGraphDestroyNode)(node), NOT_SUPPORTED);
  BOOST_CHECK(EdgesOf(graph) == edges);
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_SUITE_END()
