// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The objects of one context and the trial of a call in another, for the calls of this folder: each
// file has those of one subject.

#ifndef CUDASIM_TEST_CURRENT_CONTEXT_CALLS_H_
#define CUDASIM_TEST_CURRENT_CONTEXT_CALLS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/jit.h"

namespace cudasim_facts {
namespace current_context {

constexpr size_t kBytes = 4096;
constexpr unsigned char kOld = 1;
constexpr unsigned char kNew = 7;

// Objects of the context a. Nothing is current but in the functions below.
struct Objects {
  Objects() {
    cudasim::Sim::RegisterKernel("nothing", [](const cudasim::SimLaunch&) { return CUDA_SUCCESS; });
    cudasim::Sim::RegisterKernel("store", [](const cudasim::SimLaunch& launch) {
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
      OK(RAW(cuModuleLoadData)(&module, ptx.c_str()));
      OK(RAW(cuModuleGetFunction)(&nothing, module, "nothing"));
      OK(RAW(cuModuleGetFunction)(&store, module, "store"));
      OK(RAW(cuEventRecord)(start, stream));
      OK(RAW(cuEventRecord)(end, stream));
      OK(RAW(cuCtxSynchronize)());
      array = MakeArray();
    });
    OK(RAW(cuLibraryLoadData)(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
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

  const std::string ptx = std::string(kPtx) + ".visible .global .align 4 .u32 number = 5;\n";
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

inline CUDA_KERNEL_NODE_PARAMS NodeOf(const Trial& t) {
  CUDA_KERNEL_NODE_PARAMS node = {};
  node.func = t.o.nothing;
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  return node;
}

inline void Fill(const Trial& t) {
  t.InA([&] {
    OK(RAW(cuMemsetD8)(t.o.p, kOld, kBytes));
    OK(RAW(cuMemsetD8)(t.o.q, kNew, kBytes));
    OK(RAW(cuCtxSynchronize)());
  });
}

template <typename Function>
CUresult Write(Trial& t, const Function& call) {
  Fill(t);
  std::memset(t.o.pinned, kNew, kBytes);
  const CUresult code = t.Do(call);
  t.SawWork(t.o.p, code == CUDA_SUCCESS ? kNew : kOld);
  return code;
}

template <typename T>
CUresult Ask(Trial& t, CUresult (*get)(T*)) {
  T value = {};
  return t.Do([&] { return get(&value); });
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

struct DriverCall {
  const char* name;
  CUresult (*run)(Trial&);
};

extern const std::vector<DriverCall> kContextCalls;
extern const std::vector<DriverCall> kStreamCalls;
extern const std::vector<DriverCall> kMemoryCalls;
extern const std::vector<DriverCall> kCodeCalls;
extern const std::vector<DriverCall> kLaunchCalls;
extern const std::vector<DriverCall> kStreamZeroCalls;

}  // namespace current_context
}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_CURRENT_CONTEXT_CALLS_H_
