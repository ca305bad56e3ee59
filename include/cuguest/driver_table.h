// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// `DriverTable` holds the addresses of driver functions. driver.h resolves it; this header brings
/// <cuda.h> and nothing else, so that code without Abseil can use the table, too.
///
/// Entries carry the driver's name without "cu", because <cuda.h> defines macros over the names
/// (cuMemAlloc is cuMemAlloc_v2, or its per-thread-stream twin, depending on the including file),
/// and a member whose name changes from one file to the next breaks the one-definition rule.

#ifndef CUGUEST_DRIVER_TABLE_H_
#define CUGUEST_DRIVER_TABLE_H_

#include <cuda.h>

#include <cstddef>

#include "cuguest/export.h"
#include "cuguest/internal/toolkit.h"

/// Note [The version beside each entry]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// cuGetProcAddress(name, version) answers with the newest signature that is not newer than
/// `version`, and one name can mean two signatures: "cuCtxGetDevice" takes one argument at 12000
/// and two at 13000. So each entry is asked for by the version of the signature written here, which
/// is that of the PFN_cu<Name>_v<Version> typedef of <cudaTypedefs.h>: never CUDA_VERSION, never
/// the driver's.
///
/// X(Name, version, suffix, (parameters)): `version` is the API version that introduced the
/// signature (11040 is CUDA 11.4); a driver older than cuGetProcAddress (before CUDA 11.3) exports
/// it as "cu", the name and `suffix`.

/// Required: every one is in CUDA 7.0 or older. A driver without one is too old.
/// (cuDevicePrimaryCtxRelease is too, but is asked for by its later version, which has the same
/// signature and reports a release that no retain covers; the first one does not.)
#define CUGUEST_REQUIRED_ENTRIES(X)                                                                \
  X(Init, 2000, "", (unsigned flags))                                                              \
  X(DriverGetVersion, 2020, "", (int* version))                                                    \
  X(GetErrorName, 6000, "", (CUresult code, const char** name))                                    \
  X(GetErrorString, 6000, "", (CUresult code, const char** text))                                  \
  X(DeviceGetCount, 2000, "", (int* count))                                                        \
  X(DeviceGet, 2000, "", (CUdevice * device, int ordinal))                                         \
  X(DeviceGetName, 2000, "", (char* name, int size, CUdevice device))                              \
  X(DeviceGetPCIBusId, 4010, "", (char* id, int size, CUdevice device))                            \
  X(DeviceGetAttribute, 2000, "", (int* value, CUdevice_attribute attribute, CUdevice device))     \
  X(DeviceTotalMem, 3020, "_v2", (size_t * bytes, CUdevice device))                                \
  X(CtxCreate, 3020, "_v2", (CUcontext * context, unsigned flags, CUdevice device))                \
  X(CtxDestroy, 4000, "_v2", (CUcontext context))                                                  \
  X(CtxPushCurrent, 4000, "_v2", (CUcontext context))                                              \
  X(CtxPopCurrent, 4000, "_v2", (CUcontext * context))                                             \
  X(CtxSetCurrent, 4000, "", (CUcontext context))                                                  \
  X(CtxGetCurrent, 4000, "", (CUcontext * context))                                                \
  X(CtxGetDevice, 2000, "", (CUdevice * device))                                                   \
  X(CtxGetFlags, 7000, "", (unsigned* flags))                                                      \
  X(CtxGetApiVersion, 3020, "", (CUcontext context, unsigned* version))                            \
  X(CtxSynchronize, 2000, "", (void))                                                              \
  X(DevicePrimaryCtxRetain, 7000, "", (CUcontext * context, CUdevice device))                      \
  X(DevicePrimaryCtxRelease, 11000, "", (CUdevice device))                                         \
  X(DevicePrimaryCtxGetState, 7000, "", (CUdevice device, unsigned* flags, int* active))           \
  X(MemAlloc, 3020, "_v2", (CUdeviceptr * pointer, size_t bytes))                                  \
  X(MemFree, 3020, "_v2", (CUdeviceptr pointer))                                                   \
  X(MemcpyHtoD, 3020, "_v2", (CUdeviceptr to, const void* from, size_t bytes))                     \
  X(MemcpyDtoH, 3020, "_v2", (void* to, CUdeviceptr from, size_t bytes))                           \
  X(MemcpyDtoD, 3020, "_v2", (CUdeviceptr to, CUdeviceptr from, size_t bytes))                     \
  X(MemsetD8, 3020, "_v2", (CUdeviceptr to, unsigned char value, size_t bytes))                    \
  X(MemsetD16, 3020, "_v2", (CUdeviceptr to, unsigned short value, size_t count))                  \
  X(MemsetD32, 3020, "_v2", (CUdeviceptr to, unsigned value, size_t count))                        \
  X(MemcpyHtoDAsync, 3020, "_v2",                                                                  \
    (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                             \
  X(MemcpyDtoHAsync, 3020, "_v2", (void* to, CUdeviceptr from, size_t bytes, CUstream stream))     \
  X(MemcpyDtoDAsync, 3020, "_v2",                                                                  \
    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                             \
  X(MemsetD8Async, 3020, "", (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)) \
  X(MemsetD16Async, 3020, "",                                                                      \
    (CUdeviceptr to, unsigned short value, size_t count, CUstream stream))                         \
  X(MemsetD32Async, 3020, "", (CUdeviceptr to, unsigned value, size_t count, CUstream stream))     \
  X(StreamCreate, 2000, "", (CUstream * stream, unsigned flags))                                   \
  X(StreamCreateWithPriority, 5050, "", (CUstream * stream, unsigned flags, int priority))         \
  X(StreamDestroy, 4000, "_v2", (CUstream stream))                                                 \
  X(StreamSynchronize, 2000, "", (CUstream stream))                                                \
  X(StreamQuery, 2000, "", (CUstream stream))                                                      \
  X(StreamWaitEvent, 3020, "", (CUstream stream, CUevent event, unsigned flags))                   \
  X(EventCreate, 2000, "", (CUevent * event, unsigned flags))                                      \
  X(EventDestroy, 4000, "_v2", (CUevent event))                                                    \
  X(EventRecord, 2000, "", (CUevent event, CUstream stream))                                       \
  X(EventQuery, 2000, "", (CUevent event))                                                         \
  X(EventSynchronize, 2000, "", (CUevent event))                                                   \
  X(EventElapsedTime, 2000, "", (float* milliseconds, CUevent start, CUevent end))                 \
  X(PointerGetAttribute, 4000, "",                                                                 \
    (void* value, CUpointer_attribute attribute, CUdeviceptr pointer))                             \
  X(PointerGetAttributes, 7000, "",                                                                \
    (unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer))         \
  X(Array3DGetDescriptor, 3020, "_v2", (CUDA_ARRAY3D_DESCRIPTOR * descriptor, CUarray array))      \
  X(DeviceCanAccessPeer, 4000, "", (int* can, CUdevice device, CUdevice peer))                     \
  X(CtxEnablePeerAccess, 4000, "", (CUcontext peer, unsigned flags))                               \
  X(CtxDisablePeerAccess, 4000, "", (CUcontext peer))                                              \
  X(ModuleLoadData, 2000, "", (CUmodule * module, const void* image))                              \
  X(ModuleLoadDataEx, 2010, "",                                                                    \
    (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values))  \
  X(ModuleUnload, 2000, "", (CUmodule module))                                                     \
  X(ModuleGetFunction, 2000, "", (CUfunction * function, CUmodule module, const char* name))       \
  X(ModuleGetGlobal, 3020, "_v2",                                                                  \
    (CUdeviceptr * pointer, size_t * bytes, CUmodule module, const char* name))                    \
  X(FuncGetAttribute, 2020, "", (int* value, CUfunction_attribute attribute, CUfunction function)) \
  X(LinkCreate, 6050, "_v2",                                                                       \
    (unsigned count, CUjit_option* options, void** values, CUlinkState* state))                    \
  X(LinkAddData, 6050, "_v2",                                                                      \
    (CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,            \
     unsigned count, CUjit_option* options, void** values))                                        \
  X(LinkComplete, 5050, "", (CUlinkState state, void** image, size_t* size))                       \
  X(LinkDestroy, 5050, "", (CUlinkState state))                                                    \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, 6050, "",                                           \
    (int* blocks, CUfunction function, int block, size_t shared_bytes))                            \
  X(OccupancyMaxPotentialBlockSize, 6050, "",                                                      \
    (int* min_grid, int* block, CUfunction function, CUoccupancyB2DSize shared_bytes_of_block,     \
     size_t shared_bytes, int max_block))                                                          \
  X(LaunchKernel, 4000, "",                                                                        \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                   \
     void** parameters, void** extra))

/// Optional: null in the table where the driver does not have them. Driver::Require says which
/// driver does.
#define CUGUEST_OPTIONAL_ENTRIES(X)                                                                \
  X(DeviceGetUuid, 9020, "", (CUuuid * uuid, CUdevice device))                                     \
  X(DeviceGetP2PAttribute, 8000, "",                                                               \
    (int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to))                     \
  X(MemGetAccess, 10020, "",                                                                       \
    (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr pointer))               \
  X(MemAllocAsync, 11020, "", (CUdeviceptr * pointer, size_t bytes, CUstream stream))              \
  X(MemFreeAsync, 11020, "", (CUdeviceptr pointer, CUstream stream))                               \
  X(MemGetInfo, 3020, "_v2", (size_t * free, size_t * total))                                      \
  X(MemHostAlloc, 2020, "", (void** pointer, size_t bytes, unsigned flags))                        \
  X(MemFreeHost, 2000, "", (void* pointer))                                                        \
  X(MemHostRegister, 6050, "_v2", (void* pointer, size_t bytes, unsigned flags))                   \
  X(MemHostUnregister, 4000, "", (void* pointer))                                                  \
  X(Memcpy3D, 3020, "_v2", (const CUDA_MEMCPY3D* copy))                                            \
  X(Memcpy3DAsync, 3020, "_v2", (const CUDA_MEMCPY3D* copy, CUstream stream))                      \
  X(Array3DCreate, 3020, "_v2", (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR* shape))           \
  X(ArrayDestroy, 2000, "", (CUarray array))                                                       \
  X(TexObjectCreate, 5000, "",                                                                     \
    (CUtexObject * texture, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampling, \
     const CUDA_RESOURCE_VIEW_DESC* view))                                                         \
  X(TexObjectDestroy, 5000, "", (CUtexObject texture))                                             \
  X(SurfObjectCreate, 5000, "", (CUsurfObject * surface, const CUDA_RESOURCE_DESC* resource))      \
  X(SurfObjectDestroy, 5000, "", (CUsurfObject surface))                                           \
  X(StreamGetCtx, 9020, "", (CUstream stream, CUcontext * context))                                \
  X(StreamIsCapturing, 10000, "", (CUstream stream, CUstreamCaptureStatus * status))               \
  X(StreamGetCaptureInfo, 10010, "",                                                               \
    (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id))                            \
  X(ThreadExchangeStreamCaptureMode, 10010, "", (CUstreamCaptureMode * mode))                      \
  X(StreamBeginCapture, 10010, "_v2", (CUstream stream, CUstreamCaptureMode mode))                 \
  X(StreamEndCapture, 10000, "", (CUstream stream, CUgraph * graph))                               \
  X(GraphCreate, 10000, "", (CUgraph * graph, unsigned flags))                                     \
  X(GraphDestroy, 10000, "", (CUgraph graph))                                                      \
  X(GraphAddKernelNode, 12000, "_v2",                                                              \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count,             \
     const CUDA_KERNEL_NODE_PARAMS_v2* params))                                                    \
  X(GraphKernelNodeSetAttribute, 11000, "",                                                        \
    (CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value))          \
  X(GraphDestroyNode, 10000, "", (CUgraphNode node))                                               \
  X(GraphInstantiateWithFlags, 11040, "",                                                          \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                           \
  X(GraphExecKernelNodeSetParams, 12000, "_v2",                                                    \
    (CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params))          \
  X(GraphLaunch, 10000, "", (CUgraphExec executable, CUstream stream))                             \
  X(GraphExecDestroy, 10000, "", (CUgraphExec executable))                                         \
  X(CtxGetId, 12000, "", (CUcontext context, unsigned long long* id))                              \
  X(CtxGetExecAffinity, 11040, "", (CUexecAffinityParam * affinity, CUexecAffinityType type))      \
  X(CtxGetDevResource, 12040, "",                                                                  \
    (CUcontext context, CUdevResource * resource, CUdevResourceType type))                         \
  X(DeviceGetDevResource, 12040, "",                                                               \
    (CUdevice device, CUdevResource * resource, CUdevResourceType type))                           \
  X(DevSmResourceSplitByCount, 12040, "",                                                          \
    (CUdevResource * groups, unsigned* count, const CUdevResource* input, CUdevResource* rest,     \
     unsigned flags, unsigned least))                                                              \
  X(DevSmResourceSplit, 13010, "",                                                                 \
    (CUdevResource * groups, unsigned count, const CUdevResource* input, CUdevResource* rest,      \
     unsigned flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS* parameters))                                 \
  X(DevResourceGenerateDesc, 12040, "",                                                            \
    (CUdevResourceDesc * description, CUdevResource * resources, unsigned count))                  \
  X(GreenCtxCreate, 12040, "",                                                                     \
    (CUgreenCtx * green, CUdevResourceDesc description, CUdevice device, unsigned flags))          \
  X(GreenCtxDestroy, 12040, "", (CUgreenCtx green))                                                \
  X(CtxFromGreenCtx, 12040, "", (CUcontext * context, CUgreenCtx green))                           \
  X(StreamGetGreenCtx, 12040, "", (CUstream stream, CUgreenCtx * green))                           \
  X(ModuleGetLoadingMode, 11070, "", (CUmoduleLoadingMode * mode))                                 \
  X(FuncGetModule, 11000, "", (CUmodule * module, CUfunction function))                            \
  X(FuncGetName, 12030, "", (const char** name, CUfunction function))                              \
  X(FuncGetParamInfo, 12040, "",                                                                   \
    (CUfunction function, size_t index, size_t * offset, size_t * size))                           \
  X(FuncIsLoaded, 12040, "", (CUfunctionLoadingState * state, CUfunction function))                \
  X(FuncLoad, 12040, "", (CUfunction function))                                                    \
  X(FuncSetAttribute, 9000, "", (CUfunction function, CUfunction_attribute attribute, int value))  \
  X(LibraryLoadData, 12000, "",                                                                    \
    (CUlibrary * library, const void* image, CUjit_option* options, void** values, unsigned count, \
     CUlibraryOption* library_options, void** library_values, unsigned library_count))             \
  X(LibraryUnload, 12000, "", (CUlibrary library))                                                 \
  X(LibraryGetKernel, 12000, "", (CUkernel * kernel, CUlibrary library, const char* name))         \
  X(LibraryGetKernelCount, 12040, "", (unsigned* count, CUlibrary library))                        \
  X(LibraryEnumerateKernels, 12040, "", (CUkernel * kernels, unsigned count, CUlibrary library))   \
  X(LibraryGetModule, 12000, "", (CUmodule * module, CUlibrary library))                           \
  X(LibraryGetGlobal, 12000, "",                                                                   \
    (CUdeviceptr * pointer, size_t * bytes, CUlibrary library, const char* name))                  \
  X(KernelGetFunction, 12000, "", (CUfunction * function, CUkernel kernel))                        \
  X(KernelGetLibrary, 12050, "", (CUlibrary * library, CUkernel kernel))                           \
  X(KernelGetName, 12030, "", (const char** name, CUkernel kernel))                                \
  X(LaunchKernelEx, 11060, "",                                                                     \
    (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))          \
  X(OccupancyAvailableDynamicSMemPerBlock, 10020, "",                                              \
    (size_t * shared_bytes, CUfunction function, int blocks, int block))                           \
  X(OccupancyMaxActiveClusters, 11070, "",                                                         \
    (int* clusters, CUfunction function, const CUlaunchConfig* config))

CUGUEST_BEGIN_NAMESPACE

/// What a host answers in the driver's stead (see Driver::Adopt): the address of function `name`
/// ("cuMemAlloc") with the signature that API version `version` (3020) introduced, and for
/// functions that take a stream the one whose stream 0 is the legacy default stream; nullptr if
/// there is none. As cuGetProcAddress with CU_GET_PROC_ADDRESS_LEGACY_STREAM.
using DriverLookup = void* (*)(const char* name, int version, void* user);

struct DriverTable {
  /// Why there is no usable driver. Each is a distinct status; see `Driver::Get`,
  /// `Driver::GetInitialized` and `Driver::Require`.
  enum class Problem {
    kNone,
    kNoLibrary,     ///< libcuda.so.1 could not be loaded
    kStub,          ///< it is the toolkit's link-time stub: every call gives 34
    kTooOld,        ///< a required entry is missing
    kEntryMissing,  ///< an optional entry was asked for and is missing
    kForkedChild,   ///< this process was forked from one that had initialised CUDA
    kNoDevice,      ///< the driver works and sees no device
    kOther,         ///< cuInit failed for another reason; the status carries the code
    kInUse,         ///< Driver::Adopt came after the first use
  };

  CUGUEST_HIDE DriverTable() = default;

#define CUGUEST_DECLARE_ENTRY(Name, version, symbol, parameters) \
  CUresult(CUDAAPI* Name) parameters = nullptr;
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_DECLARE_ENTRY)
  CUGUEST_OPTIONAL_ENTRIES(CUGUEST_DECLARE_ENTRY)
#undef CUGUEST_DECLARE_ENTRY

  /// The API version the driver reports (13000 is CUDA 13.0).
  int version = 0;

  /// Where the entries came from, and where Driver::Find looks.
  DriverLookup lookup = nullptr;
  void* lookup_user = nullptr;

  /// cuCtxGetDevice of CUDA 13.0, which takes the context and has the name of the entry above;
  /// null on an older driver. The driver reads the context's memory: do not name a destroyed one.
  internal::GetDeviceOf CtxGetDeviceOf = nullptr;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_DRIVER_TABLE_H_
