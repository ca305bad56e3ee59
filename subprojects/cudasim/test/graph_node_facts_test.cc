// SPDX-License-Identifier: Apache-2.0
//
// Kernel nodes that are added to a graph, and changed in what was instantiated from it.

#include <cstring>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/capture.h"

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

using Nodes = std::vector<CUgraphNode>;

CUresult Store(const SimLaunch& launch) {
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], sizeof(unsigned));
  return CUDA_SUCCESS;
}

struct NodeGuest : Guest {
  NodeGuest() {
    Sim::RegisterKernel("store", Store);
    OK(RAW(cuModuleLoadData)(&module, kPtx));
    OK(RAW(cuModuleGetFunction)(&store, module, "store"));
    OK(RAW(cuLibraryLoadData)(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(RAW(cuLibraryGetKernel)(&kernel, library, "store"));
    OK(RAW(cuGraphCreate)(&graph, 0));
  }
  NodeGuest(const NodeGuest&) = delete;
  NodeGuest& operator=(const NodeGuest&) = delete;
  ~NodeGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    OK(RAW(cuGraphDestroy)(graph));
    OK(RAW(cuLibraryUnload)(library));
  }

  // Of the function; `change` is made to what is asked for.
  template <typename Ask, typename Change>
  CUresult With(unsigned value, const Change& change, const Ask& ask) {
    CUdeviceptr to = memory;
    void* parameters[] = {&to, &value};
    CUDA_KERNEL_NODE_PARAMS_v2 params = {};
    params.func = store;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    change(&params);
    return ask(params);
  }
  template <typename Change>
  CUresult Add(unsigned value, const Nodes& dependencies, const Change& change) {
    return With(value, change, [&](const CUDA_KERNEL_NODE_PARAMS_v2& params) {
      return RAW(cuGraphAddKernelNode)(&node, graph, dependencies.data(), dependencies.size(),
                                       &params);
    });
  }
  CUresult Add(unsigned value, const Nodes& dependencies = {}) {
    return Add(value, dependencies, [](CUDA_KERNEL_NODE_PARAMS_v2*) {});
  }

  // Launches what was instantiated with nothing current.
  unsigned Run() {
    SetStack({});
    OK(RAW(cuGraphLaunch)(executable, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    SetStack({context.get()});
    unsigned value = 0;
    OK(RAW(cuMemcpyDtoH)(&value, memory, sizeof(value)));
    return value;
  }
  unsigned InstantiateAndRun() {
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    return Run();
  }

  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_runs_after_those_it_depends_on) {
  NodeGuest guest;
  OK(guest.Add(1));
  const CUgraphNode first = guest.node;
  OK(guest.Add(2, {first}));
  const CUgraphNode second = guest.node;
  OK(guest.Add(3, {first, second}));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(RAW(cuGraphNodeGetType)(guest.node, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_KERNEL);
  BOOST_TEST(guest.InstantiateAndRun() == 3u);
}

BOOST_AUTO_TEST_CASE(an_empty_node_only_orders_others) {
  NodeGuest guest;
  OK(guest.Add(1));
  CUgraphNode empty = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&empty, guest.graph, &guest.node, 1));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  OK(RAW(cuGraphNodeGetType)(empty, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_EMPTY);
  OK(guest.Add(2, {empty}));
  BOOST_TEST(guest.InstantiateAndRun() == 2u);
  IS(RAW(cuGraphAddEmptyNode)(nullptr, guest.graph, nullptr, 0), INVALID_VALUE);
  IS(RAW(cuGraphAddEmptyNode)(&empty, nullptr, nullptr, 0), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(nodes_fill_and_copy_memory) {
  NodeGuest guest;
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = guest.memory;
  fill.value = 0x01020304;
  fill.elementSize = 4;
  fill.width = 1;
  fill.height = 1;
  CUgraphNode first = nullptr;
  OK(RAW(cuGraphAddMemsetNode)(&first, guest.graph, nullptr, 0, &fill, guest.context.get()));
  unsigned copied = 0;
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = guest.memory;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = &copied;
  copy.WidthInBytes = sizeof(copied);
  copy.Height = copy.Depth = 1;
  CUgraphNode second = nullptr;
  OK(RAW(cuGraphAddMemcpyNode)(&second, guest.graph, &first, 1, &copy, guest.context.get()));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  OK(RAW(cuGraphNodeGetType)(first, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_MEMSET);
  OK(RAW(cuGraphNodeGetType)(second, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_MEMCPY);
  BOOST_TEST(guest.InstantiateAndRun() == 0x01020304u);
  BOOST_TEST(copied == 0x01020304u);

  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_MEMSET;
  any.memset.dst = guest.memory;
  any.memset.elementSize = 1;
  any.memset.width = any.memset.height = 1;
  any.memset.ctx = guest.context.get();
  CUgraphNode third = nullptr;
  OK(RAW(cuGraphAddNode)(&third, guest.graph, &second, nullptr, 1, &any));
  OK(RAW(cuGraphExecDestroy)(std::exchange(guest.executable, nullptr)));
  BOOST_TEST(guest.InstantiateAndRun() == 0x01020300u);
  IS(RAW(cuGraphAddNode)(&third, guest.graph, &second, nullptr, 1, nullptr), INVALID_VALUE);

  fill.elementSize = 3;
  IS(RAW(cuGraphAddMemsetNode)(&first, guest.graph, nullptr, 0, &fill, guest.context.get()),
     INVALID_VALUE);
  IS(RAW(cuGraphAddMemsetNode)(&first, guest.graph, nullptr, 0, nullptr, guest.context.get()),
     INVALID_VALUE);
  IS(RAW(cuGraphAddMemcpyNode)(&second, guest.graph, &first, 1, nullptr, guest.context.get()),
     INVALID_VALUE);
}

// The parameters were copied when the node was added.
BOOST_AUTO_TEST_CASE(a_function_runs_in_its_own_context) {
  for (const bool is_current : {true, false}) {
    NodeGuest guest;
    if (!is_current) SetStack({guest.other.get()});
    OK(guest.Add(4));
    SetStack({guest.context.get()});
    BOOST_TEST(guest.InstantiateAndRun() == 4u);
  }
}

BOOST_AUTO_TEST_CASE(a_kernel_runs_in_the_context_that_is_given_or_current) {
  for (const bool is_given : {true, false}) {
    NodeGuest guest;
    if (is_given) SetStack({guest.other.get()});
    OK(guest.Add(5, {}, [&](CUDA_KERNEL_NODE_PARAMS_v2* params) {
      params->func = nullptr;
      params->kern = guest.kernel;
      params->ctx = is_given ? guest.context.get() : nullptr;
    }));
    SetStack({guest.context.get()});
    BOOST_TEST(guest.InstantiateAndRun() == 5u);
  }
}

BOOST_AUTO_TEST_CASE(bad_nodes_are_refused) {
  NodeGuest guest;
  CUgraph other = nullptr;
  OK(RAW(cuGraphCreate)(&other, 0));
  const CUgraph own = guest.graph;
  guest.graph = other;
  OK(guest.Add(1));
  const CUgraphNode foreign = guest.node;
  guest.graph = own;
  OK(guest.Add(1));
  const CUgraphNode node = guest.node;
  IS(guest.Add(1, {foreign}), INVALID_VALUE);
  IS(guest.Add(1, {node, node}), INVALID_VALUE);
  IS(guest.Add(1, {}, [](auto* params) { params->gridDimX = 0; }), INVALID_VALUE);
  IS(guest.Add(1, {}, [](auto* params) { params->blockDimX = 4096; }), INVALID_VALUE);
  IS(guest.Add(1, {}, [](auto* params) { params->kernelParams = nullptr; }), INVALID_VALUE);
  IS(RAW(cuGraphAddKernelNode)(&guest.node, guest.graph, nullptr, 0, nullptr), INVALID_VALUE);
  size_t count = 0;
  OK(RAW(cuGraphGetNodes)(guest.graph, nullptr, &count));
  BOOST_TEST(count == 1u);
  OK(RAW(cuGraphDestroy)(other));
}

BOOST_AUTO_TEST_CASE(parameters_change_in_what_was_instantiated_alone) {
  NodeGuest guest;
  OK(guest.Add(1));
  BOOST_TEST(guest.InstantiateAndRun() == 1u);
  const auto set = [&](unsigned value) {
    return guest.With(
        value, [](auto*) {},
        [&](const CUDA_KERNEL_NODE_PARAMS_v2& params) {
          return RAW(cuGraphExecKernelNodeSetParams)(guest.executable, guest.node, &params);
        });
  };
  OK(set(6));
  BOOST_TEST(guest.Run() == 6u);
  OK(set(7));
  BOOST_TEST(guest.Run() == 7u);
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  BOOST_TEST(guest.InstantiateAndRun() == 1u);
  const CUgraphNode in_graph = guest.node;
  OK(guest.Add(2));  // after it was instantiated
  IS(set(8), INVALID_VALUE);
  IS(RAW(cuGraphExecKernelNodeSetParams)(guest.executable, in_graph, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_node_has_the_attributes_of_a_launch) {
  NodeGuest guest;
  OK(guest.Add(9));
  CUkernelNodeAttrValue value = {};
  value.cooperative = 1;
  OK(RAW(cuGraphKernelNodeSetAttribute)(guest.node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  BOOST_TEST(guest.InstantiateAndRun() == 9u);
  IS(RAW(cuGraphKernelNodeSetAttribute)(guest.node, OutOfRange<CUkernelNodeAttrID>(999), &value),
     INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_node_is_taken_out_again) {
  NodeGuest guest;
  OK(guest.Add(1));
  const CUgraphNode first = guest.node;
  OK(guest.Add(2, {first}));
  OK(RAW(cuGraphDestroyNode)(guest.node));
  BOOST_TEST(guest.InstantiateAndRun() == 1u);
}
