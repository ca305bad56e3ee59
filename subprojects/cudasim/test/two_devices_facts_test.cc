// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two devices.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(two_devices_facts)

using namespace cudasim_facts;
using cudasim_test::NeedsDevices;

namespace {

// A context on each device, with memory, a stream and an event; the second is current.
struct TwoDevices {
  TwoDevices() {
    SetStack({a.get()});
    OK(RAW(cuMemAlloc)(&a_memory, kBytes));
    OK(RAW(cuStreamCreate)(&a_stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuEventCreate)(&a_event, 0));
    SetStack({b.get()});
    OK(RAW(cuMemAlloc)(&b_memory, kBytes));
    OK(RAW(cuStreamCreate)(&b_stream, CU_STREAM_NON_BLOCKING));
  }
  ~TwoDevices() { SetStack({}); }

  static constexpr size_t kBytes = size_t{1} << 20;
  OwnContext a{0};
  OwnContext b{1};
  CUdeviceptr a_memory = 0;
  CUdeviceptr b_memory = 0;
  CUstream a_stream = nullptr;
  CUstream b_stream = nullptr;
  CUevent a_event = nullptr;
};

// Two pieces of memory of a pool of the first device, and a copy from the host to the first, which
// a graph does in the context that is current.
struct PooledCopy {
  explicit PooledCopy(CUstream stream) : stream(stream) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(RAW(cuMemPoolCreate)(&pool, &props));
    for (CUdeviceptr* const one : {&memory, &other}) {
      OK(RAW(cuMemAllocFromPoolAsync)(one, 64, pool, stream));
    }
    OK(RAW(cuStreamSynchronize)(stream));
  }
  ~PooledCopy() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
    for (const CUdeviceptr one : {memory, other}) OK(RAW(cuMemFreeAsync)(one, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuMemPoolDestroy)(pool));
  }
  PooledCopy(const PooledCopy&) = delete;
  PooledCopy& operator=(const PooledCopy&) = delete;

  void Lend(bool is_lent) const {
    CUmemAccessDesc access = {};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    access.flags = is_lent ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(RAW(cuMemPoolSetAccess)(pool, &access, 1));
  }
  void Add() {
    const CUDA_MEMCPY3D copy = CopyTo(memory);
    OK(RAW(cuGraphCreate)(&graph, 0));
    OK(RAW(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &copy, Current()));
  }
  void Capture() {
    size_t count = 1;
    OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(RAW(cuMemcpyHtoDAsync)(memory, bytes, sizeof(bytes), stream));
    OK(RAW(cuStreamEndCapture)(stream, &graph));
    OK(RAW(cuGraphGetNodes)(graph, &node, &count));
  }
  void Instantiate() { OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0)); }
  CUresult CopyInstead(CUdeviceptr to) const {
    const CUDA_MEMCPY3D copy = CopyTo(to);
    return RAW(cuGraphExecMemcpyNodeSetParams)(executable, node, &copy, Current());
  }

  static CUcontext Current() {
    CUcontext context = nullptr;
    OK(RAW(cuCtxGetCurrent)(&context));
    return context;
  }
  CUDA_MEMCPY3D CopyTo(CUdeviceptr to) const {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.WidthInBytes = sizeof(bytes);
    copy.Height = copy.Depth = 1;
    return copy;
  }

  const CUstream stream;
  const unsigned char bytes[4] = {3, 4, 5, 6};
  CUmemoryPool pool = nullptr;
  CUdeviceptr memory = 0;
  CUdeviceptr other = 0;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_context_knows_its_device, *NeedsDevices(2)) {
  const TwoDevices two;
  CUdevice device = -1;
  OK(RAW(cuCtxGetDevice)(&device));
  BOOST_TEST(device == 1);
  OK(RAW(cuCtxGetDevice_v2)(&device, two.a.get()));
  BOOST_TEST(device == 0);
  OK(RAW(cuStreamGetDevice)(two.a_stream, &device));
  BOOST_TEST(device == 0);
}

BOOST_AUTO_TEST_CASE(a_pointer_knows_its_device_whatever_is_current, *NeedsDevices(2)) {
  const TwoDevices two;
  CUcontext context = nullptr;
  int ordinal = -1;
  OK(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, two.a_memory));
  OK(RAW(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, two.a_memory));
  BOOST_CHECK(context == two.a.get());
  BOOST_TEST(ordinal == 0);
  OK(RAW(cuMemFree)(two.a_memory));
}

BOOST_AUTO_TEST_CASE(copies_need_no_peer_access, *NeedsDevices(2)) {
  const TwoDevices two;
  const CUdeviceptr to = two.b_memory;
  const CUdeviceptr from = two.a_memory;
  OK(RAW(cuMemcpyDtoD)(to, from, TwoDevices::kBytes));
  OK(RAW(cuMemcpy)(to, from, TwoDevices::kBytes));
  OK(RAW(cuMemcpyPeer)(to, two.b.get(), from, two.a.get(), TwoDevices::kBytes));
}

BOOST_AUTO_TEST_CASE(peer_copies_need_no_source_context, *NeedsDevices(2)) {
  const TwoDevices two;
  OK(RAW(cuMemcpyPeer)(two.b_memory, two.b.get(), two.a_memory, nullptr, 64));
  OK(RAW(cuMemcpyPeer)(two.b_memory, two.b.get(), two.a_memory, nullptr, 0));
  OK(RAW(cuCtxSynchronize)());
}

// One within a device is a kernel's, whose context keeps local memory: graph_node_context_facts.
BOOST_AUTO_TEST_CASE(graph_copies_between_devices_keep_flags, *NeedsDevices(2)) {
  const TwoDevices two;
  unsigned before = 0;
  unsigned after = 0;
  SetStack({two.a.get()});
  OK(RAW(cuCtxGetFlags)(&before));
  SetStack({two.b.get()});
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = two.b_memory;
  copy.srcDevice = two.a_memory;
  copy.WidthInBytes = 16;
  copy.Height = copy.Depth = 1;
  OK(RAW(cuGraphCreate)(&graph, 0));
  OK(RAW(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &copy, two.b.get()));
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  OK(RAW(cuGraphLaunch)(executable, two.b_stream));
  OK(RAW(cuStreamSynchronize)(two.b_stream));
  SetStack({two.a.get()});
  OK(RAW(cuCtxGetFlags)(&after));
  BOOST_TEST(after == before);
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
}

// Changed to other memory of a pool, whose access must be what it was when the copy was added, or
// was given the same parameters again.
BOOST_AUTO_TEST_CASE(changed_copies_keep_their_pools_access, *NeedsDevices(2)) {
  const TwoDevices two;
  SetStack({two.a.get()});
  // When access is given and taken: before the copy is added, before it is instantiated, behind
  // that, never.
  constexpr int kNever = 3;
  for (const bool is_captured : {false, true}) {
    for (int given = 0; given <= kNever; ++given) {
      for (int taken = given; taken <= kNever; ++taken) {
        PooledCopy copy(two.a_stream);
        const auto lend = [&](int now) {
          if (given == now) copy.Lend(true);
          if (taken == now) copy.Lend(false);
        };
        BOOST_TEST_CONTEXT("captured " << is_captured << ", " << given << ", " << taken) {
          lend(0);
          is_captured ? copy.Capture() : copy.Add();
          lend(1);
          copy.Instantiate();
          lend(2);
          const bool was_lent = given == 0 && taken != 0;
          const bool is_lent = given != kNever && taken == kNever;
          BOOST_CHECK_EQUAL(copy.CopyInstead(copy.other),
                            was_lent == is_lent ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
          OK(copy.CopyInstead(copy.memory));
          OK(copy.CopyInstead(copy.other));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(fills_stay_on_their_device, *NeedsDevices(2)) {
  const TwoDevices two;
  IS(RAW(cuMemsetD8)(two.a_memory, 1, 64), INVALID_VALUE);
  IS(RAW(cuMemsetD8Async)(two.b_memory, 0, 64, two.a_stream), INVALID_VALUE);
  OK(RAW(cuMemsetD8Async)(two.a_memory, 0, 64, two.a_stream));
  OK(RAW(cuStreamSynchronize)(two.a_stream));
}

// But not in a capture: there the graph cannot be instantiated.
BOOST_AUTO_TEST_CASE(captured_fills_are_refused_at_instantiation, *NeedsDevices(2)) {
  const TwoDevices two;
  OK(RAW(cuStreamBeginCapture)(two.a_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(RAW(cuMemsetD8Async)(two.b_memory, 0, 64, two.a_stream));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(two.a_stream, &graph));
  CUgraphExec executable = nullptr;
  IS(RAW(cuGraphInstantiate)(&executable, graph, 0), INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(peer_access_is_enabled_once, *NeedsDevices(2)) {
  const TwoDevices two;
  int can = 0;
  OK(RAW(cuDeviceCanAccessPeer)(&can, 1, 0));
  if (can == 0) return;
  OK(RAW(cuCtxEnablePeerAccess)(two.a.get(), 0));
  IS(RAW(cuCtxEnablePeerAccess)(two.a.get(), 0), PEER_ACCESS_ALREADY_ENABLED);
  OK(RAW(cuCtxDisablePeerAccess)(two.a.get()));
  IS(RAW(cuCtxDisablePeerAccess)(two.a.get()), PEER_ACCESS_NOT_ENABLED);
  BOOST_TEST(!IsActive(0));
  BOOST_TEST(!IsActive(1));
}

BOOST_AUTO_TEST_CASE(events_are_recorded_at_home_and_awaited_anywhere, *NeedsDevices(2)) {
  const TwoDevices two;
  OK(RAW(cuEventRecord)(two.a_event, two.a_stream));
  OK(RAW(cuStreamWaitEvent)(two.b_stream, two.a_event, 0));
  IS(RAW(cuEventRecord)(two.a_event, two.b_stream), INVALID_HANDLE);
  CUcontext context = nullptr;
  OK(RAW(cuStreamGetCtx)(two.a_stream, &context));
  BOOST_CHECK(context == two.a.get());
}

BOOST_AUTO_TEST_CASE(each_device_has_its_primary, *NeedsDevices(2)) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&second, 1));
  BOOST_TEST(IsActive(1));
  BOOST_TEST(!IsActive(0));
  OK(RAW(cuDevicePrimaryCtxRetain)(&first, 0));
  BOOST_CHECK(first != second);
  OK(RAW(cuDevicePrimaryCtxRelease)(1));
  BOOST_TEST(IsActive(0));
  BOOST_TEST(!IsActive(1));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(devices_differ_in_their_names, *NeedsDevices(2)) {
  char first[32] = {};
  char second[32] = {};
  OK(RAW(cuDeviceGetPCIBusId)(first, sizeof(first), 0));
  OK(RAW(cuDeviceGetPCIBusId)(second, sizeof(second), 1));
  BOOST_TEST(std::string(first) != second);
  CUdevice device = -1;
  OK(RAW(cuDeviceGetByPCIBusId)(&device, second));
  BOOST_TEST(device == 1);
  CUuuid uuids[2] = {};
  OK(RAW(cuDeviceGetUuid)(&uuids[0], 0));
  OK(RAW(cuDeviceGetUuid)(&uuids[1], 1));
  BOOST_TEST(std::string(uuids[0].bytes, 16) != std::string(uuids[1].bytes, 16));
}

BOOST_AUTO_TEST_CASE(peer_access_within_a_device_is_unsupported) {
  const OwnContext a;
  const OwnContext b;
  int can = 77;
  OK(RAW(cuDeviceCanAccessPeer)(&can, 0, 0));
  BOOST_TEST(can == 0);
  IS(RAW(cuDeviceGetP2PAttribute)(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
     INVALID_DEVICE);
  IS(RAW(cuCtxEnablePeerAccess)(a.get(), 0), INVALID_CONTEXT);  // nothing is current
  IS(RAW(cuCtxDisablePeerAccess)(a.get()), INVALID_CONTEXT);
  SetStack({b.get()});
  for (const CUcontext peer : {a.get(), b.get()}) {
    IS(RAW(cuCtxEnablePeerAccess)(peer, 0), PEER_ACCESS_UNSUPPORTED);
    IS(RAW(cuCtxEnablePeerAccess)(peer, 1), INVALID_VALUE);
    IS(RAW(cuCtxDisablePeerAccess)(peer), PEER_ACCESS_NOT_ENABLED);
  }
  IS(RAW(cuCtxEnablePeerAccess)(nullptr, 0), INVALID_CONTEXT);
  IS(RAW(cuCtxDisablePeerAccess)(nullptr), INVALID_CONTEXT);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
