// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// `ObjectDriver` is a `Driver` with the entries for what lives in a context: streams and events,
/// memory, device code, launches, graphs.
///
///   absl::StatusOr<const cuguest::ObjectDriver*> driver = cuguest::ObjectDriver::Get();
///   if (!driver.ok()) return driver.status();     // says what is missing
///   (*driver)->MemAlloc(&pointer, bytes);         // is cuMemAlloc_v2
///
/// Guards and shared contexts do without: a driver of which only a part is known, as of
/// cuguest_driver_adopt(), is enough for them.

#ifndef CUGUEST_OBJECTS_DRIVER_H_
#define CUGUEST_OBJECTS_DRIVER_H_

#include <cuda.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "cuguest/driver.h"
#include "cuguest/export.h"

/// X(Name, version, suffix, (parameters)), as in driver_table.h. Required: every one is in CUDA 7.0
/// or older.
#define CUGUEST_REQUIRED_OBJECT_ENTRIES(X)                                                         \
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
  X(StreamCreateWithPriority, 5050, "", (CUstream * stream, unsigned flags, int priority))         \
  X(StreamSynchronize, 2000, "", (CUstream stream))                                                \
  X(StreamQuery, 2000, "", (CUstream stream))                                                      \
  X(StreamWaitEvent, 3020, "", (CUstream stream, CUevent event, unsigned flags))                   \
  X(EventCreate, 2000, "", (CUevent * event, unsigned flags))                                      \
  X(EventDestroy, 4000, "_v2", (CUevent event))                                                    \
  X(EventRecord, 2000, "", (CUevent event, CUstream stream))                                       \
  X(EventQuery, 2000, "", (CUevent event))                                                         \
  X(EventSynchronize, 2000, "", (CUevent event))                                                   \
  X(EventElapsedTime, 2000, "", (float* milliseconds, CUevent start, CUevent end))                 \
  X(Array3DGetDescriptor, 3020, "_v2", (CUDA_ARRAY3D_DESCRIPTOR * descriptor, CUarray array))      \
  X(CtxEnablePeerAccess, 4000, "", (CUcontext peer, unsigned flags))                               \
  X(CtxDisablePeerAccess, 4000, "", (CUcontext peer))                                              \
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

/// Optional: null where the driver does not have them.
#define CUGUEST_OPTIONAL_OBJECT_ENTRIES(X)                                                         \
  X(DeviceGetP2PAttribute, 8000, "",                                                               \
    (int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to))                     \
  X(MemGetAccess, 10020, "",                                                                       \
    (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr pointer))               \
  X(MemAllocAsync, 11020, "", (CUdeviceptr * pointer, size_t bytes, CUstream stream))              \
  X(MemFreeAsync, 11020, "", (CUdeviceptr pointer, CUstream stream))                               \
  X(MemHostAlloc, 2020, "", (void** pointer, size_t bytes, unsigned flags))                        \
  X(MemFreeHost, 2000, "", (void* pointer))                                                        \
  X(MemHostRegister, 6050, "_v2", (void* pointer, size_t bytes, unsigned flags))                   \
  X(MemHostUnregister, 4000, "", (void* pointer))                                                  \
  X(IpcGetMemHandle, 4010, "", (CUipcMemHandle * handle, CUdeviceptr pointer))                     \
  X(IpcOpenMemHandle, 11000, "_v2",                                                                \
    (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags))                                \
  X(IpcCloseMemHandle, 4010, "", (CUdeviceptr pointer))                                            \
  X(IpcGetEventHandle, 4010, "", (CUipcEventHandle * handle, CUevent event))                       \
  X(IpcOpenEventHandle, 4010, "", (CUevent * event, CUipcEventHandle handle))                      \
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
  X(StreamGetCaptureInfo, 10010, "",                                                               \
    (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id))                            \
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

/// Stack:   no member touches it.
/// Threads: immutable; as Driver.
struct CUGUEST_API ObjectDriver : Driver {
  CUGUEST_HIDE ObjectDriver() = default;

#define CUGUEST_DECLARE_OBJECT_ENTRY(Name, version, symbol, parameters) \
  CUresult(CUDAAPI* Name) parameters = nullptr;
  CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_DECLARE_OBJECT_ENTRY)
  CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_DECLARE_OBJECT_ENTRY)
#undef CUGUEST_DECLARE_OBJECT_ENTRY

  /// Driver::Get(), and its further entries, which the first call looks up by its `lookup`.
  /// Errors: those of Driver::Get(), also kTooOld of these entries.
  /// Cost:   the first call asks for each entry; later ones read one atomic.
  [[nodiscard]] static absl::StatusOr<const ObjectDriver*> Get();

  /// The same, after Driver::GetInitialized().
  /// Errors: of both.
  /// Cost:   that of both.
  [[nodiscard]] static absl::StatusOr<const ObjectDriver*> GetInitialized();

  /// Fills `objects` with `driver` and its further entries, leaving the process's own table alone.
  /// For tests, and tools that look at several drivers: see Driver::Load().
  /// Errors: kUnimplemented, kTooOld; `objects` is then unchanged.
  /// Cost:   asks `driver` for each of its entries.
  static absl::Status Load(const Driver& driver, ObjectDriver* objects);

  using Driver::Require;
  /// As Driver::Require().
  template <typename Function>
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<Function> Require(
      Function ObjectDriver::*member) const {
    const Function function = this->*member;
    if (function != nullptr) return function;
    return MissingObjectEntry(static_cast<std::size_t>(
        reinterpret_cast<const char*>(&(this->*member)) - reinterpret_cast<const char*>(this)));
  }

 private:
  absl::Status MissingObjectEntry(std::size_t offset) const;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_DRIVER_H_
