// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/object_rule.h"

#include <cstring>

#include "audit/text.h"

namespace cuguest::audit {
namespace {

constexpr bool kFrees = true;

// Of both the driver and the runtime.
constexpr ObjectRule kCommonRules[] = {
    {"StreamCreate", "s", false},
    {"StreamCreateWithPriority", "s", false},
    {"StreamDestroy", "S", kFrees},
    {"StreamQuery", "S", false},
    {"StreamSynchronize", "S", false},
    {"StreamWaitEvent", "SE", false},
    {"StreamGetPriority", "S", false},
    {"StreamGetFlags", "S", false},
    {"StreamGetId", "S", false},
    {"StreamGetDevice", "S", false},
    {"StreamAddCallback", "S", false},
    {"StreamAttachMemAsync", "S", false},
    {"StreamCopyAttributes", "SS", false},
    {"StreamGetAttribute", "S", false},
    {"StreamSetAttribute", "S", false},
    {"StreamBeginCapture", "S", false},
    {"StreamBeginCaptureToGraph", "S", false},
    {"StreamEndCapture", "S", false},
    {"StreamIsCapturing", "S", false},
    {"StreamGetCaptureInfo", "S", false},
    {"StreamUpdateCaptureDependencies", "S", false},
    {"LaunchHostFunc", "S", false},
    {"GraphLaunch", ".S", false},
    {"GraphUpload", ".S", false},
    {"EventCreate", "e", false},
    {"EventDestroy", "E", kFrees},
    {"EventQuery", "E", false},
    {"EventSynchronize", "E", false},
    {"EventRecord", "ES", false},
    {"EventRecordWithFlags", "ES", false},
    {"EventElapsedTime", ".EE", false},
    {"IpcGetEventHandle", ".E", false},
    {"IpcOpenEventHandle", "e", false},
    {"IpcGetMemHandle", ".D", false},
    {"IpcOpenMemHandle", "d", false},
    {"IpcCloseMemHandle", "D", kFrees},
    {"MemPrefetchAsync", "D", false},
    {"MemAdvise", "D", false},
    {"ExternalMemoryGetMappedBuffer", "p", false},
    {"ExternalMemoryGetMappedMipmappedArray", "g", false},
    {"GraphicsResourceGetMappedPointer", "p", false},
    {"GraphicsResourceGetMappedMipmappedArray", "g", false},
    {"GraphicsSubResourceGetMappedArray", "g", false},
};

constexpr ObjectRule kDriverRules[] = {
    {"GreenCtxStreamCreate", "sC", false},
    {"StreamGetCtx", "S", false},
    {"StreamWaitValue32", "S", false},
    {"StreamWaitValue64", "S", false},
    {"StreamWriteValue32", "S", false},
    {"StreamWriteValue64", "S", false},
    {"StreamBatchMemOp", "S", false},
    {"CtxRecordEvent", ".E", false},
    {"CtxWaitEvent", ".E", false},
    {"GreenCtxRecordEvent", ".E", false},
    {"GreenCtxWaitEvent", ".E", false},
    {"MemAlloc", "dn", false},
    {"MemAllocPitch", "d.nn", false},
    {"MemAllocManaged", "dn", false},
    {"MemFree", "D", kFrees},
    {"MemAllocAsync", "pnS", false},
    {"MemAllocFromPoolAsync", "pn.S", false},
    {"MemFreeAsync", "DS", kFrees},
    {"MemAddressReserve", "pn", false},
    {"ModuleGetGlobal", "p.M", false},
    {"LibraryGetGlobal", "p", false},
    {"LibraryGetManaged", "p", false},
    {"MemPoolImportPointer", "p", false},
    {"MemAllocHost", "hn", false},
    {"MemHostAlloc", "hn", false},
    {"MemFreeHost", "H", kFrees},
    {"MemHostGetDevicePointer", ".H", false},
    {"MemHostGetFlags", ".H", false},
    {"Memcpy", "PP", false},
    {"MemcpyAsync", "PP.S", false},
    {"MemcpyPeer", "D.D", false},
    {"MemcpyPeerAsync", "D.D..S", false},
    {"MemcpyHtoD", "DP", false},
    {"MemcpyHtoDAsync", "DP.S", false},
    {"MemcpyDtoH", "PD", false},
    {"MemcpyDtoHAsync", "PD.S", false},
    {"MemcpyDtoD", "DD", false},
    {"MemcpyDtoDAsync", "DD.S", false},
    {"MemcpyDtoA", "A.D", false},
    {"MemcpyAtoD", "DA", false},
    {"MemcpyHtoA", "A.P", false},
    {"MemcpyAtoH", "PA", false},
    {"MemcpyHtoAAsync", "A.P.S", false},
    {"MemcpyAtoHAsync", "PA..S", false},
    {"MemcpyAtoA", "A.A", false},
    {"Memcpy2DAsync", ".S", false},
    {"Memcpy3DAsync", ".S", false},
    {"Memcpy3DPeerAsync", ".S", false},
    {"MemsetD8", "D", false},
    {"MemsetD16", "D", false},
    {"MemsetD32", "D", false},
    {"MemsetD2D8", "D", false},
    {"MemsetD2D16", "D", false},
    {"MemsetD2D32", "D", false},
    {"MemsetD8Async", "D,.S", false},
    {"MemsetD16Async", "D,.S", false},
    {"MemsetD32Async", "D,.S", false},
    {"MemsetD2D8Async", "D.,..S", false},
    {"MemsetD2D16Async", "D.,..S", false},
    {"MemsetD2D32Async", "D.,..S", false},
    {"ModuleLoad", "m", false},
    {"ModuleLoadData", "m", false},
    {"ModuleLoadDataEx", "m", false},
    {"ModuleLoadFatBinary", "m", false},
    {"ModuleUnload", "M", kFrees},
    {"ModuleGetFunction", "fM", false},
    {"ModuleGetFunctionCount", ".M", false},
    {"LaunchKernel", "F,,,,,,,S", false},
    {"LaunchCooperativeKernel", "F,,,,,,,S", false},
    {"LaunchKernelEx", "KF", false},
    {"FuncGetAttribute", ".,F", false},
    {"FuncSetAttribute", "F", false},
    {"FuncSetCacheConfig", "F", false},
    {"FuncGetModule", "lF", false},
    {"KernelGetFunction", "k", false},
    {"LibraryGetModule", "l", false},
    {"FuncGetName", ".F", false},
    {"FuncLoad", "F", false},
    {"OccupancyMaxActiveBlocksPerMultiprocessor", ".F", false},
    {"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", ".F", false},
    {"ArrayCreate", "a", false},
    {"Array3DCreate", "a", false},
    {"MipmappedArrayCreate", "a", false},
    {"ArrayDestroy", "A", kFrees},
    {"MipmappedArrayDestroy", "A", kFrees},
    {"MipmappedArrayGetLevel", "gA", false},
    {"ArrayGetDescriptor", ".A", false},
    {"Array3DGetDescriptor", ".A", false},
    {"TexObjectCreate", "t", false},
    {"TexObjectDestroy", "T", kFrees},
    {"TexObjectGetResourceDesc", ".T", false},
    {"TexObjectGetTextureDesc", ".T", false},
    {"SurfObjectCreate", "u", false},
    {"SurfObjectDestroy", "U", kFrees},
    {"SurfObjectGetResourceDesc", ".U", false},
};

constexpr ObjectRule kRuntimeRules[] = {
    {"StreamCreateWithFlags", "s", false},
    {"ExecutionCtxStreamCreate", "sC", false},
    {"EventCreateWithFlags", "e", false},
    {"Malloc", "dn", false},
    {"MallocManaged", "dn", false},
    {"MallocPitch", "d.nn", false},
    {"Malloc3D", "d", false},
    {"Free", "D", kFrees},
    {"MallocAsync", "pnS", false},
    {"MallocFromPoolAsync", "pn.S", false},
    {"FreeAsync", "DS", kFrees},
    {"GetSymbolAddress", "p", false},
    {"MemPoolImportPointer", "p", false},
    {"GetFuncBySymbol", "k", false},
    {"MallocHost", "hn", false},
    {"HostAlloc", "hn", false},
    {"FreeHost", "H", kFrees},
    {"HostGetDevicePointer", ".H", false},
    {"HostGetFlags", ".H", false},
    {"Memcpy", "PP", false},
    {"MemcpyAsync", "PP.,S", false},
    {"MemcpyPeer", "D,D", false},
    {"MemcpyPeerAsync", "D,D,.S", false},
    {"Memcpy2D", "P.P", false},
    {"Memcpy2DAsync", "P.P...,S", false},
    {"Memcpy3DAsync", ".S", false},
    {"Memcpy3DPeerAsync", ".S", false},
    {"Memcpy2DToArray", "A..P", false},
    {"Memcpy2DFromArray", "P.A", false},
    {"Memcpy2DToArrayAsync", "A..P...,S", false},
    {"Memcpy2DFromArrayAsync", "P.A....,S", false},
    {"MemcpyToSymbol", ".P", false},
    {"MemcpyFromSymbol", "P", false},
    {"MemcpyToSymbolAsync", ".P..,S", false},
    {"MemcpyFromSymbolAsync", "P...,S", false},
    {"Memset", "D", false},
    {"Memset2D", "D", false},
    {"MemsetAsync", "D,.S", false},
    {"Memset2DAsync", "D.,..S", false},
    {"LaunchKernel", ".33..S", false},
    {"LaunchCooperativeKernel", ".33..S", false},
    {"LaunchKernelExC", "K", false},
    {"MallocArray", "a", false},
    {"Malloc3DArray", "a", false},
    {"MallocMipmappedArray", "a", false},
    {"FreeArray", "A", kFrees},
    {"FreeMipmappedArray", "A", kFrees},
    {"GetMipmappedArrayLevel", "gA", false},
    {"ArrayGetInfo", "...A", false},
    {"CreateTextureObject", "t", false},
    {"DestroyTextureObject", "T", kFrees},
    {"GetTextureObjectResourceDesc", ".T", false},
    {"GetTextureObjectTextureDesc", ".T", false},
    {"CreateSurfaceObject", "u", false},
    {"DestroySurfaceObject", "U", kFrees},
    {"GetSurfaceObjectResourceDesc", ".U", false},
};

// Beginnings of the names of what may be added to these.
constexpr ObjectRule kFamilies[] = {
    {"StreamCreate", "s", false}, {"EventCreate", "e", false}, {"ModuleLoad", "m", false}};

template <std::size_t count>
const ObjectRule* FindIn(const ObjectRule (&rules)[count], const char* name) {
  for (const ObjectRule& rule : rules) {
    if (std::strcmp(rule.name, name) == 0) return &rule;
  }
  return nullptr;
}

}  // namespace

const ObjectRule* FindObjectRule(bool is_driver, const char* name) {
  const ObjectRule* rule = FindIn(kCommonRules, name);
  if (rule == nullptr) rule = is_driver ? FindIn(kDriverRules, name) : FindIn(kRuntimeRules, name);
  if (rule != nullptr) return rule;
  for (const ObjectRule& beginning : kFamilies) {
    if (StartsWith(name, beginning.name)) return &beginning;
  }
  return nullptr;
}

ObjectKind KindOfLetter(char letter) {
  switch (letter) {
    case 'S':
    case 's':
      return ObjectKind::kStream;
    case 'E':
    case 'e':
      return ObjectKind::kEvent;
    case 'M':
    case 'm':
    case 'l':
      return ObjectKind::kModule;
    case 'F':
    case 'f':
    case 'k':
      return ObjectKind::kFunction;
    case 'A':
    case 'a':
    case 'g':
      return ObjectKind::kArray;
    case 'T':
    case 't':
      return ObjectKind::kTexture;
    case 'U':
    case 'u':
      return ObjectKind::kSurface;
    case 'D':
    case 'd':
    case 'p':
      return ObjectKind::kMemory;
    case 'H':
    case 'h':
      return ObjectKind::kHostMemory;
    default:
      return ObjectKind::kNone;
  }
}

bool IsMadeAt(char letter) { return std::strchr("semfatudhplkg", letter) != nullptr; }

bool HasKnownOwner(char letter) { return std::strchr("plkg", letter) == nullptr; }

std::size_t SizeOfObjectArgument(char letter) { return letter == ',' ? 4 : letter == '3' ? 12 : 8; }

}  // namespace cuguest::audit
