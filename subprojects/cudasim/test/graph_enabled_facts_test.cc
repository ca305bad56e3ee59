// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of executable graphs that are disabled.

#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(graph_enabled_facts)

using namespace cudasim_facts;

namespace {

// A graph that fills the first byte, and then the second one.
struct EnabledGuest : GraphGuest {
  EnabledGuest() : first(AddFill(graph, 0, 1)), second_node(AddFill(graph, 1, 2, {first})) {
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  }
  ~EnabledGuest() { OK(RAW(cuGraphExecDestroy)(executable)); }

  // What a launch leaves of memory that was 0.
  std::vector<int> Run() const {
    OK(RAW(cuMemsetD8)(memory, 0, 16));
    OK(RAW(cuCtxSynchronize)());
    return Launch(executable);
  }
  unsigned IsEnabled(CUgraphNode node) const {
    unsigned is_enabled = 9;
    OK(RAW(cuGraphNodeGetEnabled)(executable, node, &is_enabled));
    return is_enabled;
  }

  const CUgraphNode first;
  const CUgraphNode second_node;
  CUgraphExec executable = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_disabled_node_does_nothing) {
  const EnabledGuest guest;
  BOOST_TEST(guest.IsEnabled(guest.first) == 1u);
  OK(RAW(cuGraphNodeSetEnabled)(guest.executable, guest.first, 0));
  BOOST_TEST(guest.IsEnabled(guest.first) == 0u);
  BOOST_TEST(guest.IsEnabled(guest.second_node) == 1u);
  BOOST_TEST(Is(guest.Run(), {0, 2, 0, 0}));
  OK(RAW(cuGraphNodeSetEnabled)(guest.executable, guest.first, 7));
  BOOST_TEST(guest.IsEnabled(guest.first) == 1u);
  BOOST_TEST(Is(guest.Run(), {1, 2, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_disabled_node_keeps_its_parameters_and_gets_others) {
  const EnabledGuest guest;
  OK(RAW(cuGraphNodeSetEnabled)(guest.executable, guest.first, 0));
  CUDA_MEMSET_NODE_PARAMS fill = {};
  OK(RAW(cuGraphMemsetNodeGetParams)(guest.first, &fill));
  fill.value = 5;
  OK(RAW(cuGraphExecMemsetNodeSetParams)(guest.executable, guest.first, &fill,
                                         guest.context.get()));
  BOOST_TEST(Is(guest.Run(), {0, 2, 0, 0}));
  OK(RAW(cuGraphNodeSetEnabled)(guest.executable, guest.first, 1));
  BOOST_TEST(Is(guest.Run(), {5, 2, 0, 0}));
}

BOOST_AUTO_TEST_CASE(only_kernels_copies_and_fills_of_the_graph_are_disabled) {
  const EnabledGuest guest;
  const CUgraphNode later = guest.AddFill(guest.graph, 2, 3);
  IS(RAW(cuGraphNodeSetEnabled)(guest.executable, later, 0), INVALID_VALUE);
  IS(RAW(cuGraphNodeSetEnabled)(nullptr, guest.first, 0), INVALID_VALUE);
  IS(RAW(cuGraphNodeSetEnabled)(guest.executable, nullptr, 0), INVALID_VALUE);
  IS(RAW(cuGraphNodeGetEnabled)(guest.executable, guest.first, nullptr), INVALID_VALUE);
  const CUDA_HOST_NODE_PARAMS params = {[](void*) {}, nullptr};
  CUgraphNode host_node = nullptr;
  OK(RAW(cuGraphAddHostNode)(&host_node, guest.graph, nullptr, 0, &params));
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, guest.graph, 0));
  unsigned is_enabled = 9;
  BOOST_TEST((RAW(cuGraphNodeSetEnabled)(executable, host_node, 0) != CUDA_SUCCESS));
  BOOST_TEST((RAW(cuGraphNodeGetEnabled)(executable, host_node, &is_enabled) != CUDA_SUCCESS));
  OK(RAW(cuGraphExecDestroy)(executable));
}

BOOST_AUTO_TEST_SUITE_END()
