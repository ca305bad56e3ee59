// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which calls need a current context, and in whose they work: each is made with nothing current,
// and with another context of the same device than that of its arguments.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/jit.h"

BOOST_AUTO_TEST_SUITE(current_context_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

constexpr size_t kBytes = 4096;
constexpr unsigned char kOld = 1;
constexpr unsigned char kNew = 7;

// Objects of the context a. Nothing is current but in the functions below.
struct Objects {
  Objects() {
    Sim::RegisterKernel("nothing", [](const SimLaunch&) { return CUDA_SUCCESS; });
    Sim::RegisterKernel("store", [](const SimLaunch& launch) {
      unsigned* to = nullptr;
      std::memcpy(&to, launch.parameters[0], sizeof(to));
      std::memcpy(to, launch.parameters[1], sizeof(*to));
      return CUDA_SUCCESS;
    });
    In(a.get(), [this] {
      OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
      for (CUevent* event : {&event, &start, &end}) OK(RAW(cuEventCreate)(event, 0));
      OK(RAW(cuMemAlloc)(&p, kBytes));
      OK(RAW(cuMemAlloc)(&q, kBytes));
      OK(RAW(cuMemHostAlloc)(&pinned, kBytes, CU_MEMHOSTALLOC_PORTABLE));
      OK(RAW(cuModuleLoadData)(&module, kCode));
      OK(RAW(cuModuleGetFunction)(&nothing, module, "nothing"));
      OK(RAW(cuModuleGetFunction)(&store, module, "store"));
      OK(RAW(cuEventRecord)(start, stream));
      OK(RAW(cuEventRecord)(end, stream));
      OK(RAW(cuCtxSynchronize)());
      array = MakeArray();
    });
    OK(RAW(cuLibraryLoadData)(&library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"));
  }
  ~Objects() {
    OK(RAW(cuLibraryUnload)(library));
    In(a.get(), [this] {
      OK(RAW(cuArrayDestroy)(array));
      OK(RAW(cuModuleUnload)(module));
      OK(RAW(cuMemFreeHost)(pinned));
      OK(RAW(cuMemFree)(q));
      OK(RAW(cuMemFree)(p));
      for (const CUevent event : {event, start, end}) OK(RAW(cuEventDestroy)(event));
      OK(RAW(cuStreamDestroy)(stream));
    });
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  template <typename Function>
  static void In(CUcontext context, const Function& function) {
    OK(RAW(cuCtxPushCurrent)(context));
    function();
    OK(RAW(cuCtxPopCurrent)(nullptr));
  }
  static CUarray MakeArray() {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        16, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
    CUarray made = nullptr;
    OK(RAW(cuArray3DCreate)(&made, &shape));
    return made;
  }

  static constexpr char kCode[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 number = 5;
.visible .entry nothing() { ret; }
.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

  OwnContext a;
  OwnContext b;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUevent start = nullptr;
  CUevent end = nullptr;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  void* pinned = nullptr;
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUfunction store = nullptr;
  CUarray array = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  alignas(4096) unsigned char page[kBytes] = {};
};

// One call in one situation: nothing is current, or the context b.
struct Trial {
  // Makes the call with what is current, and nothing current before and after.
  template <typename Function>
  CUresult Do(const Function& call) {
    if (current != nullptr) OK(RAW(cuCtxPushCurrent)(current));
    const CUresult code = call();
    SetStack({});
    return code;
  }
  template <typename Function>
  void InA(const Function& function) const {
    Objects::In(o.a.get(), function);
  }
  // Where what the call made, or used, belongs.
  void Saw(CUcontext context) { owner = context; }
  void SawOfStream(CUstream stream) {
    CUcontext context = nullptr;
    OK(RAW(cuStreamGetCtx)(stream, &context));
    Saw(context);
  }
  void SawOfPointer(CUdeviceptr pointer) {
    Saw(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
  }
  // Which context's functions there are: a launch on a stream of another one fails.
  void SawOfFunction(CUfunction function) {
    CUresult code = CUDA_ERROR_UNKNOWN;
    InA([&] {
      code = RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, o.stream, nullptr, nullptr);
    });
    Saw(code == CUDA_SUCCESS ? o.a.get() : o.b.get());
  }
  void SawOfEvent(CUevent event) {
    CUresult code = CUDA_ERROR_UNKNOWN;
    InA([&] { code = RAW(cuEventRecord)(event, o.stream); });
    Saw(code == CUDA_SUCCESS ? o.a.get() : o.b.get());
  }
  // Work on the first byte of p: it is done, whatever is current. A fill without a stream runs in
  // the current context, and is waited for there.
  void SawWork(CUdeviceptr at, unsigned char expected) {
    unsigned char byte = 0;
    Objects::In(o.b.get(), [] { OK(RAW(cuCtxSynchronize)()); });
    InA([&] {
      OK(RAW(cuCtxSynchronize)());
      OK(RAW(cuMemcpyDtoH)(&byte, at, 1));
    });
    BOOST_TEST(int{byte} == int{expected});
  }

  Objects& o;
  CUcontext current;
  CUcontext owner = nullptr;
};

// What is written behind the current context by a call that works.
using Run = CUresult (*)(Trial&);

const CUDA_KERNEL_NODE_PARAMS NodeOf(const Trial& t) {
  CUDA_KERNEL_NODE_PARAMS node = {};
  node.func = t.o.nothing;
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  return node;
}

CUDA_MEMCPY3D CopyOf(const Trial& t) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = t.o.q;
  copy.dstDevice = t.o.p;
  copy.WidthInBytes = copy.Height = copy.Depth = 1;
  return copy;
}

// p and q hold kOld and kNew.
void Fill(const Trial& t) {
  t.InA([&] {
    OK(RAW(cuMemsetD8)(t.o.p, kOld, kBytes));
    OK(RAW(cuMemsetD8)(t.o.q, kNew, kBytes));
    OK(RAW(cuCtxSynchronize)());
  });
}

// A call that writes kNew to p.
template <typename Call>
CUresult Write(Trial& t, const Call& call) {
  Fill(t);
  std::memset(t.o.pinned, kNew, kBytes);
  const CUresult code = t.Do(call);
  t.SawWork(t.o.p, code == CUDA_SUCCESS ? kNew : kOld);
  return code;
}

// A graph of one kernel node, and one to launch.
struct OneNode {
  explicit OneNode(const Trial& t) : trial(t) {
    t.InA([&] {
      const CUDA_KERNEL_NODE_PARAMS parameters = NodeOf(t);
      OK(RAW(cuGraphCreate)(&graph, 0));
      OK(RAW(cuGraphAddKernelNode)(&node, graph, nullptr, 0, &parameters));
      OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    });
  }
  ~OneNode() {
    trial.InA([this] {
      if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
      if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
    });
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  // The one that is ended by the call under test.
  template <typename Handle, typename End>
  CUresult Ends(Trial& t, Handle OneNode::*handle, const End& end) {
    const CUresult code = t.Do([&] { return end(this->*handle); });
    if (code == CUDA_SUCCESS) this->*handle = nullptr;
    return code;
  }

  const Trial& trial;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

CUlaunchConfig ConfigOf(const Trial& t) {
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = t.o.stream;
  return config;
}

template <typename T>
CUresult Ask(Trial& t, CUresult (*get)(T*)) {
  T value = {};
  return t.Do([&] { return get(&value); });
}

CUDA_RESOURCE_DESC ResourceOf(CUarray array) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

// What a made object is ended with. It is ended in a, whose it may not be.
template <typename Handle, typename Make, typename See, typename End>
CUresult Makes(Trial& t, const Make& make, const See& see, const End& end) {
  Handle made = {};
  const CUresult code = t.Do([&] { return make(&made); });
  if (code != CUDA_SUCCESS) return code;
  see(made);
  Objects::In(t.owner != nullptr ? t.owner : t.o.a.get(), [&] { OK(end(made)); });
  return code;
}

CUdevResource AllOfTheDevice() {
  CUdevResource whole = {};
  OK(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  return whole;
}

CUgreenCtx MakeGreen() {
  CUdevResource whole = AllOfTheDevice();
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

CUresult EndOfGreen(CUgreenCtx green) { return RAW(cuGreenCtxDestroy)(green); }

// What each call answers, and whose context it works in. docs/recipes/do_you_need_to_enter.md has
// the rows, which test/docs/recipes_test.py compares.
struct Row {
  const char* call;
  const char* nothing;  // is current
  const char* other;    // context is current than that of the arguments
  const char* works_in;
};
constexpr char kCrashes[] = "crashes";  // measured; it is not called
constexpr Row kRows[] = {
    {"cuCtxPopCurrent", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxGetDevice", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxGetFlags", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxSynchronize", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxGetExecAffinity", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxEnablePeerAccess", "INVALID_CONTEXT", "PEER_ACCESS_UNSUPPORTED", "the current one"},
    {"cuCtxDisablePeerAccess", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", "the current one"},
    {"cuMemGetInfo", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamCreate", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamCreateWithPriority", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuEventCreate", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemAlloc", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemHostAlloc", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemHostRegister", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuArray3DCreate", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuTexObjectCreate", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", "the current one"},
    {"cuSurfObjectCreate", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", "the current one"},
    {"cuModuleLoadDataEx", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuLibraryGetModule", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuLibraryGetGlobal", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuKernelGetFunction", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamSynchronize, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamGetCtx, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamIsCapturing, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuEventRecord, stream 0", "INVALID_CONTEXT", "INVALID_HANDLE", "the current one"},
    {"cuMemAllocAsync, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemcpyHtoDAsync, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemsetD8Async, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuLaunchKernel, stream 0", "INVALID_CONTEXT", "INVALID_HANDLE", "the current one"},
    {"cuGraphLaunch, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemcpyHtoD", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemcpyDtoH", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemcpyDtoD", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemcpy3D", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemsetD8", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemsetD16", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemsetD32", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuTexObjectDestroy", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuSurfObjectDestroy", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuLinkCreate", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", "INVALID_CONTEXT", "SUCCESS",
     "any that is current"},
    {"cuOccupancyMaxPotentialBlockSize", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuOccupancyAvailableDynamicSMemPerBlock", "INVALID_CONTEXT", "SUCCESS",
     "any that is current"},
    {"cuGraphAddKernelNode", "crashes", "SUCCESS", "any that is current"},
    {"cuGraphInstantiateWithFlags", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuGraphExecKernelNodeSetParams", "crashes", "SUCCESS", "any that is current"},
    {"cuStreamDestroy", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamSynchronize", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamQuery", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamWaitEvent", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamGetCtx", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamGetGreenCtx", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamIsCapturing", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamGetCaptureInfo", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamBeginCapture", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamEndCapture", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuEventRecord", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemAllocAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemFreeAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpyHtoDAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpyDtoHAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpyDtoDAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpy3DAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemsetD8Async", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemsetD16Async", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemsetD32Async", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuOccupancyMaxActiveClusters", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuLaunchKernel", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuLaunchKernelEx", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuGraphLaunch", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuCtxGetId", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuCtxGetApiVersion", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuCtxGetDevResource", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventQuery", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventSynchronize", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventElapsedTime", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuMemFree", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuMemFreeHost", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuMemHostUnregister", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuPointerGetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuPointerGetAttributes", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuArrayDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuArray3DGetDescriptor", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuModuleUnload", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuModuleGetFunction", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuModuleGetGlobal", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncSetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetModule", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetName", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetParamInfo", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncIsLoaded", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncLoad", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuLinkAddData", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuLinkComplete", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuLinkDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphKernelNodeSetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphDestroyNode", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphExecDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuInit", "SUCCESS", "SUCCESS", "none"},
    {"cuDriverGetVersion", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetCount", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGet", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetName", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetPCIBusId", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetAttribute", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetUuid", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceCanAccessPeer", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetP2PAttribute", "SUCCESS", "SUCCESS", "none"},
    {"cuDevicePrimaryCtxRetain", "SUCCESS", "SUCCESS", "none"},
    {"cuDevicePrimaryCtxRelease", "SUCCESS", "SUCCESS", "none"},
    {"cuDevicePrimaryCtxGetState", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxCreate", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxDestroy", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxPushCurrent", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxSetCurrent", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxGetCurrent", "SUCCESS", "SUCCESS", "none"},
    {"cuThreadExchangeStreamCaptureMode", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetDevResource", "SUCCESS", "SUCCESS", "none"},
    {"cuDevSmResourceSplitByCount", "SUCCESS", "SUCCESS", "none"},
    {"cuDevResourceGenerateDesc", "SUCCESS", "SUCCESS", "none"},
    {"cuGreenCtxCreate", "SUCCESS", "SUCCESS", "none"},
    {"cuGreenCtxDestroy", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxFromGreenCtx", "SUCCESS", "SUCCESS", "none"},
    {"cuMemGetAccess", "SUCCESS", "SUCCESS", "none"},
    {"cuModuleGetLoadingMode", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryLoadData", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryUnload", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryGetKernel", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryGetKernelCount", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryEnumerateKernels", "SUCCESS", "SUCCESS", "none"},
    {"cuKernelGetLibrary", "SUCCESS", "SUCCESS", "none"},
    {"cuKernelGetName", "SUCCESS", "SUCCESS", "none"},
    {"cuGraphCreate", "SUCCESS", "SUCCESS", "none"},
};

struct Call {
  const char* name;
  Run run;
};
using Context = CUcontext;

const Call kCalls[] = {
    {"cuInit", [](Trial& t) { return t.Do([] { return RAW(cuInit)(0); }); }},
    {"cuDriverGetVersion", [](Trial& t) { return Ask<int>(t, RAW(cuDriverGetVersion)); }},
    {"cuDeviceGetCount", [](Trial& t) { return Ask<int>(t, RAW(cuDeviceGetCount)); }},
    {"cuDeviceGet",
     [](Trial& t) {
       CUdevice device = -1;
       return t.Do([&] { return RAW(cuDeviceGet)(&device, 0); });
     }},
    {"cuDeviceGetName",
     [](Trial& t) {
       char name[100];
       return t.Do([&] { return RAW(cuDeviceGetName)(name, sizeof(name), 0); });
     }},
    {"cuDeviceGetPCIBusId",
     [](Trial& t) {
       char id[100];
       return t.Do([&] { return RAW(cuDeviceGetPCIBusId)(id, sizeof(id), 0); });
     }},
    {"cuDeviceGetAttribute",
     [](Trial& t) {
       int value = 0;
       return t.Do(
           [&] { return RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0); });
     }},
    {"cuDeviceGetUuid",
     [](Trial& t) {
       CUuuid uuid;
       return t.Do([&] { return RAW(cuDeviceGetUuid)(&uuid, 0); });
     }},
    {"cuDeviceCanAccessPeer",
     [](Trial& t) {
       int can = 0;
       return t.Do([&] { return RAW(cuDeviceCanAccessPeer)(&can, 0, 0); });
     }},
    {"cuDeviceGetP2PAttribute",
     [](Trial& t) {
       int value = 0;
       int devices = 0;
       OK(RAW(cuDeviceGetCount)(&devices));
       const CUresult code = t.Do([&] {
         return RAW(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0,
                                             devices - 1);
       });
       // A device has no link to itself.
       return devices == 1 && code == CUDA_ERROR_INVALID_DEVICE ? CUDA_SUCCESS : code;
     }},
    {"cuDevicePrimaryCtxRetain",
     [](Trial& t) {
       Context primary = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuDevicePrimaryCtxRetain)(&primary, 0); });
       OK(RAW(cuDevicePrimaryCtxRelease)(0));
       return code;
     }},
    {"cuDevicePrimaryCtxRelease",
     [](Trial& t) {
       Context primary = nullptr;
       OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
       return t.Do([&] { return RAW(cuDevicePrimaryCtxRelease)(0); });
     }},
    {"cuDevicePrimaryCtxGetState",
     [](Trial& t) {
       unsigned flags = 0;
       int active = 0;
       return t.Do([&] { return RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active); });
     }},
    {"cuCtxCreate",
     [](Trial& t) {
       Context made = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuCtxCreate)(&made, nullptr, 0, 0); });
       OK(RAW(cuCtxDestroy)(made));
       return code;
     }},
    {"cuCtxDestroy",
     [](Trial& t) {
       OwnContext other;
       const Context context = other.release();
       return t.Do([&] { return RAW(cuCtxDestroy)(context); });
     }},
    {"cuCtxPushCurrent",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxPushCurrent)(t.o.a.get()); }); }},
    {"cuCtxPopCurrent",
     [](Trial& t) {
       return t.Do([&] {
         Context popped = nullptr;
         const CUresult code = RAW(cuCtxPopCurrent)(&popped);
         t.Saw(popped);
         return code;
       });
     }},
    {"cuCtxSetCurrent",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxSetCurrent)(t.o.a.get()); }); }},
    {"cuCtxGetCurrent", [](Trial& t) { return Ask<Context>(t, RAW(cuCtxGetCurrent)); }},
    {"cuCtxGetId",
     [](Trial& t) {
       unsigned long long id = 0;
       const CUresult code = t.Do([&] { return RAW(cuCtxGetId)(t.o.a.get(), &id); });
       if (id == IdOf(t.o.a.get())) t.Saw(t.o.a.get());
       return code;
     }},
    {"cuCtxGetApiVersion",
     [](Trial& t) {
       unsigned version = 0;
       return t.Do([&] { return RAW(cuCtxGetApiVersion)(t.o.a.get(), &version); });
     }},
    {"cuCtxGetDevice", [](Trial& t) { return Ask<CUdevice>(t, RAW(cuCtxGetDevice)); }},
    {"cuCtxGetFlags", [](Trial& t) { return Ask<unsigned>(t, RAW(cuCtxGetFlags)); }},
    {"cuCtxSynchronize", [](Trial& t) { return t.Do([] { return RAW(cuCtxSynchronize)(); }); }},
    {"cuCtxGetExecAffinity",
     [](Trial& t) {
       CUexecAffinityParam affinity = {};
       return t.Do(
           [&] { return RAW(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT); });
     }},
    {"cuCtxEnablePeerAccess",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxEnablePeerAccess)(t.o.a.get(), 0); }); }},
    {"cuCtxDisablePeerAccess",
     [](Trial& t) { return t.Do([&] { return RAW(cuCtxDisablePeerAccess)(t.o.a.get()); }); }},
    {"cuMemGetInfo",
     [](Trial& t) {
       size_t free = 0;
       return t.Do([&] { return RAW(cuMemGetInfo)(&free, &free); });
     }},
    {"cuThreadExchangeStreamCaptureMode",
     [](Trial& t) {
       auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
       return t.Do([&] { return RAW(cuThreadExchangeStreamCaptureMode)(&mode); });
     }},
    {"cuDeviceGetDevResource",
     [](Trial& t) {
       CUdevResource whole = {};
       return t.Do([&] { return RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM); });
     }},
    {"cuCtxGetDevResource",
     [](Trial& t) {
       CUdevResource whole = {};
       return t.Do(
           [&] { return RAW(cuCtxGetDevResource)(t.o.a.get(), &whole, CU_DEV_RESOURCE_TYPE_SM); });
     }},
    {"cuDevSmResourceSplitByCount",
     [](Trial& t) {
       const CUdevResource whole = AllOfTheDevice();
       CUdevResource group = {};
       CUdevResource rest = {};
       unsigned count = 1;
       return t.Do(
           [&] { return RAW(cuDevSmResourceSplitByCount)(&group, &count, &whole, &rest, 0, 8); });
     }},
    {"cuDevResourceGenerateDesc",
     [](Trial& t) {
       CUdevResource whole = AllOfTheDevice();
       CUdevResourceDesc description = nullptr;
       return t.Do([&] { return RAW(cuDevResourceGenerateDesc)(&description, &whole, 1); });
     }},
    {"cuGreenCtxCreate",
     [](Trial& t) {
       CUdevResource whole = AllOfTheDevice();
       CUdevResourceDesc description = nullptr;
       OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
       CUgreenCtx green = nullptr;
       const CUresult code = t.Do([&] {
         return RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
       });
       if (green != nullptr) OK(EndOfGreen(green));
       return code;
     }},
    {"cuGreenCtxDestroy",
     [](Trial& t) {
       const CUgreenCtx green = MakeGreen();
       return t.Do([&] { return EndOfGreen(green); });
     }},
    {"cuCtxFromGreenCtx",
     [](Trial& t) {
       const CUgreenCtx green = MakeGreen();
       Context context = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuCtxFromGreenCtx)(&context, green); });
       OK(EndOfGreen(green));
       return code;
     }},

    {"cuStreamCreate",
     [](Trial& t) {
       return Makes<CUstream>(
           t, [](CUstream* made) { return RAW(cuStreamCreate)(made, CU_STREAM_NON_BLOCKING); },
           [&](CUstream made) { t.SawOfStream(made); }, RAW(cuStreamDestroy));
     }},
    {"cuStreamCreateWithPriority",
     [](Trial& t) {
       return Makes<CUstream>(
           t,
           [](CUstream* made) {
             return RAW(cuStreamCreateWithPriority)(made, CU_STREAM_NON_BLOCKING, 0);
           },
           [&](CUstream made) { t.SawOfStream(made); }, RAW(cuStreamDestroy));
     }},
    {"cuStreamDestroy",
     [](Trial& t) {
       CUstream stream = nullptr;
       t.InA([&] { OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING)); });
       return t.Do([&] { return RAW(cuStreamDestroy)(stream); });
     }},
    {"cuStreamSynchronize",
     [](Trial& t) { return t.Do([&] { return RAW(cuStreamSynchronize)(t.o.stream); }); }},
    {"cuStreamQuery",
     [](Trial& t) { return t.Do([&] { return RAW(cuStreamQuery)(t.o.stream); }); }},
    {"cuStreamWaitEvent",
     [](Trial& t) { return t.Do([&] { return RAW(cuStreamWaitEvent)(t.o.stream, t.o.end, 0); }); }},
    {"cuStreamGetCtx",
     [](Trial& t) {
       Context context = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuStreamGetCtx)(t.o.stream, &context); });
       t.Saw(context);
       return code;
     }},
    {"cuStreamGetGreenCtx",
     [](Trial& t) {
       CUgreenCtx green = nullptr;
       return t.Do([&] { return RAW(cuStreamGetGreenCtx)(t.o.stream, &green); });
     }},
    {"cuStreamIsCapturing",
     [](Trial& t) {
       auto status = CU_STREAM_CAPTURE_STATUS_NONE;
       return t.Do([&] { return RAW(cuStreamIsCapturing)(t.o.stream, &status); });
     }},
    {"cuStreamGetCaptureInfo",
     [](Trial& t) {
       auto status = CU_STREAM_CAPTURE_STATUS_NONE;
       cuuint64_t id = 0;
       using Get = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*);
       return t.Do([&] { return RAW_AS(Get, "cuStreamGetCaptureInfo")(t.o.stream, &status, &id); });
     }},
    {"cuStreamBeginCapture",
     [](Trial& t) {
       const CUresult code = t.Do(
           [&] { return RAW(cuStreamBeginCapture)(t.o.stream, CU_STREAM_CAPTURE_MODE_RELAXED); });
       CUgraph graph = nullptr;
       if (code == CUDA_SUCCESS) {
         OK(RAW(cuStreamEndCapture)(t.o.stream, &graph));
         OK(RAW(cuGraphDestroy)(graph));
       }
       return code;
     }},
    {"cuStreamEndCapture",
     [](Trial& t) {
       CUgraph graph = nullptr;
       OK(RAW(cuStreamBeginCapture)(t.o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
       const CUresult code = t.Do([&] { return RAW(cuStreamEndCapture)(t.o.stream, &graph); });
       if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
       return code;
     }},

    {"cuEventCreate",
     [](Trial& t) {
       return Makes<CUevent>(
           t, [](CUevent* made) { return RAW(cuEventCreate)(made, 0); },
           [&](CUevent made) { t.SawOfEvent(made); }, RAW(cuEventDestroy));
     }},
    {"cuEventDestroy",
     [](Trial& t) {
       CUevent event = nullptr;
       t.InA([&] { OK(RAW(cuEventCreate)(&event, 0)); });
       return t.Do([&] { return RAW(cuEventDestroy)(event); });
     }},
    {"cuEventRecord",
     [](Trial& t) { return t.Do([&] { return RAW(cuEventRecord)(t.o.event, t.o.stream); }); }},
    {"cuEventQuery", [](Trial& t) { return t.Do([&] { return RAW(cuEventQuery)(t.o.end); }); }},
    {"cuEventSynchronize",
     [](Trial& t) { return t.Do([&] { return RAW(cuEventSynchronize)(t.o.end); }); }},
    {"cuEventElapsedTime",
     [](Trial& t) {
       float time = 0;
       return t.Do([&] { return RAW(cuEventElapsedTime)(&time, t.o.start, t.o.end); });
     }},

    {"cuMemAlloc",
     [](Trial& t) {
       return Makes<CUdeviceptr>(
           t, [](CUdeviceptr* made) { return RAW(cuMemAlloc)(made, kBytes); },
           [&](CUdeviceptr made) { t.SawOfPointer(made); }, RAW(cuMemFree));
     }},
    {"cuMemFree",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       t.InA([&] { OK(RAW(cuMemAlloc)(&memory, kBytes)); });
       const CUresult code = t.Do([&] { return RAW(cuMemFree)(memory); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemFree)(memory)); });
       return code;
     }},
    {"cuMemAllocAsync",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuMemAllocAsync)(&memory, kBytes, t.o.stream); });
       if (code == CUDA_SUCCESS) OK(RAW(cuMemFreeAsync)(memory, t.o.stream));
       return code;
     }},
    {"cuMemFreeAsync",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       OK(RAW(cuMemAllocAsync)(&memory, kBytes, t.o.stream));
       const CUresult code = t.Do([&] { return RAW(cuMemFreeAsync)(memory, t.o.stream); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemFreeAsync)(memory, t.o.stream)); });
       return code;
     }},
    {"cuMemHostAlloc",
     [](Trial& t) {
       return Makes<void*>(
           t, [](void** made) { return RAW(cuMemHostAlloc)(made, kBytes, 0); },
           [&](void* made) { t.SawOfPointer(reinterpret_cast<CUdeviceptr>(made)); },
           RAW(cuMemFreeHost));
     }},
    {"cuMemFreeHost",
     [](Trial& t) {
       void* memory = nullptr;
       t.InA([&] { OK(RAW(cuMemHostAlloc)(&memory, kBytes, 0)); });
       const CUresult code = t.Do([&] { return RAW(cuMemFreeHost)(memory); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemFreeHost)(memory)); });
       return code;
     }},
    {"cuMemHostRegister",
     [](Trial& t) {
       const CUresult code = t.Do([&] { return RAW(cuMemHostRegister)(t.o.page, kBytes, 0); });
       if (code != CUDA_SUCCESS) return code;
       t.SawOfPointer(reinterpret_cast<CUdeviceptr>(t.o.page));
       Objects::In(t.owner, [&] { OK(RAW(cuMemHostUnregister)(t.o.page)); });
       return code;
     }},
    {"cuMemHostUnregister",
     [](Trial& t) {
       t.InA([&] { OK(RAW(cuMemHostRegister)(t.o.page, kBytes, 0)); });
       const CUresult code = t.Do([&] { return RAW(cuMemHostUnregister)(t.o.page); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuMemHostUnregister)(t.o.page)); });
       return code;
     }},
    {"cuPointerGetAttribute",
     [](Trial& t) {
       Context context = nullptr;
       const CUresult code =
           t.Do([&] { return GetAttribute(CU_POINTER_ATTRIBUTE_CONTEXT, t.o.p, &context); });
       t.Saw(context);
       return code;
     }},
    {"cuPointerGetAttributes",
     [](Trial& t) {
       Context context = nullptr;
       void* data = &context;
       auto attribute = CU_POINTER_ATTRIBUTE_CONTEXT;
       const CUresult code =
           t.Do([&] { return RAW(cuPointerGetAttributes)(1, &attribute, &data, t.o.p); });
       t.Saw(context);
       return code;
     }},
    {"cuMemGetAccess",
     [](Trial& t) {
       constexpr size_t kUnit = size_t{2} << 20;
       CUmemAllocationProp properties = {};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemGenericAllocationHandle memory = 0;
       CUdeviceptr address = 0;
       OK(RAW(cuMemCreate)(&memory, kUnit, &properties, 0));
       OK(RAW(cuMemAddressReserve)(&address, kUnit, 0, 0, 0));
       OK(RAW(cuMemMap)(address, kUnit, 0, memory, 0));
       unsigned long long flags = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuMemGetAccess)(&flags, &properties.location, address); });
       OK(RAW(cuMemUnmap)(address, kUnit));
       OK(RAW(cuMemRelease)(memory));
       OK(RAW(cuMemAddressFree)(address, kUnit));
       return code;
     }},
    {"cuMemcpyHtoD",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemcpyHtoD)(t.o.p, t.o.pinned, 1); }); }},
    {"cuMemcpyDtoH",
     [](Trial& t) {
       Fill(t);
       unsigned char byte = kOld;
       const CUresult code = t.Do([&] { return RAW(cuMemcpyDtoH)(&byte, t.o.q, 1); });
       BOOST_TEST((byte == kNew) == (code == CUDA_SUCCESS));
       return code;
     }},
    {"cuMemcpyDtoD",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemcpyDtoD)(t.o.p, t.o.q, 1); }); }},
    {"cuMemcpy3D",
     [](Trial& t) {
       const CUDA_MEMCPY3D copy = CopyOf(t);
       return Write(t, [&] { return RAW(cuMemcpy3D)(&copy); });
     }},
    {"cuMemsetD8",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemsetD8)(t.o.p, kNew, 1); }); }},
    {"cuMemsetD16",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemsetD16)(t.o.p, kNew, 1); }); }},
    {"cuMemsetD32",
     [](Trial& t) { return Write(t, [&] { return RAW(cuMemsetD32)(t.o.p, kNew, 1); }); }},
    {"cuMemcpyHtoDAsync",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemcpyHtoDAsync)(t.o.p, t.o.pinned, 1, t.o.stream); });
     }},
    {"cuMemcpyDtoHAsync",
     [](Trial& t) {
       Fill(t);
       auto* const byte = static_cast<unsigned char*>(t.o.pinned);
       *byte = kOld;
       const CUresult code =
           t.Do([&] { return RAW(cuMemcpyDtoHAsync)(byte, t.o.q, 1, t.o.stream); });
       OK(RAW(cuStreamSynchronize)(t.o.stream));
       BOOST_TEST((*byte == kNew) == (code == CUDA_SUCCESS));
       return code;
     }},
    {"cuMemcpyDtoDAsync",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemcpyDtoDAsync)(t.o.p, t.o.q, 1, t.o.stream); });
     }},
    {"cuMemcpy3DAsync",
     [](Trial& t) {
       const CUDA_MEMCPY3D copy = CopyOf(t);
       return Write(t, [&] { return RAW(cuMemcpy3DAsync)(&copy, t.o.stream); });
     }},
    {"cuMemsetD8Async",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemsetD8Async)(t.o.p, kNew, 1, t.o.stream); });
     }},
    {"cuMemsetD16Async",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemsetD16Async)(t.o.p, kNew, 1, t.o.stream); });
     }},
    {"cuMemsetD32Async",
     [](Trial& t) {
       return Write(t, [&] { return RAW(cuMemsetD32Async)(t.o.p, kNew, 1, t.o.stream); });
     }},

    {"cuArray3DCreate",
     [](Trial& t) {
       return Makes<CUarray>(
           t,
           [](CUarray* made) {
             const CUDA_ARRAY3D_DESCRIPTOR shape = {16, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
             return RAW(cuArray3DCreate)(made, &shape);
           },
           [](CUarray) {}, RAW(cuArrayDestroy));
     }},
    {"cuArrayDestroy",
     [](Trial& t) {
       CUarray array = nullptr;
       t.InA([&] { array = Objects::MakeArray(); });
       const CUresult code = t.Do([&] { return RAW(cuArrayDestroy)(array); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuArrayDestroy)(array)); });
       return code;
     }},
    {"cuArray3DGetDescriptor",
     [](Trial& t) {
       CUDA_ARRAY3D_DESCRIPTOR shape = {};
       return t.Do([&] { return RAW(cuArray3DGetDescriptor)(&shape, t.o.array); });
     }},
    {"cuTexObjectCreate",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       const CUDA_TEXTURE_DESC sampling = {};
       CUtexObject made = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuTexObjectCreate)(&made, &resource, &sampling, nullptr); });
       if (code == CUDA_SUCCESS) {
         Objects::In(t.current != nullptr ? t.current : t.o.a.get(),
                     [&] { OK(RAW(cuTexObjectDestroy)(made)); });
       }
       return code;
     }},
    {"cuTexObjectDestroy",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       const CUDA_TEXTURE_DESC sampling = {};
       CUtexObject made = 0;
       t.InA([&] { OK(RAW(cuTexObjectCreate)(&made, &resource, &sampling, nullptr)); });
       const CUresult code = t.Do([&] { return RAW(cuTexObjectDestroy)(made); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuTexObjectDestroy)(made)); });
       return code;
     }},
    {"cuSurfObjectCreate",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       CUsurfObject made = 0;
       const CUresult code = t.Do([&] { return RAW(cuSurfObjectCreate)(&made, &resource); });
       if (code == CUDA_SUCCESS) {
         Objects::In(t.current != nullptr ? t.current : t.o.a.get(),
                     [&] { OK(RAW(cuSurfObjectDestroy)(made)); });
       }
       return code;
     }},
    {"cuSurfObjectDestroy",
     [](Trial& t) {
       const CUDA_RESOURCE_DESC resource = ResourceOf(t.o.array);
       CUsurfObject made = 0;
       t.InA([&] { OK(RAW(cuSurfObjectCreate)(&made, &resource)); });
       const CUresult code = t.Do([&] { return RAW(cuSurfObjectDestroy)(made); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuSurfObjectDestroy)(made)); });
       return code;
     }},

    {"cuModuleLoadDataEx",
     [](Trial& t) {
       CUmodule made = nullptr;
       const CUresult code = t.Do(
           [&] { return RAW(cuModuleLoadDataEx)(&made, Objects::kCode, 0, nullptr, nullptr); });
       if (code != CUDA_SUCCESS) return code;
       CUdeviceptr number = 0;
       Objects::In(t.current, [&] {
         OK(RAW(cuModuleGetGlobal)(&number, nullptr, made, "number"));
         t.SawOfPointer(number);
         OK(RAW(cuModuleUnload)(made));
       });
       return code;
     }},
    {"cuModuleUnload",
     [](Trial& t) {
       CUmodule made = nullptr;
       t.InA([&] { OK(RAW(cuModuleLoadData)(&made, Objects::kCode)); });
       const CUresult code = t.Do([&] { return RAW(cuModuleUnload)(made); });
       if (code != CUDA_SUCCESS) t.InA([&] { OK(RAW(cuModuleUnload)(made)); });
       return code;
     }},
    {"cuModuleGetFunction",
     [](Trial& t) {
       CUfunction found = nullptr;
       const CUresult code =
           t.Do([&] { return RAW(cuModuleGetFunction)(&found, t.o.module, "nothing"); });
       if (code == CUDA_SUCCESS) t.SawOfFunction(found);
       return code;
     }},
    {"cuModuleGetGlobal",
     [](Trial& t) {
       CUdeviceptr number = 0;
       size_t bytes = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuModuleGetGlobal)(&number, &bytes, t.o.module, "number"); });
       if (code == CUDA_SUCCESS) t.SawOfPointer(number);
       return code;
     }},
    {"cuModuleGetLoadingMode",
     [](Trial& t) { return Ask<CUmoduleLoadingMode>(t, RAW(cuModuleGetLoadingMode)); }},
    {"cuFuncGetAttribute",
     [](Trial& t) {
       int value = 0;
       return t.Do([&] {
         return RAW(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, t.o.nothing);
       });
     }},
    {"cuFuncSetAttribute",
     [](Trial& t) {
       return t.Do([&] {
         return RAW(cuFuncSetAttribute)(t.o.nothing,
                                        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
       });
     }},
    {"cuFuncGetModule",
     [](Trial& t) {
       CUmodule module = nullptr;
       return t.Do([&] { return RAW(cuFuncGetModule)(&module, t.o.nothing); });
     }},
    {"cuFuncGetName",
     [](Trial& t) {
       const char* name = nullptr;
       return t.Do([&] { return RAW(cuFuncGetName)(&name, t.o.nothing); });
     }},
    {"cuFuncGetParamInfo",
     [](Trial& t) {
       size_t offset = 0;
       size_t size = 0;
       return t.Do([&] { return RAW(cuFuncGetParamInfo)(t.o.store, 0, &offset, &size); });
     }},
    {"cuFuncIsLoaded",
     [](Trial& t) {
       auto state = CU_FUNCTION_LOADING_STATE_UNLOADED;
       return t.Do([&] { return RAW(cuFuncIsLoaded)(&state, t.o.nothing); });
     }},
    {"cuFuncLoad", [](Trial& t) { return t.Do([&] { return RAW(cuFuncLoad)(t.o.nothing); }); }},
    {"cuLibraryLoadData",
     [](Trial& t) {
       CUlibrary made = nullptr;
       const CUresult code = t.Do([&] {
         return RAW(cuLibraryLoadData)(&made, Objects::kCode, nullptr, nullptr, 0, nullptr, nullptr,
                                       0);
       });
       if (code == CUDA_SUCCESS) OK(RAW(cuLibraryUnload)(made));
       return code;
     }},
    {"cuLibraryUnload",
     [](Trial& t) {
       CUlibrary made = nullptr;
       OK(RAW(cuLibraryLoadData)(&made, Objects::kCode, nullptr, nullptr, 0, nullptr, nullptr, 0));
       return t.Do([&] { return RAW(cuLibraryUnload)(made); });
     }},
    {"cuLibraryGetKernel",
     [](Trial& t) {
       CUkernel kernel = nullptr;
       return t.Do([&] { return RAW(cuLibraryGetKernel)(&kernel, t.o.library, "nothing"); });
     }},
    {"cuLibraryGetKernelCount",
     [](Trial& t) {
       unsigned count = 0;
       return t.Do([&] { return RAW(cuLibraryGetKernelCount)(&count, t.o.library); });
     }},
    {"cuLibraryEnumerateKernels",
     [](Trial& t) {
       CUkernel kernels[2] = {};
       return t.Do([&] { return RAW(cuLibraryEnumerateKernels)(kernels, 2, t.o.library); });
     }},
    {"cuLibraryGetModule",
     [](Trial& t) {
       CUmodule module = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuLibraryGetModule)(&module, t.o.library); });
       if (code != CUDA_SUCCESS) return code;
       CUfunction found = nullptr;
       OK(RAW(cuModuleGetFunction)(&found, module, "nothing"));
       t.SawOfFunction(found);
       return code;
     }},
    {"cuLibraryGetGlobal",
     [](Trial& t) {
       CUdeviceptr number = 0;
       size_t bytes = 0;
       const CUresult code =
           t.Do([&] { return RAW(cuLibraryGetGlobal)(&number, &bytes, t.o.library, "number"); });
       if (code == CUDA_SUCCESS) t.SawOfPointer(number);
       return code;
     }},
    {"cuKernelGetFunction",
     [](Trial& t) {
       CUfunction found = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuKernelGetFunction)(&found, t.o.kernel); });
       if (code == CUDA_SUCCESS) t.SawOfFunction(found);
       return code;
     }},
    {"cuKernelGetLibrary",
     [](Trial& t) {
       CUlibrary library = nullptr;
       return t.Do([&] { return RAW(cuKernelGetLibrary)(&library, t.o.kernel); });
     }},
    {"cuKernelGetName",
     [](Trial& t) {
       const char* name = nullptr;
       return t.Do([&] { return RAW(cuKernelGetName)(&name, t.o.kernel); });
     }},
    {"cuLinkCreate",
     [](Trial& t) {
       CUlinkState made = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuLinkCreate)(0, nullptr, nullptr, &made); });
       if (code == CUDA_SUCCESS) OK(RAW(cuLinkDestroy)(made));
       return code;
     }},
    {"cuLinkAddData",
     [](Trial& t) {
       CUlinkState state = nullptr;
       t.InA([&] { OK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state)); });
       std::string code = Objects::kCode;
       const CUresult added = t.Do([&] {
         return RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &code[0], code.size() + 1, "x", 0,
                                   nullptr, nullptr);
       });
       OK(RAW(cuLinkDestroy)(state));
       return added;
     }},
    {"cuLinkComplete",
     [](Trial& t) {
       CUlinkState state = nullptr;
       std::string code = Objects::kCode;
       t.InA([&] {
         OK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state));
         OK(RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &code[0], code.size() + 1, "x", 0, nullptr,
                               nullptr));
       });
       void* image = nullptr;
       size_t size = 0;
       const CUresult completed = t.Do([&] { return RAW(cuLinkComplete)(state, &image, &size); });
       OK(RAW(cuLinkDestroy)(state));
       return completed;
     }},
    {"cuLinkDestroy",
     [](Trial& t) {
       CUlinkState state = nullptr;
       t.InA([&] { OK(RAW(cuLinkCreate)(0, nullptr, nullptr, &state)); });
       return t.Do([&] { return RAW(cuLinkDestroy)(state); });
     }},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
     [](Trial& t) {
       int blocks = 0;
       return t.Do([&] {
         return RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, t.o.nothing, 32, 0);
       });
     }},
    {"cuOccupancyMaxPotentialBlockSize",
     [](Trial& t) {
       int grid = 0;
       int block = 0;
       return t.Do([&] {
         return RAW(cuOccupancyMaxPotentialBlockSize)(&grid, &block, t.o.nothing, nullptr, 0, 0);
       });
     }},
    {"cuOccupancyAvailableDynamicSMemPerBlock",
     [](Trial& t) {
       size_t bytes = 0;
       return t.Do([&] {
         return RAW(cuOccupancyAvailableDynamicSMemPerBlock)(&bytes, t.o.nothing, 1, 32);
       });
     }},
    {"cuOccupancyMaxActiveClusters",
     [](Trial& t) {
       int clusters = 0;
       const CUlaunchConfig config = ConfigOf(t);
       return t.Do(
           [&] { return RAW(cuOccupancyMaxActiveClusters)(&clusters, t.o.nothing, &config); });
     }},
    {"cuLaunchKernel",
     [](Trial& t) {
       unsigned value = kNew;
       void* arguments[] = {&t.o.p, &value};
       return Write(t, [&] {
         return RAW(cuLaunchKernel)(t.o.store, 1, 1, 1, 1, 1, 1, 0, t.o.stream, arguments, nullptr);
       });
     }},
    {"cuLaunchKernelEx",
     [](Trial& t) {
       unsigned value = kNew;
       void* arguments[] = {&t.o.p, &value};
       const CUlaunchConfig config = ConfigOf(t);
       return Write(t,
                    [&] { return RAW(cuLaunchKernelEx)(&config, t.o.store, arguments, nullptr); });
     }},

    {"cuGraphCreate",
     [](Trial& t) {
       CUgraph made = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuGraphCreate)(&made, 0); });
       if (code == CUDA_SUCCESS) OK(RAW(cuGraphDestroy)(made));
       return code;
     }},
    {"cuGraphDestroy",
     [](Trial& t) {
       OneNode one(t);
       return one.Ends(t, &OneNode::graph, RAW(cuGraphDestroy));
     }},
    {"cuGraphAddKernelNode",
     [](Trial& t) {
       const OneNode one(t);
       const CUDA_KERNEL_NODE_PARAMS parameters = NodeOf(t);
       CUgraphNode node = nullptr;
       const CUresult code = t.Do(
           [&] { return RAW(cuGraphAddKernelNode)(&node, one.graph, nullptr, 0, &parameters); });
       if (code != CUDA_SUCCESS) return code;
       CUDA_KERNEL_NODE_PARAMS added = {};
       t.InA([&] { OK(RAW(cuGraphKernelNodeGetParams)(node, &added)); });
       t.Saw(added.ctx);
       return code;
     }},
    {"cuGraphKernelNodeSetAttribute",
     [](Trial& t) {
       const OneNode one(t);
       CUkernelNodeAttrValue value = {};
       value.cooperative = 0;
       return t.Do([&] {
         return RAW(cuGraphKernelNodeSetAttribute)(one.node, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE,
                                                   &value);
       });
     }},
    {"cuGraphDestroyNode",
     [](Trial& t) {
       OneNode one(t);
       return one.Ends(t, &OneNode::node, RAW(cuGraphDestroyNode));
     }},
    {"cuGraphInstantiateWithFlags",
     [](Trial& t) {
       const OneNode one(t);
       CUgraphExec made = nullptr;
       const CUresult code =
           t.Do([&] { return RAW(cuGraphInstantiateWithFlags)(&made, one.graph, 0); });
       if (code == CUDA_SUCCESS) OK(RAW(cuGraphExecDestroy)(made));
       return code;
     }},
    {"cuGraphExecKernelNodeSetParams",
     [](Trial& t) {
       const OneNode one(t);
       const CUDA_KERNEL_NODE_PARAMS parameters = NodeOf(t);
       return t.Do([&] {
         return RAW(cuGraphExecKernelNodeSetParams)(one.executable, one.node, &parameters);
       });
     }},
    {"cuGraphLaunch",
     [](Trial& t) {
       const OneNode one(t);
       const CUresult code = t.Do([&] { return RAW(cuGraphLaunch)(one.executable, t.o.stream); });
       OK(RAW(cuStreamSynchronize)(t.o.stream));
       return code;
     }},
    {"cuGraphExecDestroy",
     [](Trial& t) {
       OneNode one(t);
       return one.Ends(t, &OneNode::executable, RAW(cuGraphExecDestroy));
     }},

    // Stream 0 is the current context's.
    {"cuStreamSynchronize, stream 0",
     [](Trial& t) { return t.Do([] { return RAW(cuStreamSynchronize)(nullptr); }); }},
    {"cuStreamGetCtx, stream 0",
     [](Trial& t) {
       Context context = nullptr;
       const CUresult code = t.Do([&] { return RAW(cuStreamGetCtx)(nullptr, &context); });
       t.Saw(context);
       return code;
     }},
    {"cuStreamIsCapturing, stream 0",
     [](Trial& t) {
       auto status = CU_STREAM_CAPTURE_STATUS_NONE;
       return t.Do([&] { return RAW(cuStreamIsCapturing)(nullptr, &status); });
     }},
    {"cuEventRecord, stream 0",
     [](Trial& t) { return t.Do([&] { return RAW(cuEventRecord)(t.o.event, nullptr); }); }},
    {"cuMemAllocAsync, stream 0",
     [](Trial& t) {
       CUdeviceptr memory = 0;
       const CUresult code = t.Do([&] { return RAW(cuMemAllocAsync)(&memory, kBytes, nullptr); });
       if (code == CUDA_SUCCESS) OK(RAW(cuMemFree)(memory));
       return code;
     }},
    {"cuMemcpyHtoDAsync, stream 0",
     [](Trial& t) {
       return Write(t, [&] {
         const CUresult code = RAW(cuMemcpyHtoDAsync)(t.o.p, t.o.pinned, 1, nullptr);
         if (code == CUDA_SUCCESS) OK(RAW(cuCtxSynchronize)());
         return code;
       });
     }},
    {"cuMemsetD8Async, stream 0",
     [](Trial& t) {
       return Write(t, [&] {
         const CUresult code = RAW(cuMemsetD8Async)(t.o.p, kNew, 1, nullptr);
         if (code == CUDA_SUCCESS) OK(RAW(cuCtxSynchronize)());
         return code;
       });
     }},
    {"cuLaunchKernel, stream 0",
     [](Trial& t) {
       return t.Do([&] {
         return RAW(cuLaunchKernel)(t.o.nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
       });
     }},
    {"cuGraphLaunch, stream 0",
     [](Trial& t) {
       const OneNode one(t);
       const CUresult code = t.Do([&] { return RAW(cuGraphLaunch)(one.executable, nullptr); });
       t.InA([] { OK(RAW(cuCtxSynchronize)()); });
       return code;
     }},
};

std::string NameOf(CUresult code) {
  const char* name = nullptr;
  RAW(cuGetErrorName)(code, &name);
  const std::string prefix = "CUDA_ERROR_";
  const std::string all = name != nullptr ? name : std::to_string(code);
  return all.rfind(prefix, 0) == 0 ? all.substr(prefix.size())
         : all == "CUDA_SUCCESS"   ? "SUCCESS"
                                   : all;
}

}  // namespace

// A row for each call, and each is printed: what a driver says otherwise is seen at once.
BOOST_AUTO_TEST_CASE(each_call_with_another_context) {
  BOOST_TEST(std::size(kRows) == std::size(kCalls));
  Objects objects;
  SetStack({});
  for (const Row& row : kRows) {
    const auto has_name = [&](const Call& call) { return std::strcmp(call.name, row.call) == 0; };
    const Call* const call = std::find_if(std::begin(kCalls), std::end(kCalls), has_name);
    BOOST_TEST_REQUIRE((call != std::end(kCalls)), row.call);
    const bool compiles =
        row.call == std::string("cuLinkAddData") || row.call == std::string("cuLinkComplete");
    if (compiles && !HasCompiler()) continue;
    const bool crashes = std::strcmp(row.nothing, kCrashes) == 0;
    Trial nothing = {objects, nullptr};
    Trial other = {objects, objects.b.get()};
    const std::string without = crashes ? kCrashes : NameOf(call->run(nothing));
    const std::string with = NameOf(call->run(other));
    std::printf("%s | nothing: %s | another: %s | %s%s\n", row.call, without.c_str(), with.c_str(),
                row.works_in, without == row.nothing && with == row.other ? "" : " DIFFERS");
    BOOST_TEST(without == row.nothing, row.call << ", nothing current: " << without);
    BOOST_TEST(with == row.other, row.call << ", another context current: " << with);
    // Of what tells.
    const bool is_current = std::strcmp(row.works_in, "the current one") == 0;
    BOOST_TEST((nothing.owner == nullptr || nothing.owner == objects.a.get()), row.call);
    const Context owner = is_current ? objects.b.get() : objects.a.get();
    BOOST_TEST((other.owner == nullptr || other.owner == owner), row.call);
  }
}

BOOST_AUTO_TEST_SUITE_END()
