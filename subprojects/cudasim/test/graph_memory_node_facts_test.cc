// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that allocate and free memory.

#include <utility>
#include <vector>

#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(graph_memory_node_facts)

using namespace cudasim_facts;

namespace {

constexpr size_t kBytes = 256;
constexpr size_t kBlock = size_t{32} << 20;  // what a device gives for them

cuuint64_t AmountOf(CUgraphMem_attribute attribute) {
  cuuint64_t amount = 0;
  OK(RAW(cuDeviceGetGraphMemAttribute)(0, attribute, &amount));
  return amount;
}

CUDA_MEM_ALLOC_NODE_PARAMS OnDevice(size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  return params;
}

// A graph that allocates memory and fills it.
struct AllocationGuest : GraphGuest {
  AllocationGuest() {
    CUDA_MEM_ALLOC_NODE_PARAMS params = OnDevice(kBytes);
    OK(RAW(cuGraphAddMemAllocNode)(&allocation, graph, nullptr, 0, &params));
    pointer = params.dptr;
    BOOST_TEST(pointer != 0u);
    CUDA_MEMSET_NODE_PARAMS fill = {};
    fill.dst = pointer;
    fill.value = 5;
    fill.elementSize = fill.height = 1;
    fill.width = kBytes;
    OK(RAW(cuGraphAddMemsetNode)(&filler, graph, &allocation, 1, &fill, context.get()));
  }
  ~AllocationGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
  }

  void Instantiate() { OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0)); }
  CUresult Launch() const { return LaunchAndWait(executable); }
  CUresult LaunchAndWait(CUgraphExec one) const {
    const CUresult code = RAW(cuGraphLaunch)(one, stream);
    OK(RAW(cuStreamSynchronize)(stream));
    return code;
  }
  bool HoldsFives(CUdeviceptr from) const {
    std::vector<unsigned char> bytes(kBytes);
    OK(RAW(cuMemcpyDtoH)(bytes.data(), from, kBytes));
    return bytes == std::vector<unsigned char>(kBytes, 5);
  }

  CUgraphNode allocation = nullptr;
  CUgraphNode filler = nullptr;
  CUdeviceptr pointer = 0;
  CUgraphExec executable = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_allocates_memory_that_its_graph_frees) {
  AllocationGuest guest;
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = guest.pointer;
  copy.dstDevice = guest.memory;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddMemcpyNode)(&node, guest.graph, &guest.filler, 1, &copy, guest.context.get()));
  OK(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, &node, 1, guest.pointer));
  auto type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(RAW(cuGraphNodeGetType)(guest.allocation, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  OK(RAW(cuGraphNodeGetType)(node, &type));
  BOOST_CHECK_EQUAL(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
  guest.Instantiate();
  for (int i = 0; i < 2; ++i) {
    OK(RAW(cuMemsetD8)(guest.memory, 0, kBytes));
    OK(guest.Launch());
    BOOST_TEST(guest.HoldsFives(guest.memory));
  }
  IS(RAW(cuMemFree)(guest.pointer), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(copies_of_no_context_reach_it) {
  AllocationGuest guest;
  const std::vector<unsigned char> fives(kBytes, 5);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = fives.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = guest.pointer;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddMemcpyNode)(&node, guest.graph, &guest.filler, 1, &copy, nullptr));
  guest.Instantiate();
}

BOOST_AUTO_TEST_CASE(memory_that_no_node_frees_stays) {
  AllocationGuest guest;
  guest.Instantiate();
  for (int i = 0; i < 2; ++i) {
    OK(guest.Launch());
    BOOST_TEST(guest.HoldsFives(guest.pointer));
    OK(RAW(cuMemFree)(guest.pointer));
  }
}

BOOST_AUTO_TEST_CASE(pointers_to_memory_are_known_while_it_is_there) {
  AllocationGuest guest;
  const auto ask = [&] {
    unsigned type = 0;
    return RAW(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, guest.pointer);
  };
  const auto ask_range = [&] {
    size_t size = 0;
    CUdeviceptr base = 0;
    return RAW(cuMemGetAddressRange)(&base, &size, guest.pointer);
  };
  guest.Instantiate();
  IS(ask(), INVALID_VALUE);
  IS(ask_range(), NOT_FOUND);
  OK(guest.Launch());
  OK(ask());
  OK(ask_range());
  OK(RAW(cuMemFree)(guest.pointer));
  IS(ask(), INVALID_VALUE);
  IS(ask_range(), NOT_FOUND);
}

BOOST_AUTO_TEST_CASE(a_launch_of_another_graph_frees_memory) {
  AllocationGuest guest;
  CUgraph other = nullptr;
  OK(RAW(cuGraphCreate)(&other, 0));
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddMemFreeNode)(&node, other, nullptr, 0, guest.pointer));
  IS(RAW(cuGraphAddMemFreeNode)(&node, other, nullptr, 0, guest.pointer), INVALID_VALUE);
  IS(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, nullptr, 0, guest.pointer), INVALID_VALUE);
  guest.Instantiate();
  CUgraphExec freeing = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&freeing, other, 0));
  for (int i = 0; i < 2; ++i) {
    OK(guest.Launch());
    BOOST_TEST(guest.HoldsFives(guest.pointer));
    OK(guest.LaunchAndWait(freeing));
  }
  OK(RAW(cuGraphExecDestroy)(freeing));
  OK(RAW(cuGraphDestroy)(other));
}

BOOST_AUTO_TEST_CASE(a_capture_frees_memory_of_another_graph) {
  AllocationGuest guest;
  OK(Begin(guest.stream));
  OK(RAW(cuMemFreeAsync)(guest.pointer, guest.stream));
  CUgraph other = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &other));
  guest.Instantiate();
  CUgraphExec freeing = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&freeing, other, 0));
  for (int i = 0; i < 2; ++i) {
    OK(guest.Launch());
    OK(guest.LaunchAndWait(freeing));
  }
  OK(RAW(cuGraphExecDestroy)(freeing));
  OK(RAW(cuGraphDestroy)(other));
}

BOOST_AUTO_TEST_CASE(memory_is_freed_in_one_graph) {
  AllocationGuest guest;
  CUgraph other = nullptr;
  OK(RAW(cuGraphCreate)(&other, 0));
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, &guest.filler, 1, guest.pointer));
  IS(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, &guest.filler, 1, guest.pointer),
     INVALID_VALUE);
  IS(RAW(cuGraphAddMemFreeNode)(&node, other, nullptr, 0, guest.pointer), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(other));
}

BOOST_AUTO_TEST_CASE(memory_nodes_tell_their_parameters) {
  AllocationGuest guest;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  OK(RAW(cuGraphMemAllocNodeGetParams)(guest.allocation, &params));
  BOOST_TEST(params.dptr == guest.pointer);
  BOOST_TEST(params.bytesize == kBytes);
  BOOST_CHECK_EQUAL(params.poolProps.allocType, CU_MEM_ALLOCATION_TYPE_PINNED);
  BOOST_CHECK_EQUAL(params.poolProps.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  BOOST_TEST(params.poolProps.location.id == 0);
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, &guest.filler, 1, guest.pointer));
  CUdeviceptr freed = 0;
  OK(RAW(cuGraphMemFreeNodeGetParams)(node, &freed));
  BOOST_TEST(freed == guest.pointer);
  IS(RAW(cuGraphMemAllocNodeGetParams)(node, &params), INVALID_VALUE);
  IS(RAW(cuGraphMemAllocNodeGetParams)(guest.allocation, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphMemFreeNodeGetParams)(guest.allocation, &freed), INVALID_VALUE);
  IS(RAW(cuGraphMemFreeNodeGetParams)(node, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(captured_memory_tells_its_parameters) {
  const Guest guest;
  CUdeviceptr pointer = 0;
  OK(Begin(guest.stream));
  OK(RAW(cuMemAllocAsync)(&pointer, kBytes, guest.stream));
  OK(RAW(cuMemFreeAsync)(pointer, guest.stream));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  Nodes nodes(2);
  size_t count = nodes.size();
  OK(RAW(cuGraphGetNodes)(graph, nodes.data(), &count));
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  OK(RAW(cuGraphMemAllocNodeGetParams)(nodes[0], &params));
  BOOST_TEST(params.dptr == pointer);
  BOOST_TEST(params.bytesize >= kBytes);
  CUdeviceptr freed = 0;
  OK(RAW(cuGraphMemFreeNodeGetParams)(nodes[1], &freed));
  BOOST_TEST(freed == pointer);
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(the_call_for_nodes_of_any_type_takes_memory_nodes) {
  const GraphGuest guest;
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps = OnDevice(kBytes).poolProps;
  params.alloc.bytesize = kBytes;
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  params.alloc.accessDescs = &access;
  params.alloc.accessDescCount = 1;
  CUgraphNode allocation = nullptr;
  OK(RAW(cuGraphAddNode)(&allocation, guest.graph, nullptr, nullptr, 0, &params));
  const CUdeviceptr pointer = params.alloc.dptr;
  CUDA_MEM_ALLOC_NODE_PARAMS told = {};
  OK(RAW(cuGraphMemAllocNodeGetParams)(allocation, &told));
  BOOST_TEST(told.dptr == pointer);
  BOOST_REQUIRE(told.accessDescCount == 1u);
  BOOST_TEST(told.accessDescs != &access);  // the node's own
  BOOST_TEST(told.accessDescs[0].location.id == 0);
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  params.free.dptr = pointer;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphAddNode)(&node, guest.graph, &allocation, nullptr, 1, &params));
  guest.Run(guest.graph);
}

BOOST_AUTO_TEST_CASE(bad_memory_nodes_are_refused) {
  const GraphGuest guest;
  CUgraphNode node = nullptr;
  const auto add = [&](CUDA_MEM_ALLOC_NODE_PARAMS params) {
    return RAW(cuGraphAddMemAllocNode)(&node, guest.graph, nullptr, 0, &params);
  };
  CUDA_MEM_ALLOC_NODE_PARAMS params = OnDevice(kBytes);
  IS(RAW(cuGraphAddMemAllocNode)(&node, guest.graph, nullptr, 0, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphAddMemAllocNode)(nullptr, guest.graph, nullptr, 0, &params), INVALID_VALUE);
  IS(RAW(cuGraphAddMemAllocNode)(&node, nullptr, nullptr, 0, &params), INVALID_VALUE);
  params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  BOOST_TEST((add(params) != CUDA_SUCCESS));
  params = OnDevice(kBytes);
  params.poolProps.location.id = 999;
  BOOST_TEST((add(params) != CUDA_SUCCESS));
  IS(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, nullptr, 0, guest.memory), INVALID_VALUE);
  IS(RAW(cuGraphAddMemFreeNode)(&node, guest.graph, nullptr, 0, 0), INVALID_VALUE);
  size_t count = 9;
  OK(RAW(cuGraphGetNodes)(guest.graph, nullptr, &count));
  BOOST_TEST(count == 0u);
}

BOOST_AUTO_TEST_CASE(a_device_tells_what_graphs_have_of_it) {
  cuuint64_t zero = 0;
  cuuint64_t one = 1;
  OK(RAW(cuDeviceGraphMemTrim)(0));
  const cuuint64_t before = AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
  {
    AllocationGuest guest;
    guest.Instantiate();
    OK(guest.Launch());
    const cuuint64_t used = AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    BOOST_TEST(used >= before + kBytes);
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= used);
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= used);
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) >=
               AmountOf(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
    OK(RAW(cuDeviceGraphMemTrim)(0));  // it is in use
    BOOST_TEST(guest.HoldsFives(guest.pointer));
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= kBytes);
    OK(RAW(cuMemFree)(guest.pointer));
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == used);
    OK(guest.Launch());
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == used);  // which it takes again
    OK(RAW(cuMemFree)(guest.pointer));
  }
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) ==
             before + kBlock);  // though it is freed
  {
    AllocationGuest guest;
    CUgraphNode freeing = nullptr;
    OK(RAW(cuGraphAddMemFreeNode)(&freeing, guest.graph, &guest.filler, 1, guest.pointer));
    guest.Instantiate();
    OK(guest.Launch());
  }
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) ==
             before + kBlock);  // freed by its graph, too
  {
    AllocationGuest guest;
    guest.Instantiate();
    OK(RAW(cuDeviceGraphMemTrim)(0));
    BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == before);
    for (int i = 0; i < 2; ++i) {
      OK(RAW(cuGraphUpload)(guest.executable, guest.stream));
      OK(RAW(cuStreamSynchronize)(guest.stream));
      BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == before + kBlock);
    }
  }
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == before + kBlock);
  OK(RAW(cuDeviceGraphMemTrim)(0));
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == before);
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0u);
  OK(RAW(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
  OK(RAW(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == before);
  BOOST_TEST(AmountOf(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) == 0u);
  BOOST_TEST((RAW(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one) !=
              CUDA_SUCCESS));
  BOOST_TEST((RAW(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero) !=
              CUDA_SUCCESS));
  IS(RAW(cuDeviceGraphMemTrim)(999), INVALID_DEVICE);
  IS(RAW(cuDeviceGetGraphMemAttribute)(999, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one), INVALID_DEVICE);
  IS(RAW(cuDeviceSetGraphMemAttribute)(999, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero),
     INVALID_DEVICE);
}

BOOST_AUTO_TEST_SUITE_END()
