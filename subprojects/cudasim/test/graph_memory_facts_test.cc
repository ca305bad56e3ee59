// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that is allocated in a capture belongs to the graph.

#include <vector>

#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(graph_memory_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kBytes = 256;

// A graph that fills memory of its own, and copies it to where it stays.
struct MemoryGuest : Guest {
  explicit MemoryGuest(bool frees) {
    OK(Begin(stream));
    OK(RAW(cuMemAllocAsync)(&pointer, kBytes, stream));
    OK(RAW(cuMemsetD8Async)(pointer, 5, kBytes, stream));
    OK(RAW(cuMemcpyDtoDAsync)(memory, pointer, kBytes, stream));
    if (frees) OK(RAW(cuMemFreeAsync)(pointer, stream));
    BOOST_CHECK_EQUAL(StatusOf(stream), kActive);
    OK(RAW(cuStreamEndCapture)(stream, &graph));
    BOOST_REQUIRE(graph != nullptr);
  }
  MemoryGuest(const MemoryGuest&) = delete;
  MemoryGuest& operator=(const MemoryGuest&) = delete;
  ~MemoryGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  }

  void Instantiate(unsigned long long flags = 0) {
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, flags));
  }
  CUresult Run() const {
    OK(RAW(cuMemsetD8)(memory, 0, kBytes));
    const CUresult code = RAW(cuGraphLaunch)(executable, second);
    OK(RAW(cuStreamSynchronize)(second));
    return code;
  }
  static bool HoldsFives(CUdeviceptr from) {
    std::vector<unsigned char> bytes(kBytes);
    OK(RAW(cuMemcpyDtoH)(bytes.data(), from, kBytes));
    return bytes == std::vector<unsigned char>(kBytes, 5);
  }

  CUdeviceptr pointer = 0;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_allocation_and_its_free_become_nodes) {
  MemoryGuest guest(/*frees=*/true);
  BOOST_TEST(guest.pointer != 0u);
  CUgraphNode nodes[5] = {};
  size_t count = 5;
  OK(RAW(cuGraphGetNodes)(guest.graph, nodes, &count));
  BOOST_REQUIRE_EQUAL(count, 4u);
  const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEMSET,
                                   CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEM_FREE};
  for (size_t i = 0; i < count; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    OK(RAW(cuGraphNodeGetType)(nodes[i], &type));
    BOOST_CHECK_EQUAL(type, types[i]);
  }
  guest.Instantiate();
  for (int i = 0; i < 3; ++i) {
    OK(guest.Run());
    BOOST_TEST(guest.HoldsFives(guest.memory));
  }
}

BOOST_AUTO_TEST_CASE(memory_stays_with_what_was_instantiated) {
  MemoryGuest guest(/*frees=*/true);
  guest.Instantiate();
  OK(RAW(cuGraphDestroy)(guest.graph));
  guest.graph = nullptr;
  for (int i = 0; i < 2; ++i) {
    OK(guest.Run());
    BOOST_TEST(guest.HoldsFives(guest.memory));
  }
}

BOOST_AUTO_TEST_CASE(memory_that_a_graph_does_not_free_stays) {
  for (const bool async : {false, true}) {
    MemoryGuest guest(/*frees=*/false);
    guest.Instantiate();
    const auto free = [&] {
      return async ? RAW(cuMemFreeAsync)(guest.pointer, guest.second)
                   : RAW(cuMemFree)(guest.pointer);
    };
    for (int i = 0; i < 2; ++i) {
      OK(guest.Run());
      BOOST_TEST(guest.HoldsFives(guest.pointer));
      IS(RAW(cuGraphLaunch)(guest.executable, guest.second), INVALID_VALUE);
      OK(free());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_graph_may_free_what_is_left_when_it_is_launched_again) {
  MemoryGuest guest(/*frees=*/false);
  guest.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 3; ++i) {
    OK(guest.Run());
    BOOST_TEST(guest.HoldsFives(guest.pointer));
  }
  OK(RAW(cuMemFree)(guest.pointer));
}

BOOST_AUTO_TEST_CASE(memory_outlives_the_graph_that_did_not_free_it) {
  CUdeviceptr pointer = 0;
  const OwnContext keeps_the_device_in_use;
  {
    MemoryGuest guest(/*frees=*/false);
    guest.Instantiate();
    OK(guest.Run());
    pointer = guest.pointer;
    OK(RAW(cuGraphExecDestroy)(guest.executable));
    guest.executable = nullptr;
    OK(RAW(cuGraphDestroy)(guest.graph));
    guest.graph = nullptr;
    BOOST_TEST(guest.HoldsFives(pointer));
    OK(RAW(cuMemFree)(pointer));
  }
}

BOOST_AUTO_TEST_CASE(a_graph_frees_its_memory_once_and_nobody_else_does) {
  const Guest guest;
  CUdeviceptr pointer = 0;
  OK(Begin(guest.stream));
  OK(RAW(cuMemAllocAsync)(&pointer, kBytes, guest.stream));
  OK(RAW(cuMemFreeAsync)(pointer, guest.stream));
  IS(RAW(cuMemFreeAsync)(pointer, guest.stream), INVALID_VALUE);
  BOOST_CHECK_EQUAL(StatusOf(guest.stream), kActive);
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  IS(RAW(cuMemFreeAsync)(pointer, guest.stream), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(a_graph_with_memory_is_instantiated_once_at_a_time) {
  MemoryGuest guest(/*frees=*/true);
  guest.Instantiate();
  CUgraphExec another = nullptr;
  BOOST_TEST((RAW(cuGraphInstantiateWithFlags)(&another, guest.graph, 0) !=
              CUDA_SUCCESS));  // undocumented
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  guest.Instantiate();
  OK(guest.Run());
  BOOST_TEST(guest.HoldsFives(guest.memory));
}

BOOST_AUTO_TEST_SUITE_END()
