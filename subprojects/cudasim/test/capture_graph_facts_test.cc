// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: what a capture records, and what a launch does again.

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/capture.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(capture_graph_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

CUresult Store(const SimLaunch& launch) {
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], sizeof(unsigned));
  return CUDA_SUCCESS;
}

struct GraphGuest : Guest {
  GraphGuest() {
    Sim::RegisterKernel("store", Store);
    OK(RAW(cuModuleLoadData)(&module, kPtx));
    OK(RAW(cuModuleGetFunction)(&store, module, "store"));
  }

  CUresult LaunchStore(unsigned value, unsigned grid = 1) const {
    CUdeviceptr to = memory;
    void* parameters[] = {&to, &value};
    return RAW(cuLaunchKernel)(store, grid, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  unsigned Stored() const {
    unsigned value = 0;
    OK(RAW(cuMemcpyDtoH)(&value, memory, sizeof(value)));
    return value;
  }

  CUmodule module = nullptr;
  CUfunction store = nullptr;
};

CUgraph EndWithGraph(CUstream stream) {
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  BOOST_REQUIRE(graph != nullptr);
  return graph;
}

std::vector<CUgraphNode> NodesOf(CUgraph graph) {
  size_t count = 0;
  OK(RAW(cuGraphGetNodes)(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  OK(RAW(cuGraphGetNodes)(graph, nodes.data(), &count));
  return nodes;
}

std::vector<CUgraphNodeType> TypesOf(CUgraph graph) {
  std::vector<CUgraphNodeType> types;
  for (const CUgraphNode node : NodesOf(graph)) {
    types.emplace_back();
    OK(RAW(cuGraphNodeGetType)(node, &types.back()));
  }
  return types;
}

CUgraphExec Instantiate(CUgraph graph) {
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  return executable;
}

// Of an active capture.
struct Info {
  explicit Info(CUstream stream) {
    auto status = kNone;
    OK(RAW(cuStreamGetCaptureInfo)(stream, &status, &id, &graph, &nodes, &edges, &count));
    BOOST_CHECK_EQUAL(status, kActive);
  }
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 77;
};

}  // namespace

BOOST_AUTO_TEST_CASE(work_becomes_nodes_and_is_done_at_each_launch) {
  const GraphGuest guest;
  int called = 0;
  auto* host = static_cast<unsigned*>(guest.host);
  host[0] = 10;
  OK(Begin(guest.stream));
  OK(guest.LaunchStore(42));
  OK(RAW(cuLaunchHostFunc)(
      guest.stream, [](void* data) { ++*static_cast<int*>(data); }, &called));
  OK(RAW(cuMemcpyHtoDAsync)(guest.memory + 64, host, 4, guest.stream));
  OK(RAW(cuMemcpyDtoDAsync)(guest.memory + 68, guest.memory, 4, guest.stream));
  OK(RAW(cuMemcpyDtoHAsync)(host + 1, guest.memory + 64, 8, guest.stream));
  OK(RAW(cuMemsetD32Async)(guest.memory, 7, 1, guest.stream));
  OK(guest.Record(guest.captured, guest.stream));
  OK(guest.Wait(guest.stream, guest.captured));
  OK(RAW(cuMemsetD8Async)(guest.memory, 0, 0, guest.stream));
  OK(RAW(cuMemcpyHtoDAsync)(guest.memory, host, 0, guest.stream));
  const CUgraph graph = EndWithGraph(guest.stream);
  const std::vector<CUgraphNodeType> types = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_HOST,
                                              CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY,
                                              CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET};
  BOOST_CHECK(TypesOf(graph) == types);
  const CUgraphExec executable = Instantiate(graph);
  OK(RAW(cuGraphDestroy)(graph));
  BOOST_TEST(called == 0);
  int launches = 0;
  for (const CUstream stream : {guest.stream, guest.blocking, guest.other_stream}) {
    host[0] = 10 + launches;
    OK(RAW(cuGraphLaunch)(executable, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    BOOST_TEST(host[1] == host[0]);
    BOOST_TEST(host[2] == 42u);
    BOOST_TEST(guest.Stored() == 7u);
    BOOST_TEST(called == ++launches);
  }
  OK(RAW(cuGraphLaunch)(executable, nullptr));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  IS(RAW(cuGraphLaunch)(executable, nullptr), INVALID_CONTEXT);
  OK(RAW(cuGraphLaunch)(executable, guest.stream));
  OK(RAW(cuStreamSynchronize)(guest.stream));
  BOOST_TEST(called == 5);
  OK(RAW(cuGraphExecDestroy)(executable));
}

BOOST_AUTO_TEST_CASE(a_branch_in_another_context_is_part_of_the_graph) {
  const GraphGuest guest;
  OK(Begin(guest.stream));
  OK(guest.Fill(guest.stream));
  guest.Fork(guest.other_stream);
  OK(RAW(cuMemsetD8Async)(guest.other_memory, 2, 1, guest.other_stream));
  OK(RAW(cuCtxPushCurrent)(guest.other.get()));
  CUevent done = nullptr;
  OK(RAW(cuEventCreate)(&done, 0));
  OK(RAW(cuCtxPopCurrent)(nullptr));
  OK(guest.Record(done, guest.other_stream));
  OK(guest.Wait(guest.stream, done));
  const CUgraph graph = EndWithGraph(guest.stream);
  const CUgraphExec executable = Instantiate(graph);
  OK(RAW(cuGraphLaunch)(executable, guest.stream));
  OK(RAW(cuStreamSynchronize)(guest.stream));
  char value = 0;
  OK(RAW(cuMemcpyDtoH)(&value, guest.other_memory, 1));
  BOOST_TEST(value == 2);
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(a_graph_is_not_launched_into_a_capture) {
  const GraphGuest guest;
  CUgraph graph = nullptr;
  OK(RAW(cuGraphCreate)(&graph, 0));
  const CUgraphExec executable = Instantiate(graph);
  OK(Begin(guest.stream));
  OK(RAW(cuGraphLaunch)(executable, guest.second));
  IS(RAW(cuGraphLaunch)(executable, guest.stream), STREAM_CAPTURE_UNSUPPORTED);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(graphs_during_a_capture) {
  const GraphGuest guest;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(Begin(guest.stream, kGlobal));
  OK(RAW(cuGraphCreate)(&graph, 0));
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  IS(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0), STREAM_CAPTURE_UNSUPPORTED);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuGraphDestroy)(graph));
  OK(Begin(guest.stream));
  IS(RAW(cuGraphDestroy)(Info(guest.stream).graph), ILLEGAL_STATE);
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, Info(guest.stream).graph, 0));
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(End(guest.stream));
}

BOOST_AUTO_TEST_CASE(bad_work_in_a_capture) {
  const GraphGuest guest;
  OK(Begin(guest.stream));
  IS(RAW(cuMemcpyDtoDAsync)(0x100, guest.memory, 4, guest.stream), INVALID_VALUE);
  IS(RAW(cuMemcpyHtoDAsync)(guest.memory, nullptr, 4, guest.stream), INVALID_VALUE);
  IS(RAW(cuLaunchHostFunc)(guest.stream, nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuLaunchKernel)(guest.store, 1, 1, 1, 1, 1, 1, 0, guest.stream, nullptr, nullptr),
     INVALID_VALUE);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  IS(guest.LaunchStore(1, /*grid=*/0), INVALID_VALUE);  // this one alone loses it
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
}

BOOST_AUTO_TEST_CASE(a_bad_fill_is_found_when_the_graph_is_instantiated) {
  const GraphGuest guest;
  OK(Begin(guest.stream));
  OK(RAW(cuMemsetD8Async)(0x100, 1, 4, guest.stream));
  const CUgraph graph = EndWithGraph(guest.stream);
  CUgraphExec executable = nullptr;
  IS(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(graph));
}

CHILD(launch_a_graph_without_the_module_of_its_kernel) {
  RAW(cuInit)(0);
  const GraphGuest guest;
  OK(Begin(guest.stream));
  OK(guest.LaunchStore(42));
  const CUgraphExec executable = Instantiate(EndWithGraph(guest.stream));
  OK(RAW(cuModuleUnload)(guest.module));
  return RAW(cuGraphLaunch)(executable, guest.stream);
}

// A real driver launches it or crashes.
BOOST_AUTO_TEST_CASE(a_graph_without_the_module_of_its_kernel_panics, *cudasim_test::OnlySim()) {
  const cudasim_test::Ended ended =
      cudasim_test::RunChild("launch_a_graph_without_the_module_of_its_kernel");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST(
      (ended.output.find("the module of a kernel in the graph was unloaded") != std::string::npos),
      ended.output);
}

BOOST_AUTO_TEST_CASE(what_a_capture_says_of_itself) {
  const GraphGuest guest;
  auto status = kActive;
  cuuint64_t id = 5;
  using First = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*);
  OK(RAW_AS(First, "cuStreamGetCaptureInfo")(guest.stream, &status, &id));
  BOOST_CHECK_EQUAL(status, kNone);
  BOOST_TEST(id == 5u);
  OK(Begin(guest.stream));
  const Info first(guest.stream);
  BOOST_TEST(first.count == 0u);
  OK(guest.Fill(guest.stream));
  OK(guest.LaunchStore(1));
  const Info second(guest.stream);
  BOOST_TEST(second.id == first.id);
  BOOST_TEST(second.count == 1u);
  BOOST_CHECK(second.nodes[0] == NodesOf(second.graph)[1]);
  guest.Fork(guest.second);
  BOOST_TEST(Info(guest.second).id == first.id);
  OK(guest.Fill(guest.second));
  OK(guest.Record(guest.recorded, guest.second));
  OK(guest.Wait(guest.stream, guest.recorded));
  BOOST_TEST(Info(guest.stream).count == 2u);
  const CUgraph graph = EndWithGraph(guest.stream);
  BOOST_CHECK(graph == first.graph);
  OK(RAW(cuGraphDestroy)(graph));
  OK(Begin(guest.stream, kGlobal));
  BOOST_TEST(Info(guest.stream).id > first.id);
  IS(RAW(cuEventQuery)(guest.never), STREAM_CAPTURE_UNSUPPORTED);
  OK(RAW(cuStreamGetCaptureInfo)(guest.stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
  BOOST_CHECK_EQUAL(status, kLost);
  BOOST_TEST(id == 5u);
  IS(End(guest.stream), STREAM_CAPTURE_INVALIDATED);
  IS(RAW(cuStreamGetCaptureInfo)(guest.stream, nullptr, &id, nullptr, nullptr, nullptr, nullptr),
     INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(arguments_of_graph_calls) {
  const GraphGuest guest;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  size_t count = 3;
  IS(RAW(cuGraphCreate)(nullptr, 0), INVALID_VALUE);
  IS(RAW(cuGraphCreate)(&graph, 1), INVALID_VALUE);
  OK(RAW(cuGraphCreate)(&graph, 0));
  IS(RAW(cuGraphGetNodes)(graph, nullptr, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphGetNodes)(nullptr, nullptr, &count), INVALID_VALUE);
  CUgraphNode nodes[3] = {reinterpret_cast<CUgraphNode>(0x77)};
  OK(RAW(cuGraphGetNodes)(graph, nodes, &count));
  BOOST_TEST(count == 0u);
  BOOST_CHECK(nodes[0] == nullptr);
  IS(RAW(cuGraphInstantiateWithFlags)(nullptr, graph, 0), INVALID_VALUE);
  IS(RAW(cuGraphInstantiateWithFlags)(&executable, nullptr, 0), INVALID_VALUE);
  IS(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0x100), INVALID_VALUE);
  using Older = CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
  for (const Older older :
       {RAW_AS(Older, "cuGraphInstantiate"), RAW_AS(Older, "cuGraphInstantiate_v2")}) {
    auto node = reinterpret_cast<CUgraphNode>(0x77);
    char log[8] = "x";
    OK(older(&executable, graph, &node, log, sizeof(log)));
    BOOST_CHECK(node == nullptr);
    BOOST_TEST(log[0] == '\0');
    OK(RAW(cuGraphExecDestroy)(executable));
  }
  IS(RAW(cuGraphExecDestroy)(executable), INVALID_VALUE);
  IS(RAW(cuGraphLaunch)(executable, guest.stream), INVALID_VALUE);
  IS(RAW(cuGraphLaunch)(nullptr, guest.stream), INVALID_VALUE);
  SetStack({});
  IS(RAW(cuGraphInstantiateWithFlags)(&executable, nullptr, 0), INVALID_CONTEXT);
  IS(RAW(cuGraphLaunch)(nullptr, nullptr), INVALID_CONTEXT);
  OK(RAW(cuGraphDestroy)(graph));
  IS(RAW(cuGraphDestroy)(graph), INVALID_VALUE);
  IS(RAW(cuGraphGetNodes)(graph, nullptr, &count), INVALID_VALUE);
  IS(RAW(cuGraphDestroy)(nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
