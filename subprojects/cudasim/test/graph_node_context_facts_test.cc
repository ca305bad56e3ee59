// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contexts that nodes of graphs name, those that they work in, and what they leave in them.

#include <functional>

#include "cudasim/sim.h"
#include "test/graphs.h"
#include "test/green.h"

BOOST_AUTO_TEST_SUITE(graph_node_context_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

CUDA_MEMSET_NODE_PARAMS FillOf(CUdeviceptr to, unsigned value, size_t width = 2) {
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = to;
  fill.value = value;
  fill.elementSize = fill.height = 1;
  fill.width = width;
  return fill;
}

CUDA_MEMCPY3D CopyOf(const void* from, CUdeviceptr to, size_t width = 2) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.WidthInBytes = width;
  copy.Height = copy.Depth = 1;
  return copy;
}

// With memory of a pool, which is in no context.
struct ContextGuest : GraphGuest {
  ContextGuest() {
    OK(RAW(cuMemAllocAsync)(&pooled, 64, stream));
    OK(RAW(cuStreamSynchronize)(stream));
  }
  ~ContextGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    SetStack({context.get()});
    OK(RAW(cuMemFreeAsync)(pooled, stream));
  }
  ContextGuest(const ContextGuest&) = delete;
  ContextGuest& operator=(const ContextGuest&) = delete;

  CUresult Fill(CUdeviceptr to, CUcontext named) {
    const CUDA_MEMSET_NODE_PARAMS fill = FillOf(to, 7);
    return RAW(cuGraphAddMemsetNode)(&node, graph, nullptr, 0, &fill, named);
  }
  CUresult Copy(CUdeviceptr to, CUcontext named) {
    const CUDA_MEMCPY3D copy = CopyOf(bytes, to);
    return RAW(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &copy, named);
  }
  void Instantiate() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  }
  CUresult FillInstead(CUdeviceptr to, unsigned value, CUcontext named) const {
    const CUDA_MEMSET_NODE_PARAMS fill = FillOf(to, value);
    return RAW(cuGraphExecMemsetNodeSetParams)(executable, node, &fill, named);
  }
  CUresult CopyInstead(CUdeviceptr to, const unsigned char* from, CUcontext named) const {
    const CUDA_MEMCPY3D copy = CopyOf(from, to);
    return RAW(cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, named);
  }

  const unsigned char bytes[4] = {3, 4, 5, 6};
  CUdeviceptr pooled = 0;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

unsigned FlagsOf(CUcontext context) {
  unsigned flags = 0;
  OK(RAW(cuCtxPushCurrent)(context));
  OK(RAW(cuCtxGetFlags)(&flags));
  OK(RAW(cuCtxPopCurrent)(&context));
  return flags;
}

// What `add` adds makes the guest's context keep local memory, once it is instantiated.
void CheckKeepsLocalMemory(const std::function<void(ContextGuest&)>& add) {
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  const unsigned before = FlagsOf(own);
  add(guest);
  SetStack({guest.other.get()});
  guest.Instantiate();
  BOOST_TEST(FlagsOf(own) == (before | CU_CTX_LMEM_RESIZE_TO_MAX));
  BOOST_TEST((FlagsOf(guest.other.get()) & CU_CTX_LMEM_RESIZE_TO_MAX) == 0u);
}

CUresult DoNothing(const SimLaunch&) { return CUDA_SUCCESS; }

// Nodes of kPtx's kernel, of whose parameters `memory` is one.
struct KernelParams {
  KernelParams(CUfunction function, CUdeviceptr* memory) : arguments{memory, &value} {
    node.func = function;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
  }
  KernelParams(const KernelParams&) = delete;
  KernelParams& operator=(const KernelParams&) = delete;

  unsigned value = 0;
  void* arguments[2];
  CUDA_KERNEL_NODE_PARAMS_v2 node = {};
};

CUfunction LoadIn(CUcontext context) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  SetStack({context});
  Sim::RegisterKernel("store", DoNothing);
  OK(RAW(cuModuleLoadData)(&module, kPtx));
  OK(RAW(cuModuleGetFunction)(&function, module, "store"));
  return function;
}
CUcontext ContextOfKernel(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v2 told = {};
  OK(RAW(cuGraphKernelNodeGetParams)(node, &told));
  return told.ctx;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_fill_goes_with_its_memory) {
  ContextGuest guest;
  SetStack({});
  OK(guest.Fill(guest.memory, nullptr));
  OK(guest.Fill(guest.other_memory, nullptr));
  OK(guest.Fill(guest.other_memory, guest.context.get()));
  IS(guest.Fill(guest.pooled, nullptr), INVALID_VALUE);
  OK(guest.Fill(guest.pooled, guest.context.get()));
  SetStack({guest.context.get()});
  IS(guest.Fill(guest.pooled, nullptr), INVALID_VALUE);  // what is current is not named
  BOOST_TEST(Is(guest.Run(guest.graph), {7, 7, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_copy_names_a_context_or_none) {
  ContextGuest guest;
  SetStack({});
  OK(guest.Copy(guest.memory, nullptr));
  OK(guest.Copy(guest.other_memory, guest.context.get()));
  OK(guest.Copy(guest.pooled, nullptr));
  SetStack({guest.context.get()});
  BOOST_TEST(Is(guest.Run(guest.graph), {3, 4, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_fill_that_is_changed_stays_in_its_context) {
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  const CUcontext other = guest.other.get();
  OK(guest.Fill(guest.memory, own));
  guest.Instantiate();
  OK(guest.FillInstead(guest.memory, 8, other));  // the memory says which
  IS(guest.FillInstead(guest.other_memory, 8, own), INVALID_VALUE);
  IS(guest.FillInstead(guest.pooled, 8, other), INVALID_VALUE);
  BOOST_TEST(Is(guest.Launch(guest.executable), {8, 8, 0, 0}));
  SetStack({});
  IS(guest.FillInstead(guest.memory, 9, nullptr), INVALID_VALUE);
  SetStack({other});
  IS(guest.FillInstead(guest.pooled, 8, nullptr), INVALID_VALUE);
  SetStack({own});
  OK(guest.FillInstead(guest.pooled, 8, nullptr));
  OK(guest.FillInstead(guest.pooled, 8, other));  // nothing changes
  OK(guest.FillInstead(guest.memory, 9, nullptr));
  BOOST_TEST(Is(guest.Launch(guest.executable), {9, 9, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_copy_that_is_changed_stays_in_its_context) {
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  const CUcontext other = guest.other.get();
  OK(guest.Copy(guest.memory, own));
  guest.Instantiate();
  OK(guest.CopyInstead(guest.memory, guest.bytes + 1, other));
  OK(guest.CopyInstead(guest.memory, static_cast<unsigned char*>(guest.host), own));  // pinned
  OK(guest.CopyInstead(guest.memory, guest.bytes + 2, nullptr));
  IS(guest.CopyInstead(guest.other_memory, guest.bytes, own), INVALID_VALUE);
  IS(guest.CopyInstead(guest.pooled, guest.bytes, own), INVALID_VALUE);
  BOOST_TEST(Is(guest.Launch(guest.executable), {5, 6, 0, 0}));
  SetStack({});
  IS(guest.CopyInstead(guest.memory, guest.bytes, nullptr), INVALID_VALUE);
  SetStack({own});
  // In memory of no context, it is the one that was named.
  OK(RAW(cuGraphDestroyNode)(guest.node));
  OK(guest.Copy(guest.pooled, own));
  guest.Instantiate();
  IS(guest.CopyInstead(guest.pooled, guest.bytes + 1, other), INVALID_VALUE);
  OK(guest.CopyInstead(guest.pooled, guest.bytes, other));  // nothing changes
}

BOOST_AUTO_TEST_CASE(a_node_copies_something) {
  ContextGuest guest;
  const auto check = [&](const std::function<CUresult(const CUDA_MEMCPY3D&)>& ask) {
    for (size_t CUDA_MEMCPY3D::*extent :
         {&CUDA_MEMCPY3D::WidthInBytes, &CUDA_MEMCPY3D::Height, &CUDA_MEMCPY3D::Depth}) {
      CUDA_MEMCPY3D copy = CopyOf(guest.bytes, guest.memory);
      copy.*extent = 0;
      IS(ask(copy), INVALID_VALUE);
    }
  };
  check([&](const CUDA_MEMCPY3D& copy) {
    return RAW(cuGraphAddMemcpyNode)(&guest.node, guest.graph, nullptr, 0, &copy, nullptr);
  });
  OK(guest.Copy(guest.memory, nullptr));
  check([&](const CUDA_MEMCPY3D& copy) {
    return RAW(cuGraphMemcpyNodeSetParams)(guest.node, &copy);
  });
  guest.Instantiate();
  check([&](const CUDA_MEMCPY3D& copy) {
    return RAW(cuGraphExecMemcpyNodeSetParams)(guest.executable, guest.node, &copy, nullptr);
  });
}

BOOST_AUTO_TEST_CASE(a_fill_tells_its_whole_value) {
  ContextGuest guest;
  const CUDA_MEMSET_NODE_PARAMS fill = FillOf(guest.memory, 0x102);
  const CUcontext context = guest.context.get();
  OK(RAW(cuGraphAddMemsetNode)(&guest.node, guest.graph, nullptr, 0, &fill, context));
  CUDA_MEMSET_NODE_PARAMS told = {};
  OK(RAW(cuGraphMemsetNodeGetParams)(guest.node, &told));
  BOOST_TEST(told.value == 0x102u);  // which is no byte
}

BOOST_AUTO_TEST_CASE(a_kernel_that_is_instantiated_keeps_local_memory) {
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  const CUcontext other = guest.other.get();
  const unsigned before = FlagsOf(own);
  BOOST_TEST((before & CU_CTX_LMEM_RESIZE_TO_MAX) == 0u);
  // Fills of the device's memory and copies do not.
  OK(guest.Fill(guest.memory, own));
  OK(guest.Copy(guest.memory, own));
  guest.Instantiate();
  BOOST_TEST(FlagsOf(own) == before);

  const KernelParams kernel(LoadIn(own), &guest.memory);
  OK(RAW(cuGraphAddKernelNode)(&guest.node, guest.graph, nullptr, 0, &kernel.node));
  BOOST_TEST(FlagsOf(own) == before);
  SetStack({other});
  guest.Instantiate();
  BOOST_TEST(FlagsOf(own) == (before | CU_CTX_LMEM_RESIZE_TO_MAX));
  BOOST_TEST((FlagsOf(other) & CU_CTX_LMEM_RESIZE_TO_MAX) == 0u);
  SetStack({own});
  OK(RAW(cuCtxSetFlags)(before));
  OK(RAW(cuGraphLaunch)(guest.executable, guest.stream));
  OK(RAW(cuStreamSynchronize)(guest.stream));
  BOOST_TEST(FlagsOf(own) == before);
}

BOOST_AUTO_TEST_CASE(fills_and_copies_are_kernels_now_and_then) {
  CheckKeepsLocalMemory([](ContextGuest& guest) {
    CUdeviceptr managed = 0;
    OK(RAW(cuMemAllocManaged)(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    OK(guest.Fill(managed, guest.other.get()));
  });
  CheckKeepsLocalMemory([](ContextGuest& guest) {
    CUDA_MEMSET_NODE_PARAMS rows = FillOf(guest.memory, 1);
    rows.height = 3;
    rows.pitch = 16;
    const CUcontext named = guest.other.get();
    OK(RAW(cuGraphAddMemsetNode)(&guest.node, guest.graph, nullptr, 0, &rows, named));
  });
  CheckKeepsLocalMemory([](ContextGuest& guest) {
    CUDA_MEMCPY3D copy = CopyOf(nullptr, guest.other_memory);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = guest.memory;
    const CUcontext named = guest.context.get();
    OK(RAW(cuGraphAddMemcpyNode)(&guest.node, guest.graph, nullptr, 0, &copy, named));
  });
}

// The last cases: on an H100 contexts that are made after them keep local memory.
//
// Whether memory is of a pool is kept, of the source and of the destination; and where one is, the
// context that is named.
BOOST_AUTO_TEST_CASE(a_copy_that_is_changed_keeps_its_kinds_of_memory) {
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  const CUcontext other = guest.other.get();
  const auto* const pinned = static_cast<unsigned char*>(guest.host);
  CUdeviceptr pooled = 0;
  OK(RAW(cuMemAllocAsync)(&pooled, 64, guest.stream));

  OK(guest.Copy(guest.memory, own));
  guest.Instantiate();
  OK(guest.CopyInstead(guest.other_memory, pinned, own));  // the source says which context
  IS(guest.CopyInstead(guest.pooled, pinned, own), INVALID_VALUE);

  OK(RAW(cuGraphDestroyNode)(guest.node));
  OK(guest.Copy(guest.pooled, own));
  guest.Instantiate();
  OK(guest.CopyInstead(pooled, guest.bytes + 1, own));
  OK(guest.CopyInstead(pooled, pinned, own));
  IS(guest.CopyInstead(guest.pooled, pinned, other), INVALID_VALUE);
  IS(guest.CopyInstead(guest.memory, pinned, own), INVALID_VALUE);

  const auto from_device = [](CUdeviceptr from, CUdeviceptr to) {
    CUDA_MEMCPY3D copy = CopyOf(nullptr, to);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    return copy;
  };
  const CUDA_MEMCPY3D first = from_device(guest.pooled, guest.memory);
  const CUDA_MEMCPY3D of_other = from_device(pooled, guest.other_memory);
  const CUDA_MEMCPY3D unpooled = from_device(guest.memory + 32, guest.memory);
  OK(RAW(cuGraphDestroyNode)(guest.node));
  OK(RAW(cuGraphAddMemcpyNode)(&guest.node, guest.graph, nullptr, 0, &first, own));
  guest.Instantiate();
  IS(RAW(cuGraphExecMemcpyNodeSetParams)(guest.executable, guest.node, &unpooled, own),
     INVALID_VALUE);
  OK(RAW(cuGraphExecMemcpyNodeSetParams)(guest.executable, guest.node, &of_other, own));
  OK(RAW(cuMemFreeAsync)(pooled, guest.stream));
}

// The graph's own node, unlike the executable graph's, names what is current then, or nothing.
BOOST_AUTO_TEST_CASE(changed_nodes_name_the_current_context) {
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  const CUDA_MEMCPY3D same = CopyOf(guest.bytes, guest.pooled);
  const CUDA_MEMCPY3D other = CopyOf(guest.bytes + 1, guest.pooled);
  CUgraphExecUpdateResultInfo info = {};
  OK(guest.Copy(guest.pooled, own));
  guest.Instantiate();
  for (const CUcontext current : {own, guest.other.get(), CUcontext{nullptr}}) {
    SetStack({});
    if (current != nullptr) SetStack({current});
    OK(RAW(cuGraphMemcpyNodeSetParams)(guest.node, &other));
    SetStack({own});
    BOOST_CHECK_EQUAL(RAW(cuGraphExecUpdate)(guest.executable, guest.graph, &info),
                      current == own ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    OK(RAW(cuGraphMemcpyNodeSetParams)(guest.node, &same));
    OK(RAW(cuGraphExecUpdate)(guest.executable, guest.graph, &info));
  }
}

// Where a green context is current, which must be of the function's. The last case: on an H100 it
// leaves new contexts keeping local memory.
BOOST_AUTO_TEST_CASE(a_kernel_is_placed_in_a_green_context_that_is_current) {
  Green green;
  ContextGuest guest;
  const KernelParams of_primary(LoadIn(green.primary), &guest.memory);
  const KernelParams of_own(LoadIn(guest.context.get()), &guest.memory);
  const auto add = [&](const KernelParams& kernel, CUcontext current) {
    SetStack({current});
    return RAW(cuGraphAddKernelNode)(&guest.node, guest.graph, nullptr, 0, &kernel.node);
  };
  const auto change = [&](const KernelParams& kernel, CUcontext current) {
    SetStack({current});
    return RAW(cuGraphExecKernelNodeSetParams)(guest.executable, guest.node, &kernel.node);
  };
  OK(add(of_primary, guest.context.get()));
  BOOST_TEST(ContextOfKernel(guest.node) == green.primary);
  SetStack({green.context});
  OK(RAW(cuGraphKernelNodeSetParams)(guest.node, &of_primary.node));
  BOOST_TEST(ContextOfKernel(guest.node) == green.context);
  IS(RAW(cuGraphKernelNodeSetParams)(guest.node, &of_own.node), INVALID_VALUE);
  OK(RAW(cuGraphDestroyNode)(guest.node));

  IS(add(of_own, green.context), INVALID_VALUE);
  OK(add(of_primary, green.context));
  BOOST_TEST(ContextOfKernel(guest.node) == green.context);
  guest.Instantiate();
  OK(change(of_primary, green.context));
  IS(change(of_own, green.context), INVALID_VALUE);
  IS(change(of_primary, green.primary), INVALID_VALUE);  // it stays where it is
  OK(RAW(cuGraphExecDestroy)(guest.executable));
  guest.executable = nullptr;
  OK(RAW(cuGraphDestroyNode)(guest.node));
  SetStack({green.context});
  green.Destroy();
  IS(RAW(cuGraphAddKernelNode)(&guest.node, guest.graph, nullptr, 0, &of_primary.node),
     CONTEXT_IS_DESTROYED);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(fills_and_copies_stay_in_the_green_context_that_they_name) {
  Green green;
  ContextGuest guest;
  const CUcontext own = guest.context.get();
  CUdeviceptr memory = 0;
  SetStack({green.primary});
  OK(RAW(cuMemAlloc)(&memory, 64));
  const auto begin_anew = [&] {
    OK(RAW(cuGraphDestroyNode)(guest.node));
    SetStack({own});
  };
  OK(guest.Fill(memory, green.context));
  guest.Instantiate();
  OK(guest.FillInstead(memory, 8, green.context));
  IS(guest.FillInstead(memory, 9, green.primary), INVALID_VALUE);
  begin_anew();
  OK(guest.Fill(memory, green.primary));
  guest.Instantiate();
  IS(guest.FillInstead(memory, 8, green.context), INVALID_VALUE);
  begin_anew();
  OK(guest.Fill(guest.memory, green.context));  // of another context: it goes with its memory
  guest.Instantiate();
  OK(guest.FillInstead(guest.memory, 8, own));
  begin_anew();
  OK(guest.Copy(memory, green.context));
  guest.Instantiate();
  OK(guest.CopyInstead(memory, guest.bytes + 1, green.context));
  IS(guest.CopyInstead(memory, guest.bytes + 2, green.primary), INVALID_VALUE);
  begin_anew();
  OK(guest.Copy(memory, green.primary));
  guest.Instantiate();
  OK(guest.CopyInstead(memory, guest.bytes + 1, green.context));
  begin_anew();
  OK(guest.Copy(guest.pooled, green.primary));
  guest.Instantiate();
  OK(guest.CopyInstead(guest.pooled, guest.bytes + 1, green.context));
  OK(guest.CopyInstead(guest.pooled, guest.bytes + 2, green.primary));  // it stays where it was
  begin_anew();
  SetStack({green.context});  // which is named where nothing is
  OK(guest.Fill(memory, nullptr));
  guest.Instantiate();
  OK(guest.FillInstead(memory, 8, green.context));
  IS(guest.FillInstead(memory, 9, green.primary), INVALID_VALUE);
  begin_anew();
  SetStack({green.context});
  OK(guest.Copy(memory, nullptr));
  guest.Instantiate();
  OK(guest.CopyInstead(memory, guest.bytes + 1, green.context));
  IS(guest.CopyInstead(memory, guest.bytes + 2, green.primary), INVALID_VALUE);
  SetStack({green.primary});
  OK(RAW(cuMemFree)(memory));
}

BOOST_AUTO_TEST_SUITE_END()
