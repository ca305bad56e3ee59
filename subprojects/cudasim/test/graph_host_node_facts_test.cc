// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the user's in graphs.

#include <utility>
#include <vector>

#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(graph_host_node_facts)

using namespace cudasim_facts;

namespace {

void CUDA_CB AddOne(void* number) { *static_cast<int*>(number) += 1; }
void CUDA_CB AddTen(void* number) { *static_cast<int*>(number) += 10; }

struct HostGuest : GraphGuest {
  ~HostGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
  }

  void Add(CUhostFn function, void* data) {
    const CUDA_HOST_NODE_PARAMS params = {function, data};
    OK(RAW(cuGraphAddHostNode)(&node, graph, nullptr, 0, &params));
  }
  void Instantiate() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  }
  // What is in the number behind a launch, if it was 0 before.
  int Count() {
    number = other_number = 0;
    Launch(executable);
    return number;
  }

  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  int number = 0;
  int other_number = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_host_node_runs_between_those_it_depends_on_and_those_that_depend_on_it) {
  const GraphGuest guest;
  auto* const bytes = static_cast<unsigned char*>(guest.host);
  const auto copy = [&](CUgraphNode after, bool to_host) {
    CUDA_MEMCPY3D of = {};
    of.srcMemoryType = to_host ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    of.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    of.srcDevice = of.dstDevice = guest.memory;
    of.srcHost = of.dstHost = guest.host;
    of.WidthInBytes = of.Height = of.Depth = 1;
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphAddMemcpyNode)(&node, guest.graph, &after, 1, &of, guest.context.get()));
    return node;
  };
  const CUgraphNode read = copy(guest.AddFill(guest.graph, 0, 3), /*to_host=*/true);
  const CUDA_HOST_NODE_PARAMS params = {[](void* byte) { *static_cast<unsigned char*>(byte) *= 2; },
                                        bytes};
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddHostNode)(&node, guest.graph, &read, 1, &params));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(RAW(cuGraphNodeGetType)(node, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_HOST);
  copy(node, /*to_host=*/false);
  for (int i = 0; i < 2; ++i) BOOST_TEST(Is(guest.Run(guest.graph), {6, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_host_node_tells_and_changes_its_parameters) {
  HostGuest guest;
  guest.Add(AddOne, &guest.number);
  guest.Instantiate();
  BOOST_TEST(guest.Count() == 1);
  CUDA_HOST_NODE_PARAMS params = {};
  OK(RAW(cuGraphHostNodeGetParams)(guest.node, &params));
  BOOST_TEST((params.fn == AddOne));
  BOOST_TEST(params.userData == &guest.number);
  params.fn = AddTen;
  OK(RAW(cuGraphHostNodeSetParams)(guest.node, &params));
  BOOST_TEST(guest.Count() == 1);  // as it was instantiated
  guest.Instantiate();
  BOOST_TEST(guest.Count() == 10);
  OK(RAW(cuGraphHostNodeGetParams)(guest.node, &params));
  BOOST_TEST((params.fn == AddTen));
}

BOOST_AUTO_TEST_CASE(a_host_node_changes_in_what_was_instantiated_alone) {
  HostGuest guest;
  guest.Add(AddOne, &guest.number);
  guest.Instantiate();
  CUDA_HOST_NODE_PARAMS params = {AddTen, &guest.other_number};
  OK(RAW(cuGraphExecHostNodeSetParams)(guest.executable, guest.node, &params));
  BOOST_TEST(guest.Count() == 0);
  BOOST_TEST(guest.other_number == 10);
  OK(RAW(cuGraphHostNodeGetParams)(guest.node, &params));
  BOOST_TEST((params.fn == AddOne));
  guest.Instantiate();
  BOOST_TEST(guest.Count() == 1);
}

BOOST_AUTO_TEST_CASE(the_calls_for_nodes_of_any_type_take_host_nodes) {
  HostGuest guest;
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host = {AddOne, &guest.number};
  OK(RAW(cuGraphAddNode)(&guest.node, guest.graph, nullptr, nullptr, 0, &params));
  guest.Instantiate();
  BOOST_TEST(guest.Count() == 1);
  params.host = {AddTen, &guest.number};
  OK(RAW(cuGraphExecNodeSetParams)(guest.executable, guest.node, &params));
  BOOST_TEST(guest.Count() == 10);
  guest.Instantiate();
  BOOST_TEST(guest.Count() == 1);
  OK(RAW(cuGraphNodeSetParams)(guest.node, &params));
  guest.Instantiate();
  BOOST_TEST(guest.Count() == 10);
}

BOOST_AUTO_TEST_CASE(a_captured_host_function_is_a_host_node) {
  HostGuest guest;
  OK(RAW(cuGraphDestroy)(std::exchange(guest.graph, nullptr)));
  OK(Begin(guest.stream));
  OK(RAW(cuLaunchHostFunc)(guest.stream, AddOne, &guest.number));
  OK(RAW(cuStreamEndCapture)(guest.stream, &guest.graph));
  size_t count = 1;
  OK(RAW(cuGraphGetNodes)(guest.graph, &guest.node, &count));
  CUDA_HOST_NODE_PARAMS params = {};
  OK(RAW(cuGraphHostNodeGetParams)(guest.node, &params));
  BOOST_TEST((params.fn == AddOne));
  BOOST_TEST(params.userData == &guest.number);
  guest.Instantiate();
  params.fn = AddTen;
  OK(RAW(cuGraphExecHostNodeSetParams)(guest.executable, guest.node, &params));
  BOOST_TEST(guest.Count() == 10);
}

BOOST_AUTO_TEST_CASE(an_executable_graph_takes_over_host_nodes) {
  HostGuest guest;
  guest.Add(AddOne, &guest.number);
  guest.Instantiate();
  HostGuest other;
  other.Add(AddTen, &guest.number);
  CUgraphExecUpdateResultInfo info = {};
  OK(RAW(cuGraphExecUpdate)(guest.executable, other.graph, &info));
  BOOST_TEST(guest.Count() == 10);
}

BOOST_AUTO_TEST_CASE(bad_host_nodes_are_refused) {
  HostGuest guest;
  guest.Add(AddOne, &guest.number);
  guest.Instantiate();
  const CUgraphNode fill = guest.AddFill(guest.graph, 0, 1);
  CUDA_HOST_NODE_PARAMS params = {AddTen, &guest.number};
  CUgraphNode node = nullptr;
  IS(RAW(cuGraphAddHostNode)(&node, guest.graph, nullptr, 0, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphAddHostNode)(nullptr, guest.graph, nullptr, 0, &params), INVALID_VALUE);
  IS(RAW(cuGraphAddHostNode)(&node, nullptr, nullptr, 0, &params), INVALID_VALUE);
  IS(RAW(cuGraphHostNodeGetParams)(fill, &params), INVALID_VALUE);
  IS(RAW(cuGraphHostNodeGetParams)(guest.node, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphHostNodeSetParams)(fill, &params), INVALID_VALUE);
  IS(RAW(cuGraphHostNodeSetParams)(guest.node, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphExecHostNodeSetParams)(guest.executable, fill, &params), INVALID_VALUE);
  IS(RAW(cuGraphExecHostNodeSetParams)(guest.executable, guest.node, nullptr), INVALID_VALUE);
  BOOST_TEST(guest.Count() == 1);
  params.fn = nullptr;
  IS(RAW(cuGraphAddHostNode)(&node, guest.graph, nullptr, 0, &params), INVALID_VALUE);
  IS(RAW(cuGraphHostNodeSetParams)(guest.node, &params), INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
