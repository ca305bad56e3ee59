// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of modelled functions with what is not modelled: they answer that it is not supported, do
// nothing, and are counted by their symbol.

#include "cudasim/sim.h"
#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(sim_unmodelled, *cudasim_test::OnlySim())

using namespace cudasim_facts;
using cudasim::Sim;

namespace {

// That `call` is refused, and counted once as `symbol`.
template <typename Call>
void CheckCounted(const char* symbol, const Call& call) {
  const auto before = Sim::UnmodelledCalls(symbol);
  BOOST_TEST_CONTEXT(symbol) {
    IS(call(), NOT_SUPPORTED);
    BOOST_TEST(Sim::UnmodelledCalls(symbol) == before + 1);
  }
}

size_t CountNodes(CUgraph graph) {
  size_t count = 0;
  OK(RAW(cuGraphGetNodes)(graph, nullptr, &count));
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_a_graph) {
  const GraphGuest guest;
  const CUgraphNode from = guest.AddFill(guest.graph, 0, 1), to = guest.AddFill(guest.graph, 1, 2);
  CUgraphEdgeData edge = {};
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  CheckCounted("cuGraphAddDependencies_v2",
               [&] { return RAW(cuGraphAddDependencies)(guest.graph, &from, &to, &edge, 1); });
  CUgraphNode node = nullptr;
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CheckCounted("cuGraphAddNode_v2", [&] {
    return RAW(cuGraphAddNode)(&node, guest.graph, nullptr, nullptr, 0, &params);
  });
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CheckCounted("cuGraphAddNode_v2",
               [&] { return RAW(cuGraphAddNode)(&node, guest.graph, &from, &edge, 1, &params); });
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  CheckCounted("cuGraphNodeSetParams", [&] { return RAW(cuGraphNodeSetParams)(from, &params); });
  CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  allocation.bytesize = 64;
  CheckCounted("cuGraphAddMemAllocNode", [&] {
    return RAW(cuGraphAddMemAllocNode)(&node, guest.graph, nullptr, 0, &allocation);
  });
  CUevent event = nullptr;
  OK(RAW(cuEventCreate)(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  CheckCounted("cuGraphAddEventRecordNode", [&] {
    return RAW(cuGraphAddEventRecordNode)(&node, guest.graph, nullptr, 0, event);
  });
  OK(RAW(cuEventDestroy)(event));
  BOOST_TEST(CountNodes(guest.graph) == 2u);
}

BOOST_AUTO_TEST_CASE(of_a_stream) {
  const Guest guest;
  CUstreamAttrValue value = {};
  value.priority = -1;
  CheckCounted("cuStreamSetAttribute", [&] {
    return RAW(cuStreamSetAttribute)(guest.stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
  });
  OK(Begin(guest.stream));
  CUgraphEdgeData edge = {};
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  CUgraphNode node = nullptr;
  CheckCounted("cuStreamUpdateCaptureDependencies_v2", [&] {
    return RAW(cuStreamUpdateCaptureDependencies)(guest.stream, &node, &edge, 1, 0);
  });
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(of_a_link) {
  const Guest guest;
  CUjit_option option = CU_JIT_REFERENCED_KERNEL_COUNT;
  void* value = reinterpret_cast<void*>(1);
  CUlinkState state = nullptr;
  CheckCounted("cuLinkCreate_v2", [&] { return RAW(cuLinkCreate)(1, &option, &value, &state); });
}

BOOST_AUTO_TEST_SUITE_END()
