// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of device 0, touched from device 1: which kind by what, and where it is refused. Measured
// on two H200, driver 580.159.04, in the primary contexts of both.

#include <array>
#include <cstdlib>
#include <string>

#include "cudasim/sim.h"
#include "test/capture.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(reach_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

enum Kind {
  kAlloc,          // cuMemAlloc
  kAllocPeer,      // the same, with peer access from 1 to 0
  kPool,           // of a pool
  kPoolPeer,       // the same, with peer access
  kPoolAccess,     // of a pool that device 1 was given access to
  kManaged,        // attached to all
  kPinned,         // of the host, portable
  kMapped,         // for device 0 alone
  kMappedForBoth,  //
  kKinds
};
constexpr const char* kNames[kKinds] = {"cuMemAlloc",
                                        "cuMemAlloc, peer access",
                                        "pool",
                                        "pool, peer access",
                                        "pool, its access",
                                        "managed",
                                        "pinned",
                                        "mapped for 0",
                                        "mapped for both"};

// Where a touch ends.
enum Outcome { kDone, kRefused, kRefusedAtInstantiate, kFaults };
constexpr Outcome O = kDone;
constexpr Outcome R = kRefused;
constexpr Outcome I = kRefusedAtInstantiate;
constexpr Outcome F = kFaults;
using Row = std::array<Outcome, kKinds>;

//                       alloc peer pool peer access managed pinned mapped both
constexpr Row kCopies = {O, O, R, R, O, O, O, R, O};
constexpr Row kFills = {R, O, R, R, O, O, O, R, O};
constexpr Row kFillNodes = {O, O, R, R, O, O, O, R, O};
constexpr Row kCopyNodesOfNone = {O, O, I, I, O, O, O, I, O};
constexpr Row kCapturedFills = {I, O, I, I, O, O, O, I, O};
constexpr Row kKernels = {F, O, F, F, O, O, O, F, O};
constexpr Row kAnything = {O, O, O, O, O, O, O, O, O};

constexpr size_t kBytes = 64;
constexpr size_t kUnit = size_t{2} << 20;  // of mapped memory

CUresult SimStore(const SimLaunch& launch) {
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  if (!Sim::KernelReaches(to, sizeof(*to))) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memcpy(to, launch.parameters[1], sizeof(*to));
  return CUDA_SUCCESS;
}

CUmemAccessDesc AccessOf(CUdevice device) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

// The primary contexts, each with a stream; memory of device 0 of a kind, and plain memory of
// device 1. The second is current.
class Two {
 public:
  explicit Two(Kind kind) : kind_(kind) {
    OK(RAW(cuDevicePrimaryCtxRetain)(&first, 0));
    OK(RAW(cuDevicePrimaryCtxRetain)(&second, 1));
    SetStack({first});
    OK(RAW(cuStreamCreate)(&first_stream, CU_STREAM_NON_BLOCKING));
    Make();
    SetStack({second});
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuMemAlloc)(&own, kBytes));
    if (HasPeer()) OK(RAW(cuCtxEnablePeerAccess)(first, 0));
  }
  ~Two() {
    SetStack({second});
    if (HasPeer()) OK(RAW(cuCtxDisablePeerAccess)(first));
    OK(RAW(cuMemFree)(own));
    OK(RAW(cuStreamDestroy)(stream));
    SetStack({first});
    Free();
    OK(RAW(cuStreamDestroy)(first_stream));
    SetStack({});
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    OK(RAW(cuDevicePrimaryCtxRelease)(1));
  }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;

  bool HasPeer() const { return kind_ == kAllocPeer || kind_ == kPoolPeer; }

  // Both memories hold bytes of their own; the second context is current.
  void Prepare() const {
    SetStack({first});
    OK(RAW(cuMemsetD8)(memory, 7, kBytes));
    OK(RAW(cuCtxSynchronize)());
    SetStack({second});
    OK(RAW(cuMemsetD8)(own, 1, kBytes));
    OK(RAW(cuCtxSynchronize)());
  }
  unsigned char FirstByte() const { return Byte(first, memory); }
  unsigned char SecondByte() const { return Byte(second, own); }

  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUstream first_stream = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUdeviceptr own = 0;

 private:
  static unsigned char Byte(CUcontext context, CUdeviceptr from) {
    SetStack({context});
    unsigned char byte = 0;
    OK(RAW(cuMemcpyDtoH)(&byte, from + kBytes - 1, 1));
    return byte;
  }

  void Make() {
    switch (kind_) {
      case kAlloc:
      case kAllocPeer:
        OK(RAW(cuMemAlloc)(&memory, kBytes));
        break;
      case kManaged:
        OK(RAW(cuMemAllocManaged)(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
        break;
      case kPinned:
        AllocateOnHost();
        break;
      case kMapped:
      case kMappedForBoth:
        Map();
        break;
      default:
        TakeFromPool();
    }
  }
  void AllocateOnHost() {
    void* pointer = nullptr;
    OK(RAW(cuMemHostAlloc)(&pointer, kBytes, CU_MEMHOSTALLOC_PORTABLE));
    memory = reinterpret_cast<CUdeviceptr>(pointer);
  }
  void TakeFromPool() {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    OK(RAW(cuMemPoolCreate)(&pool_, &properties));
    OK(RAW(cuMemAllocFromPoolAsync)(&memory, kBytes, pool_, first_stream));
    OK(RAW(cuStreamSynchronize)(first_stream));
    const CUmemAccessDesc access = AccessOf(1);
    if (kind_ == kPoolAccess) OK(RAW(cuMemPoolSetAccess)(pool_, &access, 1));
  }
  void Map() {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    OK(RAW(cuMemCreate)(&handle_, kUnit, &properties, 0));
    OK(RAW(cuMemAddressReserve)(&memory, kUnit, 0, 0, 0));
    OK(RAW(cuMemMap)(memory, kUnit, 0, handle_, 0));
    const CUmemAccessDesc access[] = {AccessOf(0), AccessOf(1)};
    OK(RAW(cuMemSetAccess)(memory, kUnit, access, kind_ == kMapped ? 1 : 2));
  }
  void Free() const {
    if (kind_ == kPinned) {
      OK(RAW(cuMemFreeHost)(reinterpret_cast<void*>(memory)));
    } else if (handle_ != 0) {
      OK(RAW(cuMemUnmap)(memory, kUnit));
      OK(RAW(cuMemAddressFree)(memory, kUnit));
      OK(RAW(cuMemRelease)(handle_));
    } else {
      OK(RAW(cuMemFree)(memory));
    }
    if (pool_ != nullptr) OK(RAW(cuMemPoolDestroy)(pool_));
  }

  const Kind kind_;
  CUmemoryPool pool_ = nullptr;
  CUmemGenericAllocationHandle handle_ = 0;
};

// What `graph` comes to in the second context's stream; it is destroyed.
Outcome RunGraph(const Two& two, CUgraph graph) {
  CUgraphExec executable = nullptr;
  const CUresult code = RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0);
  if (code == CUDA_SUCCESS) {
    OK(RAW(cuGraphLaunch)(executable, two.stream));
    OK(RAW(cuStreamSynchronize)(two.stream));
    OK(RAW(cuGraphExecDestroy)(executable));
  } else {
    IS(code, INVALID_VALUE);
  }
  OK(RAW(cuGraphDestroy)(graph));
  return code == CUDA_SUCCESS ? kDone : kRefusedAtInstantiate;
}

Outcome OfCall(CUresult code) {
  if (code != CUDA_SUCCESS) IS(code, INVALID_VALUE);
  OK(RAW(cuCtxSynchronize)());
  return code == CUDA_SUCCESS ? kDone : kRefused;
}

CUDA_MEMCPY3D CopyOf(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

unsigned char host[kBytes];

CUDA_MEMCPY3D FromHost(CUdeviceptr to) {
  CUDA_MEMCPY3D copy = CopyOf(to, 0);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  return copy;
}

// A graph of one node.
template <typename Add>
Outcome OfNode(const Two& two, const Add& add) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  OK(RAW(cuGraphCreate)(&graph, 0));
  const CUresult code = add(&node, graph);
  if (code == CUDA_SUCCESS) return RunGraph(two, graph);
  IS(code, INVALID_VALUE);
  OK(RAW(cuGraphDestroy)(graph));
  return kRefused;
}
Outcome OfCopyNode(const Two& two, CUcontext context) {
  const CUDA_MEMCPY3D copy = CopyOf(two.own, two.memory);
  return OfNode(two, [&](CUgraphNode* node, CUgraph graph) {
    return RAW(cuGraphAddMemcpyNode)(node, graph, nullptr, 0, &copy, context);
  });
}
Outcome OfFillNode(const Two& two) {
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = two.memory;
  fill.value = 3;
  fill.elementSize = fill.height = 1;
  fill.width = kBytes;
  return OfNode(two, [&](CUgraphNode* node, CUgraph graph) {
    return RAW(cuGraphAddMemsetNode)(node, graph, nullptr, 0, &fill, two.second);
  });
}

// `call` in a capture of the second context's stream, and then the graph.
template <typename Function>
Outcome OfCapture(const Two& two, const Function& call) {
  CUgraph graph = nullptr;
  OK(RAW(cuStreamBeginCapture)(two.stream, kRelaxed));
  const CUresult code = call();
  const CUresult end = RAW(cuStreamEndCapture)(two.stream, &graph);
  if (code == CUDA_SUCCESS) {
    OK(end);
    return RunGraph(two, graph);
  }
  IS(code, INVALID_VALUE);
  if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  return kRefused;
}

// What is done to the memory, in the second context unless it is named otherwise.
struct Way {
  const char* name;
  Row expected;
  Outcome (*touch)(const Two& two);
  bool (*is_done)(const Two& two);  // once the touch is
};

bool IsRead(const Two& two) { return two.SecondByte() == 7; }
bool IsWritten(const Two& two) { return two.FirstByte() == 1; }
bool IsFilled(const Two& two) { return two.FirstByte() == 3; }
bool IsAsBefore(const Two& two) { return two.FirstByte() == 7; }

const Way kWays[] = {
    {"copy from it", kCopies,
     [](const Two& two) { return OfCall(RAW(cuMemcpyDtoD)(two.own, two.memory, kBytes)); }, IsRead},
    {"copy to it", kCopies,
     [](const Two& two) { return OfCall(RAW(cuMemcpyDtoD)(two.memory, two.own, kBytes)); },
     IsWritten},
    {"copy from it in a stream", kCopies,
     [](const Two& two) {
       return OfCall(RAW(cuMemcpyDtoDAsync)(two.own, two.memory, kBytes, two.stream));
     },
     IsRead},
    {"copy to it in a stream", kCopies,
     [](const Two& two) {
       return OfCall(RAW(cuMemcpyDtoDAsync)(two.memory, two.own, kBytes, two.stream));
     },
     IsWritten},
    {"copy from it in the first context", kAnything,
     [](const Two& two) {
       SetStack({two.first});
       return OfCall(RAW(cuMemcpyDtoD)(two.own, two.memory, kBytes));
     },
     IsRead},
    {"copy of peers", kAnything,
     [](const Two& two) {
       return OfCall(RAW(cuMemcpyPeer)(two.own, two.second, two.memory, two.first, kBytes));
     },
     IsRead},
    {"copy to the host", kCopies,
     [](const Two& two) { return OfCall(RAW(cuMemcpyDtoH)(host, two.memory, kBytes)); },
     IsAsBefore},
    {"copy from the host", kCopies,
     [](const Two& two) {
       std::memset(host, 1, kBytes);
       return OfCall(RAW(cuMemcpyHtoD)(two.memory, host, kBytes));
     },
     IsWritten},
    {"fill", kFills, [](const Two& two) { return OfCall(RAW(cuMemsetD8)(two.memory, 3, kBytes)); },
     IsFilled},
    {"fill in a stream", kFills,
     [](const Two& two) { return OfCall(RAW(cuMemsetD8Async)(two.memory, 3, kBytes, two.stream)); },
     IsFilled},
    {"node of the second context that copies from it", kCopies,
     [](const Two& two) { return OfCopyNode(two, two.second); }, IsRead},
    {"node of the first context that copies from it", kAnything,
     [](const Two& two) { return OfCopyNode(two, two.first); }, IsRead},
    {"node of no context that copies from the host", kCopyNodesOfNone,
     [](const Two& two) {
       std::memset(host, 1, kBytes);
       const CUDA_MEMCPY3D copy = FromHost(two.memory);
       return OfNode(two, [&](CUgraphNode* node, CUgraph graph) {
         return RAW(cuGraphAddMemcpyNode)(node, graph, nullptr, 0, &copy, nullptr);
       });
     },
     IsWritten},
    {"node that fills it", kFillNodes, OfFillNode, IsFilled},
    {"captured copy from it", kCopies,
     [](const Two& two) {
       return OfCapture(
           two, [&] { return RAW(cuMemcpyDtoDAsync)(two.own, two.memory, kBytes, two.stream); });
     },
     IsRead},
    {"captured fill", kCapturedFills,
     [](const Two& two) {
       return OfCapture(two,
                        [&] { return RAW(cuMemsetD8Async)(two.memory, 3, kBytes, two.stream); });
     },
     IsFilled},
};

}  // namespace

BOOST_AUTO_TEST_CASE(copies_and_fills, *cudasim_test::NeedsPeers()) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const Two two(static_cast<Kind>(kind));
    for (const Way& way : kWays) {
      BOOST_TEST_CONTEXT(kNames[kind] << ": " << way.name) {
        two.Prepare();
        const Outcome outcome = way.touch(two);
        BOOST_TEST(outcome == way.expected[kind]);
        if (outcome == kDone) {
          BOOST_TEST(way.is_done(two));
        } else {
          BOOST_TEST(two.FirstByte() == 7);
          BOOST_TEST(two.SecondByte() == 1);
        }
      }
    }
  }
}

// In an executable graph.
BOOST_AUTO_TEST_CASE(changed_copies_keep_who_has_access, *cudasim_test::NeedsPeers()) {
  constexpr Kind kLent[] = {kPool, kPoolAccess, kMapped, kMappedForBoth};
  const auto is_for_both = [](Kind kind) { return kind == kPoolAccess || kind == kMappedForBoth; };
  for (const Kind was : kLent) {
    for (const Kind is : kLent) {
      const Two before(was);
      const Two now(is);
      const CUDA_MEMCPY3D copy = FromHost(before.memory);
      const CUDA_MEMCPY3D other = FromHost(now.memory);
      CUgraph graph = nullptr;
      CUgraphNode node = nullptr;
      CUgraphExec executable = nullptr;
      SetStack({before.first});
      OK(RAW(cuGraphCreate)(&graph, 0));
      OK(RAW(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &copy, before.first));
      OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
      const CUresult code =
          RAW(cuGraphExecMemcpyNodeSetParams)(executable, node, &other, now.first);
      BOOST_TEST((code == CUDA_SUCCESS) == (is_for_both(was) == is_for_both(is)),
                 kNames[was] << " and " << kNames[is] << ": " << code);
      OK(RAW(cuGraphExecDestroy)(executable));
      OK(RAW(cuGraphDestroy)(graph));
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_current, *cudasim_test::NeedsPeers()) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const Two two(static_cast<Kind>(kind));
    SetStack({});
    IS(RAW(cuMemcpyDtoH)(host, two.memory, kBytes), INVALID_CONTEXT);
  }
}

// A kernel that faults ends the use of its device: each is a process.
CHILD(a_kernel_of_device_1_stores) {
  Sim::RegisterKernel("store", SimStore);
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  const auto kind = static_cast<Kind>(std::atoi(std::getenv("CUDASIM_TEST_KIND")));
  auto& two = *new Two(kind);
  two.Prepare();
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CHECK(RAW(cuModuleLoadData)(&module, kPtx) == CUDA_SUCCESS);
  CHECK(RAW(cuModuleGetFunction)(&store, module, "store") == CUDA_SUCCESS);
  unsigned value = 0x03030303;
  CUdeviceptr to = two.memory + kBytes - sizeof(value);
  void* parameters[] = {&to, &value};
  CHECK(RAW(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, two.stream, parameters, nullptr) ==
        CUDA_SUCCESS);
  const CUresult code = RAW(cuStreamSynchronize)(two.stream);
  if (code == CUDA_ERROR_ILLEGAL_ADDRESS) return 2;
  CHECK(code == CUDA_SUCCESS);
  CHECK(two.FirstByte() == 3);
  return 0;
}
BOOST_AUTO_TEST_CASE(kernels_that_store, *cudasim_test::NeedsPeers()) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const cudasim_test::Ended ended = cudasim_test::RunSelf(
        {"--child=a_kernel_of_device_1_stores"}, {"CUDASIM_TEST_KIND=" + std::to_string(kind)});
    const int expected = kKernels[kind] == kFaults ? 2 : 0;
    BOOST_TEST(ended.code == expected, kNames[kind] << ": " << ended.code << ' ' << ended.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
