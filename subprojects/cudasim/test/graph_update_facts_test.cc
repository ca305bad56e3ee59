// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What was instantiated takes over the parameters of another graph, as <cuda.h> describes it.

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "test/busy.h"
#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(graph_update_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

// A graph, what was instantiated from it, and the graph that it is updated with.
struct UpdateGuest : GraphGuest {
  UpdateGuest() { OK(RAW(cuGraphCreate)(&next, 0)); }
  ~UpdateGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    if (next != nullptr) OK(RAW(cuGraphDestroy)(next));
  }
  UpdateGuest(const UpdateGuest&) = delete;
  UpdateGuest& operator=(const UpdateGuest&) = delete;

  void Instantiate() { OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0)); }

  void CheckUpdated() const {
    CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, Any(), Any()};
    OK(RAW(cuGraphExecUpdate)(executable, next, &info));
    BOOST_CHECK_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    BOOST_TEST(info.errorNode == nullptr);
    BOOST_TEST(info.errorFromNode == nullptr);
  }
  void CheckRefused(CUgraphExecUpdateResult result, CUgraphNode node,
                    CUgraphNode from = nullptr) const {
    CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, Any(), Any()};
    IS(RAW(cuGraphExecUpdate)(executable, next, &info), GRAPH_EXEC_UPDATE_FAILURE);
    BOOST_CHECK_EQUAL(info.result, result);
    BOOST_TEST(info.errorNode == node);
    BOOST_TEST(info.errorFromNode == from);
  }

  // The result says nothing.
  void CheckRefusedAtOnce(CUgraphExec of, CUgraph with, CUresult code) const {
    CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, Any(), Any()};
    BOOST_CHECK_EQUAL(RAW(cuGraphExecUpdate)(of, with, &info), code);
    BOOST_CHECK_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    BOOST_TEST(info.errorNode == nullptr);
    BOOST_TEST(info.errorFromNode == nullptr);
  }

  CUgraphNode AddRows(CUgraph to, CUdeviceptr at, size_t width, size_t height,
                      const std::vector<CUgraphNode>& dependencies = {}) const {
    CUDA_MEMSET_NODE_PARAMS fill = {};
    fill.dst = at;
    fill.value = 7;
    fill.elementSize = 1;
    fill.pitch = 64;
    fill.width = width;
    fill.height = height;
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphAddMemsetNode)(&node, to, dependencies.data(), dependencies.size(), &fill,
                                 context.get()));
    return node;
  }

  static CUgraphNode Any() { return reinterpret_cast<CUgraphNode>(0x77); }

  CUgraph next = nullptr;
  CUgraphExec executable = nullptr;
};

CUresult Store(const SimLaunch& launch) {
  unsigned char* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], 1);
  return CUDA_SUCCESS;
}

// Its function in the current context.
CUfunction LoadStore() {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  Sim::RegisterKernel("store", Store);
  OK(RAW(cuModuleLoadData)(&module, kPtx));
  OK(RAW(cuModuleGetFunction)(&store, module, "store"));
  return store;
}

CUgraphNode AddKernel(CUgraph to, CUfunction function, CUdeviceptr at, unsigned value) {
  void* parameters[] = {&at, &value};
  CUDA_KERNEL_NODE_PARAMS_v2 params = {};
  params.func = function;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = parameters;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddKernelNode)(&node, to, nullptr, 0, &params));
  return node;
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameters_are_taken_over) {
  UpdateGuest guest;
  const CUgraphNode first = guest.AddFill(guest.graph, 0, 1);
  guest.AddFill(guest.graph, 1, 2, {first});
  guest.Instantiate();
  const CUgraphNode fill = guest.AddFill(guest.next, 0, 5);
  guest.AddFill(guest.next, 1, 6, {fill});
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 2, 0, 0}));
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {5, 6, 0, 0}));
  BOOST_TEST(Is(guest.Run(guest.graph), {1, 2, 0, 0}));

  // Its nodes are still those of the graph that it was instantiated from.
  CUDA_MEMSET_NODE_PARAMS params = {};
  OK(RAW(cuGraphMemsetNodeGetParams)(first, &params));
  params.value = 8;
  const CUcontext context = guest.context.get();
  IS(RAW(cuGraphExecMemsetNodeSetParams)(guest.executable, fill, &params, context), INVALID_VALUE);
  OK(RAW(cuGraphExecMemsetNodeSetParams)(guest.executable, first, &params, context));
  OK(RAW(cuGraphDestroy)(guest.next));
  guest.next = nullptr;
  BOOST_TEST(Is(guest.Launch(guest.executable), {8, 6, 0, 0}));
}

BOOST_AUTO_TEST_CASE(what_was_captured_is_updated_with_another_capture) {
  UpdateGuest guest;
  const CUfunction store = LoadStore();
  auto* const host = static_cast<unsigned char*>(guest.host);
  std::memset(host, 0, 16);
  int calls = 0;
  const auto capture = [&](CUgraph* graph, unsigned value, size_t place) {
    CUdeviceptr to = guest.memory;
    void* parameters[] = {&to, &value};
    OK(RAW(cuGraphDestroy)(*graph));
    OK(Begin(guest.stream));
    OK(RAW(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, guest.stream, parameters, nullptr));
    OK(RAW(cuMemcpyDtoHAsync)(host + place, guest.memory, 1, guest.stream));
    OK(RAW(cuLaunchHostFunc)(
        guest.stream, [](void* count) { ++*static_cast<int*>(count); }, &calls));
    OK(RAW(cuStreamEndCapture)(guest.stream, graph));
  };
  capture(&guest.graph, 1, 0);
  guest.Instantiate();
  capture(&guest.next, 2, 5);
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 0, 0, 0}));
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {2, 0, 0, 0}));
  BOOST_TEST(int{host[0]} == 1);
  BOOST_TEST(int{host[5]} == 2);
  BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(a_launch_does_what_it_was_launched_with) {
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.AddFill(guest.next, 1, 2);
  guest.Instantiate();
  {
    Hold hold(guest.stream);
    OK(RAW(cuGraphLaunch)(guest.executable, guest.stream));
    guest.CheckUpdated();
  }
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 2, 0, 0}));
}

// The nodes are paired along the edges, from those that nothing depends on.
BOOST_AUTO_TEST_CASE(nodes_may_be_made_in_another_order) {
  UpdateGuest guest;
  const CUgraphNode a = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode b = guest.AddRows(guest.graph, guest.memory + 1, 1, 2);
  guest.AddFill(guest.graph, 3, 3, {a, b});
  guest.Instantiate();
  const CUgraphNode rows = guest.AddRows(guest.next, guest.memory + 2, 1, 2);
  const CUgraphNode fill = guest.AddFill(guest.next, 0, 4);
  guest.AddFill(guest.next, 3, 5, {fill, rows});
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {4, 0, 7, 5}));
}

BOOST_AUTO_TEST_CASE(another_topology_is_refused) {
  UpdateGuest guest;
  const CUgraphNode a = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode b = guest.AddFill(guest.graph, 1, 1, {a});
  const CUgraphNode c = guest.AddFill(guest.graph, 2, 1, {a, b});
  guest.AddFill(guest.graph, 3, 1, {b, c});
  guest.Instantiate();
  const auto changed = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  guest.CheckRefused(changed, nullptr);  // no node at all
  const CUgraphNode first = guest.AddFill(guest.next, 0, 2);
  const CUgraphNode second = guest.AddFill(guest.next, 1, 2, {first});
  const CUgraphNode third = guest.AddFill(guest.next, 2, 2, {second});
  const CUgraphNode last = guest.AddFill(guest.next, 3, 2, {second, third});
  guest.CheckRefused(changed, third);  // which depends on one node, not on two
  OK(RAW(cuGraphDestroyNode)(last));
  guest.AddFill(guest.next, 3, 2, {second});
  guest.CheckRefused(changed, third);  // nothing depends on it, nor on the last one
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 1, 1, 1}));
}

BOOST_AUTO_TEST_CASE(an_edge_to_another_node_is_refused) {
  UpdateGuest guest;
  const CUgraphNode a = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode b = guest.AddFill(guest.graph, 1, 1);
  const CUgraphNode c = guest.AddFill(guest.graph, 2, 1, {a, b});
  guest.AddFill(guest.graph, 3, 1, {c, a, b});
  guest.Instantiate();
  const CUgraphNode first = guest.AddFill(guest.next, 0, 2);
  const CUgraphNode second = guest.AddFill(guest.next, 1, 2);
  const CUgraphNode third = guest.AddFill(guest.next, 2, 2, {first, second});
  guest.AddFill(guest.next, 3, 2, {third, second, first});
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, third, first);
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 1, 1, 1}));
}

// Those that nothing depends on are paired first, from the last one on.
BOOST_AUTO_TEST_CASE(the_last_node_is_looked_at_first) {
  UpdateGuest guest;
  CUgraphNode empty = nullptr;
  guest.AddFill(guest.graph, 0, 1);
  OK(RAW(cuGraphAddEmptyNode)(&empty, guest.graph, nullptr, 0));
  guest.Instantiate();
  OK(RAW(cuGraphAddEmptyNode)(&empty, guest.next, nullptr, 0));
  const CUgraphNode last = guest.AddFill(guest.next, 0, 1);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, last);
  OK(RAW(cuGraphDestroyNode)(last));
  guest.AddFill(guest.next, 0, 1, {empty});
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);  // one, not two
}

// How many nodes one depends on is looked at before its type.
BOOST_AUTO_TEST_CASE(edges_are_counted_before_types_are_compared) {
  UpdateGuest guest;
  const CUgraphNode a = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode b = guest.AddFill(guest.graph, 1, 1);
  guest.AddFill(guest.graph, 2, 1, {a, b});
  guest.Instantiate();
  const CUgraphNode first = guest.AddFill(guest.next, 0, 1);
  const CUgraphNode second = guest.AddFill(guest.next, 1, 1, {first});
  CUgraphNode empty = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&empty, guest.next, &second, 1));
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, empty);
}

// A pair's parameters are compared before the next pair's type: measured of a copy, on an H200,
// driver 580.159.04 (conformance/fresh.py, seed 1795898964, sequence 385).
BOOST_AUTO_TEST_CASE(a_pair_is_compared_before_the_next) {
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.AddRows(guest.graph, guest.memory + 1, 1, 2);
  guest.Instantiate();
  CUgraphNode empty = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&empty, guest.next, nullptr, 0));
  const CUgraphNode rows = guest.AddRows(guest.next, guest.memory + 1, 1, 3);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, rows);
  OK(RAW(cuGraphDestroyNode)(rows));
  guest.AddRows(guest.next, guest.memory + 1, 1, 2);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, empty);
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 7, 0, 0}));
}

BOOST_AUTO_TEST_CASE(parameters_are_compared_before_edges) {
  UpdateGuest guest;
  const CUgraphNode a = guest.AddFill(guest.graph, 0, 1);
  const CUgraphNode b = guest.AddFill(guest.graph, 1, 1);
  const CUgraphNode c = guest.AddRows(guest.graph, guest.memory + 2, 1, 2, {a, b});
  guest.AddFill(guest.graph, 3, 1, {c, a, b});
  guest.Instantiate();
  const CUgraphNode first = guest.AddFill(guest.next, 0, 2);
  const CUgraphNode second = guest.AddFill(guest.next, 1, 2);
  const CUgraphNode third = guest.AddRows(guest.next, guest.memory + 2, 1, 3, {first, second});
  guest.AddFill(guest.next, 3, 2, {third, second, first});
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, third);
}

BOOST_AUTO_TEST_CASE(another_type_of_node_is_refused) {
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.Instantiate();
  CUgraphNode empty = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&empty, guest.next, nullptr, 0));
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, empty);
}

BOOST_AUTO_TEST_CASE(the_rows_of_a_fill_stay) {
  UpdateGuest guest;
  guest.AddRows(guest.graph, guest.memory, 2, 2);
  guest.Instantiate();
  const CUgraphNode wider = guest.AddRows(guest.next, guest.memory, 3, 2);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, wider);
  OK(RAW(cuGraphDestroyNode)(wider));
  guest.AddRows(guest.next, guest.memory + 1, 2, 2);
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {0, 7, 7, 0}));
}

BOOST_AUTO_TEST_CASE(memory_stays_in_its_context) {
  UpdateGuest guest;
  guest.AddRows(guest.graph, guest.memory, 2, 1);
  guest.Instantiate();
  const CUgraphNode elsewhere = guest.AddRows(guest.next, guest.other_memory, 2, 1);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, elsewhere);
  OK(RAW(cuGraphDestroyNode)(elsewhere));
  guest.AddRows(guest.next, guest.memory, 3, 1);  // a single row may become wider
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {7, 7, 7, 0}));
}

BOOST_AUTO_TEST_CASE(types_of_memory_stay) {
  UpdateGuest guest;
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = guest.memory;
  copy.dstDevice = guest.memory + 64;
  copy.WidthInBytes = copy.Height = copy.Depth = 1;
  CUgraphNode node = nullptr;
  const CUcontext context = guest.context.get();
  OK(RAW(cuGraphAddMemcpyNode)(&node, guest.graph, nullptr, 0, &copy, context));
  guest.Instantiate();
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = guest.host;
  OK(RAW(cuGraphAddMemcpyNode)(&node, guest.next, nullptr, 0, &copy, context));
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node);
}

BOOST_AUTO_TEST_CASE(a_kernel_stays_in_its_context_and_as_cooperative_as_it_was) {
  UpdateGuest guest;
  const CUfunction store = LoadStore();
  SetStack({guest.other.get()});
  const CUfunction foreign = LoadStore();
  SetStack({guest.context.get()});
  AddKernel(guest.graph, store, guest.memory, 7);
  guest.Instantiate();
  CUgraphNode node = AddKernel(guest.next, foreign, guest.memory, 8);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, node);
  OK(RAW(cuGraphDestroyNode)(node));
  node = AddKernel(guest.next, store, guest.memory, 9);
  CUkernelNodeAttrValue value = {};
  value.cooperative = 1;
  OK(RAW(cuGraphKernelNodeSetAttribute)(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, node);
  value.cooperative = 0;
  OK(RAW(cuGraphKernelNodeSetAttribute)(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {9, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(child_graphs_are_updated_too) {
  UpdateGuest guest;
  CUgraph inner = nullptr;
  OK(RAW(cuGraphCreate)(&inner, 0));
  const CUgraphNode fill = guest.AddFill(inner, 0, 1);
  const CUgraphNode child = guest.AddChild(guest.graph, inner);
  guest.AddFill(guest.graph, 1, 1, {child});
  guest.Instantiate();
  CUDA_MEMSET_NODE_PARAMS params = {};
  OK(RAW(cuGraphMemsetNodeGetParams)(fill, &params));
  params.value = 4;
  OK(RAW(cuGraphMemsetNodeSetParams)(fill, &params));
  CUgraphNode other = guest.AddChild(guest.next, inner);
  guest.AddFill(guest.next, 1, 5, {other});
  guest.CheckUpdated();
  BOOST_TEST(Is(guest.Launch(guest.executable), {4, 5, 0, 0}));

  CUgraph embedded = nullptr;
  OK(RAW(cuGraphChildGraphNodeGetGraph)(other, &embedded));
  CUgraphNode exit = guest.AddFill(embedded, 2, 6);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  OK(RAW(cuGraphDestroyNode)(exit));
  guest.CheckUpdated();
  OK(RAW(cuGraphDestroy)(inner));
}

// Nothing of it is taken over, though a node before was right.
BOOST_AUTO_TEST_CASE(a_graph_is_taken_over_whole_or_not_at_all) {
  UpdateGuest guest;
  const CUgraphNode first = guest.AddFill(guest.graph, 0, 1);
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&node, guest.graph, &first, 1));
  guest.AddRows(guest.graph, guest.memory + 1, 1, 2);
  guest.Instantiate();
  const CUgraphNode fill = guest.AddFill(guest.next, 0, 2);
  OK(RAW(cuGraphAddEmptyNode)(&node, guest.next, &fill, 1));
  const CUgraphNode rows = guest.AddRows(guest.next, guest.memory + 1, 1, 3);
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, rows);
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 7, 0, 0}));
}

// As cuGraphInstantiate does.
BOOST_AUTO_TEST_CASE(memory_that_is_gone_is_refused, *cudasim_test::OnlySim()) {
  UpdateGuest guest;
  CUdeviceptr gone = 0;
  OK(RAW(cuMemAlloc)(&gone, 16));
  guest.AddRows(guest.graph, gone, 1, 1);
  guest.Instantiate();
  const CUgraphNode node = guest.AddRows(guest.next, gone, 2, 1);
  OK(RAW(cuMemFree)(gone));
  CUgraphExecUpdateResultInfo info = {};
  IS(RAW(cuGraphExecUpdate)(guest.executable, guest.next, &info), INVALID_VALUE);
  BOOST_CHECK_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
  BOOST_TEST(info.errorNode == node);
}

namespace {

struct MemoryGuest : UpdateGuest {
  void Capture(CUgraph* of) const {
    CUdeviceptr allocated = 0;
    OK(RAW(cuGraphDestroy)(*of));
    OK(Begin(stream));
    OK(RAW(cuMemAllocAsync)(&allocated, 16, stream));
    OK(RAW(cuMemFreeAsync)(allocated, stream));
    OK(RAW(cuStreamEndCapture)(stream, of));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(memory_becomes_the_other_graphs) {
  MemoryGuest guest;
  guest.Capture(&guest.graph);
  guest.Instantiate();
  guest.Capture(&guest.next);
  guest.CheckUpdated();
  for (int i = 0; i < 2; ++i) {
    OK(RAW(cuGraphLaunch)(guest.executable, guest.stream));
    OK(RAW(cuStreamSynchronize)(guest.stream));
  }
}

BOOST_AUTO_TEST_CASE(memory_has_one_instance) {
  MemoryGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.Instantiate();
  guest.Capture(&guest.next);
  CUgraphExec instance = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&instance, guest.next, 0));
  guest.CheckRefusedAtOnce(guest.executable, guest.next, CUDA_ERROR_NOT_SUPPORTED);
  OK(RAW(cuGraphExecUpdate)(instance, guest.next, nullptr));  // its own
  OK(RAW(cuGraphExecDestroy)(instance));
  guest.CheckRefused(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 0, 0, 0}));
}

namespace {

std::atomic<int> destroyed{0};

bool BecomeDestroyed(int count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (destroyed != count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return destroyed == count;
}

void OwnObject(CUgraph graph) {
  CUuserObject object = nullptr;
  const auto destroy = [](void*) { ++destroyed; };
  OK(RAW(cuUserObjectCreate)(&object, nullptr, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(RAW(cuGraphRetainUserObject)(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
}

}  // namespace

BOOST_AUTO_TEST_CASE(user_objects_are_those_of_the_other_graph) {
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  OwnObject(guest.graph);
  guest.Instantiate();
  OK(RAW(cuGraphDestroy)(guest.graph));
  guest.graph = nullptr;
  guest.AddFill(guest.next, 0, 2);
  OwnObject(guest.next);
  BOOST_TEST(destroyed == 0);
  guest.CheckUpdated();
  BOOST_TEST(BecomeDestroyed(1));
  OK(RAW(cuGraphDestroy)(guest.next));
  guest.next = nullptr;
  BOOST_TEST(destroyed == 1);
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  guest.executable = nullptr;
  BOOST_TEST(BecomeDestroyed(2));
}

BOOST_AUTO_TEST_CASE(the_first_form_has_two_results) {
  using First = CUresult (*)(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);
  const auto update = RAW_AS(First, "cuGraphExecUpdate");
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.Instantiate();
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddEmptyNode)(&node, guest.next, nullptr, 0));
  CUgraphNode named = nullptr;
  auto result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  IS(update(guest.executable, guest.next, &named, &result), GRAPH_EXEC_UPDATE_FAILURE);
  BOOST_TEST(named == node);
  BOOST_CHECK_EQUAL(result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  OK(update(guest.executable, guest.graph, &named, &result));
  BOOST_TEST(named == nullptr);
  BOOST_CHECK_EQUAL(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
}

BOOST_AUTO_TEST_CASE(what_is_no_graph_updates_nothing) {
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.Instantiate();
  guest.CheckRefusedAtOnce(guest.executable, nullptr, CUDA_ERROR_INVALID_VALUE);
  guest.CheckRefusedAtOnce(nullptr, guest.graph, CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(the_result_may_be_left_out) {
  UpdateGuest guest;
  guest.AddFill(guest.graph, 0, 1);
  guest.Instantiate();
  guest.AddFill(guest.next, 0, 2);
  OK(RAW(cuGraphExecUpdate)(guest.executable, guest.next, nullptr));
  BOOST_TEST(Is(guest.Launch(guest.executable), {2, 0, 0, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
