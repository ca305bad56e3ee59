// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel nodes that are added to a graph, and changed in what was instantiated from it.

#include <cstring>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(graph_node_facts)

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

BOOST_AUTO_TEST_CASE(a_kernel_node_tells_its_parameters) {
  NodeGuest guest;
  OK(guest.Add(11, {}, [](auto* params) { params->gridDimX = 3; }));
  CUDA_KERNEL_NODE_PARAMS_v2 got = {};
  OK(RAW(cuGraphKernelNodeGetParams)(guest.node, &got));
  BOOST_TEST(got.func == guest.store);
  BOOST_TEST(got.gridDimX == 3u);
  BOOST_TEST(got.blockDimX == 1u);
  BOOST_REQUIRE(got.kernelParams != nullptr);
  CUdeviceptr to = 0;
  unsigned value = 0;
  std::memcpy(&to, got.kernelParams[0], sizeof(to));
  std::memcpy(&value, got.kernelParams[1], sizeof(value));
  BOOST_TEST(to == guest.memory);
  BOOST_TEST(value == 11u);
  OK(RAW(cuGraphAddKernelNode)(&guest.node, guest.graph, &guest.node, 1, &got));  // another one
  BOOST_TEST(guest.InstantiateAndRun() == 11u);
}

BOOST_AUTO_TEST_CASE(a_captured_kernel_tells_its_parameters) {
  NodeGuest guest;
  CUdeviceptr to = guest.memory;
  unsigned value = 12;
  void* parameters[] = {&to, &value};
  OK(Begin(guest.stream));
  OK(RAW(cuLaunchKernel)(guest.store, 1, 1, 1, 2, 1, 1, 0, guest.stream, parameters, nullptr));
  CUgraph captured = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &captured));
  size_t count = 1;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphGetNodes)(captured, &node, &count));
  CUDA_KERNEL_NODE_PARAMS_v2 got = {};
  OK(RAW(cuGraphKernelNodeGetParams)(node, &got));
  BOOST_TEST(got.func == guest.store);
  BOOST_TEST(got.blockDimX == 2u);
  BOOST_TEST(std::memcmp(got.kernelParams[1], &value, sizeof(value)) == 0);
  OK(RAW(cuGraphDestroy)(captured));
}

BOOST_AUTO_TEST_CASE(a_kernel_node_gets_other_parameters) {
  NodeGuest guest;
  OK(guest.Add(1));
  BOOST_TEST(guest.InstantiateAndRun() == 1u);
  const auto set = [&](unsigned value) {
    return guest.With(
        value, [](auto*) {},
        [&](const CUDA_KERNEL_NODE_PARAMS_v2& params) {
          return RAW(cuGraphKernelNodeSetParams)(guest.node, &params);
        });
  };
  OK(set(2));
  BOOST_TEST(guest.Run() == 1u);  // as it was instantiated
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  BOOST_TEST(guest.InstantiateAndRun() == 2u);
  CUgraphNodeParams any = {};
  CUdeviceptr to = guest.memory;
  unsigned value = 3;
  void* parameters[] = {&to, &value};
  any.type = CU_GRAPH_NODE_TYPE_KERNEL;
  any.kernel.func = guest.store;
  any.kernel.gridDimX = any.kernel.gridDimY = any.kernel.gridDimZ = 1;
  any.kernel.blockDimX = any.kernel.blockDimY = any.kernel.blockDimZ = 1;
  any.kernel.kernelParams = parameters;
  OK(RAW(cuGraphNodeSetParams)(guest.node, &any));
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  BOOST_TEST(guest.InstantiateAndRun() == 3u);
  IS(RAW(cuGraphKernelNodeSetParams)(guest.node, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphNodeSetParams)(guest.node, nullptr), INVALID_VALUE);
  any.kernel.gridDimX = 0;
  IS(RAW(cuGraphNodeSetParams)(guest.node, &any), INVALID_VALUE);
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  BOOST_TEST(guest.InstantiateAndRun() == 3u);
}

namespace {

// A fill of the first four bytes, and a copy of them to `to`.
struct FillAndCopy : NodeGuest {
  explicit FillAndCopy(unsigned* to) {
    fill.dst = memory;
    fill.value = 0x55;
    fill.elementSize = 1;
    fill.width = sizeof(*to);
    fill.height = 1;
    OK(RAW(cuGraphAddMemsetNode)(&filler, graph, nullptr, 0, &fill, context.get()));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
    copy.WidthInBytes = sizeof(*to);
    copy.Height = copy.Depth = 1;
    OK(RAW(cuGraphAddMemcpyNode)(&copier, graph, &filler, 1, &copy, context.get()));
  }

  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUDA_MEMCPY3D copy = {};
  CUgraphNode filler = nullptr;
  CUgraphNode copier = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_fill_node_gets_other_parameters) {
  unsigned copied = 0;
  FillAndCopy guest(&copied);
  CUDA_MEMSET_NODE_PARAMS got = {};
  OK(RAW(cuGraphMemsetNodeGetParams)(guest.filler, &got));
  BOOST_TEST(got.dst == guest.memory);
  BOOST_TEST(got.value == 0x55u);
  BOOST_TEST(got.elementSize == 1u);
  BOOST_TEST(got.width == 4u);
  BOOST_TEST(got.height == 1u);
  got.value = 0x66;
  OK(RAW(cuGraphMemsetNodeSetParams)(guest.filler, &got));
  BOOST_TEST(guest.InstantiateAndRun() == 0x66666666u);
  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_MEMSET;
  any.memset.dst = guest.memory;
  any.memset.value = 0x77;
  any.memset.elementSize = any.memset.height = 1;
  any.memset.width = 2;
  any.memset.ctx = guest.context.get();
  OK(RAW(cuGraphNodeSetParams)(guest.filler, &any));
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  BOOST_TEST(guest.InstantiateAndRun() == 0x66667777u);
  got.elementSize = 3;
  IS(RAW(cuGraphMemsetNodeSetParams)(guest.filler, &got), INVALID_VALUE);
  IS(RAW(cuGraphMemsetNodeSetParams)(guest.filler, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphMemsetNodeGetParams)(guest.filler, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_copy_node_gets_other_parameters) {
  unsigned copied = 0;
  unsigned elsewhere = 0;
  FillAndCopy guest(&copied);
  CUDA_MEMCPY3D got = {};
  OK(RAW(cuGraphMemcpyNodeGetParams)(guest.copier, &got));
  BOOST_CHECK_EQUAL(got.srcMemoryType, CU_MEMORYTYPE_DEVICE);
  BOOST_TEST(got.srcDevice == guest.memory);
  BOOST_CHECK_EQUAL(got.dstMemoryType, CU_MEMORYTYPE_HOST);
  BOOST_TEST(got.dstHost == &copied);
  BOOST_TEST(got.WidthInBytes == sizeof(copied));
  BOOST_TEST(got.Height == 1u);
  BOOST_TEST(got.Depth == 1u);
  got.dstHost = &elsewhere;
  OK(RAW(cuGraphMemcpyNodeSetParams)(guest.copier, &got));
  guest.InstantiateAndRun();
  BOOST_TEST(copied == 0u);
  BOOST_TEST(elsewhere == 0x55555555u);
  got.srcDevice = 0;
  IS(RAW(cuGraphMemcpyNodeSetParams)(guest.copier, &got), INVALID_VALUE);
  IS(RAW(cuGraphMemcpyNodeSetParams)(guest.copier, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(copies_and_fills_change_in_what_was_instantiated_alone) {
  unsigned copied = 0;
  unsigned elsewhere = 0;
  FillAndCopy guest(&copied);
  BOOST_TEST(guest.InstantiateAndRun() == 0x55555555u);
  const CUcontext context = guest.context.get();
  const CUgraphExec executable = guest.executable;
  CUDA_MEMSET_NODE_PARAMS fill = guest.fill;
  CUDA_MEMCPY3D copy = guest.copy;
  fill.value = 0x44;
  copy.dstHost = &elsewhere;
  OK(RAW(cuGraphExecMemsetNodeSetParams)(executable, guest.filler, &fill, context));
  OK(RAW(cuGraphExecMemcpyNodeSetParams)(executable, guest.copier, &copy, context));
  BOOST_TEST(guest.Run() == 0x44444444u);
  BOOST_TEST(copied == 0x55555555u);
  BOOST_TEST(elsewhere == 0x44444444u);
  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  any.memcpy.copyCtx = context;
  any.memcpy.copyParams = guest.copy;
  OK(RAW(cuGraphExecNodeSetParams)(executable, guest.copier, &any));
  BOOST_TEST(guest.Run() == 0x44444444u);
  BOOST_TEST(copied == 0x44444444u);
  IS(RAW(cuGraphExecNodeSetParams)(executable, guest.filler, &any), INVALID_VALUE);
  IS(RAW(cuGraphExecMemsetNodeSetParams)(executable, guest.copier, &fill, context), INVALID_VALUE);
  IS(RAW(cuGraphExecMemsetNodeSetParams)(executable, guest.filler, nullptr, context),
     INVALID_VALUE);
  OK(RAW(cuGraphExecMemsetNodeSetParams)(executable, guest.filler, &fill, guest.other.get()));
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  BOOST_TEST(guest.InstantiateAndRun() == 0x55555555u);
}

BOOST_AUTO_TEST_CASE(captured_copies_and_fills_tell_their_parameters) {
  NodeGuest guest;
  OK(Begin(guest.stream));
  OK(RAW(cuMemsetD2D16Async)(guest.memory, 64, 7, 3, 2, guest.stream));
  OK(RAW(cuMemcpyDtoHAsync)(guest.host, guest.memory, 8, guest.stream));
  CUgraph captured = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &captured));
  Nodes nodes(2);
  size_t count = nodes.size();
  OK(RAW(cuGraphGetNodes)(captured, nodes.data(), &count));
  CUDA_MEMSET_NODE_PARAMS fill = {};
  OK(RAW(cuGraphMemsetNodeGetParams)(nodes[0], &fill));
  BOOST_TEST(fill.dst == guest.memory);
  BOOST_TEST(fill.pitch == 64u);
  BOOST_TEST(fill.value == 7u);
  BOOST_TEST(fill.elementSize == 2u);
  BOOST_TEST(fill.width == 3u);
  BOOST_TEST(fill.height == 2u);
  CUDA_MEMCPY3D copy = {};
  OK(RAW(cuGraphMemcpyNodeGetParams)(nodes[1], &copy));
  BOOST_TEST(copy.WidthInBytes == 8u);
  OK(RAW(cuGraphDestroy)(captured));
}

BOOST_AUTO_TEST_CASE(parameters_are_of_the_nodes_type) {
  unsigned copied = 0;
  FillAndCopy guest(&copied);
  CUDA_KERNEL_NODE_PARAMS_v2 kernel = {};
  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  any.memcpy.copyParams = guest.copy;
  IS(RAW(cuGraphKernelNodeGetParams)(guest.filler, &kernel), INVALID_VALUE);
  IS(RAW(cuGraphMemcpyNodeGetParams)(guest.filler, &guest.copy), INVALID_VALUE);
  IS(RAW(cuGraphMemsetNodeGetParams)(guest.copier, &guest.fill), INVALID_VALUE);
  IS(RAW(cuGraphMemsetNodeSetParams)(guest.copier, &guest.fill), INVALID_VALUE);
  IS(RAW(cuGraphNodeSetParams)(guest.filler, &any), INVALID_VALUE);
  IS(RAW(cuGraphMemcpyNodeGetParams)(nullptr, &guest.copy), INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
