// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of graphs, and graphs in graphs.

#include <vector>

#include "cudasim/sim.h"
#include "test/busy.h"
#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(child_graph_facts)

using namespace cudasim_facts;

namespace {

size_t CountNodes(CUgraph graph) {
  size_t count = 0;
  OK(RAW(cuGraphGetNodes)(graph, nullptr, &count));
  return count;
}

CUgraph GraphOf(CUgraphNode node) {
  CUgraph graph = nullptr;
  OK(RAW(cuGraphChildGraphNodeGetGraph)(node, &graph));
  return graph;
}

struct NestGuest : GraphGuest {
  NestGuest() { OK(RAW(cuGraphCreate)(&inner, 0)); }
  ~NestGuest() {
    if (inner != nullptr) OK(RAW(cuGraphDestroy)(inner));
  }
  NestGuest(const NestGuest&) = delete;
  NestGuest& operator=(const NestGuest&) = delete;

  CUgraph inner = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_child_graph_runs_in_the_place_of_its_node) {
  const NestGuest guest;
  guest.AddFill(guest.inner, 0, 2);
  guest.AddFill(guest.inner, 1, 2);
  const CUgraphNode before = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode child = guest.AddChild(guest.graph, guest.inner, {before});
  guest.AddFill(guest.graph, 1, 3, {child});
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(RAW(cuGraphNodeGetType)(child, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_GRAPH);
  BOOST_TEST(CountNodes(guest.graph) == 3u);
  BOOST_TEST(Is(guest.Run(guest.graph), {2, 3, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_child_graph_is_a_copy) {
  NestGuest guest;
  guest.AddFill(guest.inner, 0, 1);
  const CUgraphNode child = guest.AddChild(guest.graph, guest.inner);
  const CUgraph embedded = GraphOf(child);
  BOOST_TEST(embedded != guest.inner);
  BOOST_TEST(GraphOf(child) == embedded);
  guest.AddFill(guest.inner, 1, 1);
  BOOST_TEST(CountNodes(embedded) == 1u);
  OK(RAW(cuGraphDestroy)(guest.inner));
  guest.inner = nullptr;
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 0, 0, 0}));
  guest.AddFill(embedded, 2, 5);  // a change of the node's own
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 0, 5, 0}));
}

BOOST_AUTO_TEST_CASE(an_executable_graph_keeps_its_child_graphs) {
  NestGuest guest;
  guest.AddFill(guest.inner, 0, 1);
  const CUgraphNode child = guest.AddChild(guest.graph, guest.inner);
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, guest.graph, 0));
  guest.AddFill(GraphOf(child), 1, 2);
  OK(RAW(cuGraphDestroyNode)(child));
  BOOST_TEST(CountNodes(guest.graph) == 0u);
  BOOST_TEST(Is(guest.Launch(executable), {1, 0, 0, 0}));
  OK(RAW(cuGraphExecDestroy)(executable));
}

BOOST_AUTO_TEST_CASE(child_graphs_have_child_graphs) {
  const NestGuest guest;
  CUgraph middle = nullptr;
  OK(RAW(cuGraphCreate)(&middle, 0));
  guest.AddFill(guest.inner, 0, 1);
  const CUgraphNode first = guest.AddChild(middle, guest.inner);
  guest.AddFill(middle, 1, 2, {first});
  guest.AddChild(guest.graph, middle);
  OK(RAW(cuGraphDestroy)(middle));
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 2, 0, 0}));
}

// An H200's driver, 580.159.04, crashed in the case above when it had this at its end.
BOOST_AUTO_TEST_CASE(a_graph_may_be_its_own_child, *cudasim_test::OnlySim()) {
  const NestGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.AddChild(guest.graph, guest.graph);  // as it was
  BOOST_TEST(CountNodes(guest.graph) == 2u);
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_child_graph_waits_for_its_stream) {
  const NestGuest guest;
  guest.AddFill(guest.inner, 0, 1);
  guest.AddChild(guest.graph, guest.inner);
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, guest.graph, 0));
  {
    Hold hold(guest.stream);
    OK(RAW(cuGraphLaunch)(executable, guest.stream));
    IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
    unsigned char byte = 1;
    OK(RAW(cuMemcpyDtoHAsync)(&byte, guest.memory, 1, guest.second));
    OK(RAW(cuStreamSynchronize)(guest.second));
    BOOST_TEST(int{byte} == 0);
  }
  BOOST_TEST(Is(guest.Launch(executable), {1, 0, 0, 0}));
  OK(RAW(cuGraphExecDestroy)(executable));
}

BOOST_AUTO_TEST_CASE(a_clone_is_a_graph_of_its_own) {
  NestGuest guest;
  guest.AddFill(guest.inner, 0, 1);
  const CUgraphNode child = guest.AddChild(guest.graph, guest.inner);
  const CUgraphNode fill = guest.AddFill(guest.graph, 1, 2, {child});
  CUgraph clone = nullptr;
  OK(RAW(cuGraphClone)(&clone, guest.graph));
  CUgraphNode cloned_child = nullptr;
  CUgraphNode cloned_fill = nullptr;
  OK(RAW(cuGraphNodeFindInClone)(&cloned_child, child, clone));
  OK(RAW(cuGraphNodeFindInClone)(&cloned_fill, fill, clone));
  BOOST_TEST(cloned_child != child);
  BOOST_TEST(cloned_fill != fill);
  BOOST_TEST(GraphOf(cloned_child) != GraphOf(child));
  const CUgraphNode later = guest.AddFill(guest.graph, 2, 3);
  IS(RAW(cuGraphNodeFindInClone)(&cloned_fill, later, clone), INVALID_VALUE);
  IS(RAW(cuGraphNodeFindInClone)(&cloned_fill, fill, guest.inner), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(guest.graph));
  guest.graph = nullptr;
  BOOST_TEST(Is(guest.Run(clone), {1, 2, 0, 0}));
  OK(RAW(cuGraphDestroy)(clone));
}

BOOST_AUTO_TEST_CASE(a_captured_graph_is_cloned) {
  const NestGuest guest;
  OK(Begin(guest.stream));
  OK(RAW(cuMemsetD8Async)(guest.memory, 7, 2, guest.stream));
  CUgraph captured = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &captured));
  guest.AddChild(guest.graph, captured);
  OK(RAW(cuGraphDestroy)(captured));
  BOOST_TEST(Is(guest.Run(guest.graph), {7, 7, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_child_graph_by_parameters_of_any_node) {
  const NestGuest guest;
  guest.AddFill(guest.inner, 0, 1);
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = guest.inner;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddNode)(&node, guest.graph, nullptr, nullptr, 0, &params));
  BOOST_TEST(CountNodes(GraphOf(node)) == 1u);
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(what_is_no_graph_is_no_child) {
  const NestGuest guest;
  CUgraphNode node = guest.AddFill(guest.graph, 0, 1);
  CUgraph graph = nullptr;
  IS(RAW(cuGraphAddChildGraphNode)(&node, guest.graph, nullptr, 0, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphAddChildGraphNode)(&node, nullptr, nullptr, 0, guest.inner), INVALID_VALUE);
  IS(RAW(cuGraphAddChildGraphNode)(nullptr, guest.graph, nullptr, 0, guest.inner), INVALID_VALUE);
  IS(RAW(cuGraphChildGraphNodeGetGraph)(node, &graph), INVALID_VALUE);  // a fill
  IS(RAW(cuGraphChildGraphNodeGetGraph)(nullptr, &graph), INVALID_VALUE);
  IS(RAW(cuGraphClone)(&graph, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphClone)(nullptr, guest.graph), INVALID_VALUE);
  BOOST_TEST(CountNodes(guest.graph) == 1u);
}

BOOST_AUTO_TEST_CASE(a_graph_with_memory_is_no_child) {
  const NestGuest guest;
  CUdeviceptr memory = 0;
  CUgraph captured = nullptr;
  OK(Begin(guest.stream));
  OK(RAW(cuMemAllocAsync)(&memory, 16, guest.stream));
  OK(RAW(cuMemFreeAsync)(memory, guest.stream));
  OK(RAW(cuStreamEndCapture)(guest.stream, &captured));
  CUgraphNode node = nullptr;
  CUgraph clone = nullptr;
  IS(RAW(cuGraphAddChildGraphNode)(&node, guest.graph, nullptr, 0, captured), NOT_SUPPORTED);
  IS(RAW(cuGraphClone)(&clone, captured), NOT_SUPPORTED);
  // Whatever else is wrong, but for a place.
  IS(RAW(cuGraphAddChildGraphNode)(&node, nullptr, nullptr, 1, captured), NOT_SUPPORTED);
  IS(RAW(cuGraphAddChildGraphNode)(nullptr, guest.graph, nullptr, 0, captured), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(captured));
}

BOOST_AUTO_TEST_CASE(only_graphs_of_the_program_are_counted, *cudasim_test::OnlySim()) {
  const size_t before = cudasim::Sim::Live().graphs;
  {
    const NestGuest guest;
    const CUgraphNode child = guest.AddChild(guest.graph, guest.inner);
    BOOST_TEST(cudasim::Sim::Live().graphs == before + 2);
    IS(RAW(cuGraphDestroy)(GraphOf(child)), INVALID_VALUE);
  }
  BOOST_TEST(cudasim::Sim::Live().graphs == before);
}

namespace {

int destroyed = 0;

}  // namespace

BOOST_AUTO_TEST_CASE(a_child_graph_has_references_of_its_own, *cudasim_test::OnlySim()) {
  NestGuest guest;
  CUuserObject object = nullptr;
  const auto destroy = [](void*) { ++destroyed; };
  OK(RAW(cuUserObjectCreate)(&object, nullptr, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(RAW(cuGraphRetainUserObject)(guest.inner, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  guest.AddFill(guest.inner, 0, 1);
  const CUgraphNode child = guest.AddChild(guest.graph, guest.inner);
  OK(RAW(cuGraphDestroy)(guest.inner));
  guest.inner = nullptr;
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, guest.graph, 0));
  OK(RAW(cuGraphDestroyNode)(child));
  BOOST_TEST(destroyed == 0);
  OK(RAW(cuGraphExecDestroy)(executable));
  BOOST_TEST(destroyed == 1);
}

BOOST_AUTO_TEST_SUITE_END()
