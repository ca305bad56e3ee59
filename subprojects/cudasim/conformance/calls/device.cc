// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of device 0, of every kind, touched from a context of device 1, which is on no thread's
// stack but in these calls; and what gives that access.

#include "conformance/call.h"

namespace conformance {
namespace {

constexpr size_t kUnit = size_t{2} << 20;
const Param kBytes = Number({0, 1, 16, 256, 4096});
const Param kMemory = Use("MMMWWH", 0);

CUcontext Far(const World& world) {
  return reinterpret_cast<CUcontext>(world.Find({'D', 1})->handle);
}
CUstream FarStream(const World& world) {
  return reinterpret_cast<CUstream>(world.Find({'T', 1})->handle);
}

bool IsUncaptured(const World& world, const Values&) { return world.captures == 0; }
When Uncaptured(const When& also) {
  return [=](const World& world, const Values& values) {
    return IsUncaptured(world, values) && also(world, values);
  };
}

// Argument `i` is null or no destroyed context.
When Lives(size_t i, const When& also = IsUncaptured) {
  return [=](const World& world, const Values& values) {
    const bool lives = values[i].number == 0 || world.IsAlive(values[i]);
    return lives && also(world, values);
  };
}

// `call` where device 1's context is current, until its work is done, which has to succeed.
template <typename Function>
int InFar(Frame& frame, const Function& call) {
  RAW(cuCtxPushCurrent)(Far(frame.world));
  const CUresult code = call();
  frame.SayNumber(RAW(cuCtxSynchronize)());
  RAW(cuCtxPopCurrent)(nullptr);
  return code;
}

// Of two addresses and a number of bytes.
Run Copies(CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t)) {
  return [=](Frame& frame) {
    return InFar(frame, [&] {
      return copy(frame.As<CUdeviceptr>(0), frame.As<CUdeviceptr>(1), frame.As<size_t>(2));
    });
  };
}

int CopyLater(Frame& frame) {
  return InFar(frame, [&] {
    return RAW(cuMemcpyDtoDAsync)(frame.As<CUdeviceptr>(0), frame.As<CUdeviceptr>(1),
                                  frame.As<size_t>(2), FarStream(frame.world));
  });
}
int CopyToHost(Frame& frame) {
  return InFar(frame, [&] {
    return RAW(cuMemcpyDtoH)(frame.As<void*>(0), frame.As<CUdeviceptr>(1), frame.As<size_t>(2));
  });
}
int CopyFromHost(Frame& frame) {
  return InFar(frame, [&] {
    return RAW(cuMemcpyHtoD)(frame.As<CUdeviceptr>(0), frame.As<const void*>(1),
                             frame.As<size_t>(2));
  });
}
int CopyAsPeers(Frame& frame) {
  return InFar(frame, [&] {
    return RAW(cuMemcpyPeer)(frame.As<CUdeviceptr>(0), Far(frame.world), frame.As<CUdeviceptr>(1),
                             frame.As<CUcontext>(3), frame.As<size_t>(2));
  });
}
int FillNow(Frame& frame) {
  return InFar(frame,
               [&] { return RAW(cuMemsetD8)(frame.As<CUdeviceptr>(0), 1, frame.As<size_t>(1)); });
}
int FillLater(Frame& frame) {
  return InFar(frame, [&] {
    return RAW(cuMemsetD8Async)(frame.As<CUdeviceptr>(0), 1, frame.As<size_t>(1),
                                FarStream(frame.world));
  });
}

// Where a context of device 0 is current.
int CopyNear(Frame& frame) {
  frame.code =
      RAW(cuMemcpyDtoD)(frame.As<CUdeviceptr>(0), frame.As<CUdeviceptr>(1), frame.As<size_t>(2));
  return frame.code;
}

// What becomes of a graph in device 1's stream: that of instantiating, launching and waiting, up to
// the first that fails.
CUresult RunGraph(Frame& frame, CUgraph graph) {
  CUgraphExec executable = nullptr;
  CUresult code = RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0);
  frame.SayNumber(code);
  if (code == CUDA_SUCCESS) {
    code = RAW(cuGraphLaunch)(executable, FarStream(frame.world));
    frame.SayNumber(code);
    frame.SayNumber(RAW(cuStreamSynchronize)(FarStream(frame.world)));
    RAW(cuGraphExecDestroy)(executable);
  }
  return code;
}

template <typename Add>
int RunNode(Frame& frame, const Add& add) {
  return InFar(frame, [&] {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    RAW(cuGraphCreate)(&graph, 0);
    CUresult code = add(&node, graph);
    frame.SayNumber(code);
    if (code == CUDA_SUCCESS) code = RunGraph(frame, graph);
    RAW(cuGraphDestroy)(graph);
    return code;
  });
}
int CopyInNode(Frame& frame) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = frame.As<CUdeviceptr>(0);
  copy.srcDevice = frame.As<CUdeviceptr>(1);
  copy.WidthInBytes = frame.As<size_t>(2);
  copy.Height = copy.Depth = 1;
  return RunNode(frame, [&](CUgraphNode* node, CUgraph graph) {
    return RAW(cuGraphAddMemcpyNode)(node, graph, nullptr, 0, &copy, Far(frame.world));
  });
}
int FillInNode(Frame& frame) {
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = frame.As<CUdeviceptr>(0);
  fill.elementSize = fill.height = 1;
  fill.width = frame.As<size_t>(1);
  return RunNode(frame, [&](CUgraphNode* node, CUgraph graph) {
    return RAW(cuGraphAddMemsetNode)(node, graph, nullptr, 0, &fill, Far(frame.world));
  });
}

template <typename Function>
int RunCapture(Frame& frame, const Function& call) {
  return InFar(frame, [&] {
    CUgraph graph = nullptr;
    RAW(cuStreamBeginCapture)(FarStream(frame.world), CU_STREAM_CAPTURE_MODE_RELAXED);
    CUresult code = call();
    frame.SayNumber(code);
    frame.SayNumber(RAW(cuStreamEndCapture)(FarStream(frame.world), &graph));
    if (code == CUDA_SUCCESS && graph != nullptr) code = RunGraph(frame, graph);
    if (graph != nullptr) RAW(cuGraphDestroy)(graph);
    return code;
  });
}
int CaptureCopy(Frame& frame) {
  return RunCapture(frame, [&] {
    return RAW(cuMemcpyDtoDAsync)(frame.As<CUdeviceptr>(0), frame.As<CUdeviceptr>(1),
                                  frame.As<size_t>(2), FarStream(frame.world));
  });
}
int CaptureFill(Frame& frame) {
  return RunCapture(frame, [&] {
    return RAW(cuMemsetD8Async)(frame.As<CUdeviceptr>(0), 1, frame.As<size_t>(1),
                                FarStream(frame.world));
  });
}

int EnablePeer(Frame& frame) {
  return InFar(frame, [&] { return RAW(cuCtxEnablePeerAccess)(frame.As<CUcontext>(0), 0); });
}
int DisablePeer(Frame& frame) {
  return InFar(frame, [&] { return RAW(cuCtxDisablePeerAccess)(frame.As<CUcontext>(0)); });
}

CUmemAccessDesc AccessOf(CUdevice device, long long flags) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access.flags = static_cast<CUmemAccess_flags>(flags);
  return access;
}
int SetPoolAccess(Frame& frame) {
  const CUmemAccessDesc access = AccessOf(1, frame.Number(1));
  return RAW(cuMemPoolSetAccess)(frame.As<CUmemoryPool>(0), &access, 1);
}

// Memory of device 0, for it and, as argument 1 says, for device 1.
int Map(Frame& frame) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  const CUmemAccessDesc access[] = {AccessOf(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                                    AccessOf(1, frame.Number(1))};
  frame.code = RAW(cuMemCreate)(&handle, kUnit, &properties, 0);
  if (frame.code != CUDA_SUCCESS) return frame.code;
  RAW(cuMemAddressReserve)(&address, kUnit, 0, 0, 0);
  frame.code = RAW(cuMemMap)(address, kUnit, 0, handle, 0);
  RAW(cuMemRelease)(handle);
  frame.SayNumber(RAW(cuMemSetAccess)(address, kUnit, access, 2));
  frame.SayOut(0, &address, sizeof(address), frame.code == 0);
  return frame.code;
}
void Mapped(Frame& frame) {
  if (Object* memory = frame.ObjectOf(0)) memory->size = kUnit;
}
int SetMappedAccess(Frame& frame) {
  const CUmemAccessDesc access = AccessOf(1, frame.Number(1));
  return RAW(cuMemSetAccess)(frame.As<CUdeviceptr>(0), kUnit, &access, 1);
}

const Param kFlags = Number({CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE});

}  // namespace

Room DeviceRoom() {
  return {
      "devices",
      {
          {"far.copyFrom",
           Copies(RAW(cuMemcpyDtoD)),
           6,
           {Use("O", 0), kMemory, kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyTo",
           Copies(RAW(cuMemcpyDtoD)),
           6,
           {kMemory, Use("O", 0), kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyUnified",
           Copies(RAW(cuMemcpy)),
           3,
           {Use("O", 0), kMemory, kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyAsync",
           CopyLater,
           6,
           {Use("O", 0), kMemory, kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyToHost",
           CopyToHost,
           4,
           {Use("B", 0), kMemory, kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyFromHost",
           CopyFromHost,
           4,
           {kMemory, Use("B", 0), kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyAsPeers",
           CopyAsPeers,
           4,
           {Use("O", 0), kMemory, kBytes, Use("CP")},
           {},
           Lives(3, Uncaptured(Fits({0, 1}, 2)))},
          {"far.fill", FillNow, 6, {kMemory, kBytes}, {}, Uncaptured(Fits({0}, 1))},
          {"far.fillAsync", FillLater, 6, {kMemory, kBytes}, {}, Uncaptured(Fits({0}, 1))},
          {"near.copyFar",
           CopyNear,
           6,
           {Use("O", 0), kMemory, kBytes},
           Done(2),
           Uncaptured(Fits({0, 1}, 2))},
          {"far.copyNode",
           CopyInNode,
           5,
           {Use("O", 0), kMemory, kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.fillNode", FillInNode, 5, {kMemory, kBytes}, {}, Uncaptured(Fits({0}, 1))},
          {"far.captureCopy",
           CaptureCopy,
           5,
           {Use("O", 0), kMemory, kBytes},
           {},
           Uncaptured(Fits({0, 1}, 2))},
          {"far.captureFill", CaptureFill, 5, {kMemory, kBytes}, {}, Uncaptured(Fits({0}, 1))},
          {"far.enablePeer", EnablePeer, 5, {Use("CP")}, {}, Lives(0)},
          {"far.disablePeer", DisablePeer, 2, {Use("CP")}, {}, Lives(0)},
          {"cuMemPoolSetAccess", SetPoolAccess, 4, {Use("Q", 0), kFlags}, {}, IsUncaptured},
          {"cuMemMap.forBoth", Map, 5, {Make("W", 0), kFlags}, Mapped, IsUncaptured},
          {"cuMemSetAccess.far", SetMappedAccess, 4, {Use("W", 0), kFlags}, {}, IsUncaptured},
      },
  };
}

}  // namespace conformance
