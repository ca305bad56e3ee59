// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the simulated runtime that returns a cudaError_t, once. The exports
// (exports.cc), the call counters and the fault injection (entry.cc) are all made from
// these rows; a new part of the runtime is a new list here and a file with its functions.
//
//   X(Name, Function, Floor, (parameters), (arguments))
//   T(Name, twin, Function, Floor, (parameters), (arguments))
//
// The exported symbol is "cuda" Name; exports.cc holds the signature against the
// declaration in <cuda_runtime_api.h>. A T row also has a twin, for callers whose stream 0
// is the per-thread stream. `Floor`: see entry.h.
//
// What NVIDIA's exports and is not here (names.inc) is not modelled: see stubs.cc.

#ifndef CUDASIM_RUNTIME_ENTRY_LIST_H_
#define CUDASIM_RUNTIME_ENTRY_LIST_H_

// clang-format off
#define CUDASIM_RUNTIME_ERROR_ENTRIES(X, T)                                                    \
  X(GetLastError, GetLastError, kLastError, (), ())                                                \
  X(PeekAtLastError, PeekAtLastError, kLastError, (), ())

#define CUDASIM_RUNTIME_VERSION_ENTRIES(X, T)                                                  \
  X(RuntimeGetVersion, RuntimeGetVersion, kNothing, (int* version), (version))                     \
  X(DriverGetVersion, DriverGetVersion, kNothing,   (int* version), (version))                     \
  T(GetDriverEntryPoint, ptsz, GetDriverEntryPoint, kDriver, (const char* symbol,                  \
    void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* result),           \
    (symbol, function, flags, result))                                                             \
  T(GetDriverEntryPointByVersion, ptsz, GetDriverEntryPointByVersion, kDriver,                     \
    (const char* symbol, void** function, unsigned version, unsigned long long flags,              \
     cudaDriverEntryPointQueryResult* result), (symbol, function, version, flags, result))

#define CUDASIM_RUNTIME_DEVICE_ENTRIES(X, T)                                                   \
  X(GetDeviceCount, GetDeviceCount, kDriver, (int* count), (count))                                \
  X(GetDevice, GetDevice, kDriver, (int* device), (device))                                        \
  X(SetDevice, SetDevice, kDriver, (int device), (device))                                         \
  X(SetValidDevices, SetValidDevices, kDriver, (int* devices, int count), (devices, count))        \
  X(InitDevice, InitDevice, kDriver, (int device, unsigned device_flags, unsigned flags),          \
    (device, device_flags, flags))                                                                 \
  X(SetDeviceFlags, SetDeviceFlags, kDriver, (unsigned flags), (flags))                            \
  X(GetDeviceFlags, GetDeviceFlags, kDriver, (unsigned* flags), (flags))                           \
  X(DeviceGetAttribute, DeviceGetAttribute, kDriver, (int* value, cudaDeviceAttr attribute,        \
    int device), (value, attribute, device))                                                       \
  X(GetDeviceProperties, GetDeviceProperties, kDriver, (cudaDeviceProp* properties, int device),   \
    (properties, device))                                                                          \
  X(ChooseDevice, ChooseDevice, kDriver, (int* device, const cudaDeviceProp* properties),          \
    (device, properties))                                                                          \
  X(DeviceGetPCIBusId, DeviceGetPCIBusId, kDriver, (char* id, int size, int device),               \
    (id, size, device))                                                                            \
  X(DeviceGetByPCIBusId, DeviceGetByPCIBusId, kDriver, (int* device, const char* id),              \
    (device, id))                                                                                  \
  X(DeviceSynchronize, DeviceSynchronize, kContext, (), ())                                        \
  X(DeviceReset, DeviceReset, kDriver, (), ())                                                     \
  X(DeviceGetLimit, DeviceGetLimit, kContext, (size_t* value, cudaLimit limit), (value, limit))    \
  X(DeviceSetLimit, DeviceSetLimit, kContext, (cudaLimit limit, size_t value), (limit, value))     \
  X(DeviceGetCacheConfig, DeviceGetCacheConfig, kContext, (cudaFuncCache* config), (config))       \
  X(DeviceSetCacheConfig, DeviceSetCacheConfig, kContext, (cudaFuncCache config), (config))        \
  X(DeviceGetStreamPriorityRange, DeviceGetStreamPriorityRange, kContext, (int* least,             \
    int* greatest), (least, greatest))                                                             \
  X(CtxResetPersistingL2Cache, CtxResetPersistingL2Cache, kDriver, (), ())                         \
  X(DeviceCanAccessPeer, DeviceCanAccessPeer, kDriver, (int* can, int device, int peer),           \
    (can, device, peer))                                                                           \
  X(DeviceGetP2PAttribute, DeviceGetP2PAttribute, kDriver, (int* value,                            \
    cudaDeviceP2PAttr attribute, int from, int to), (value, attribute, from, to))                  \
  X(DeviceEnablePeerAccess, DeviceEnablePeerAccess, kContext, (int peer, unsigned flags),          \
    (peer, flags))                                                                                 \
  X(DeviceDisablePeerAccess, DeviceDisablePeerAccess, kContext, (int peer), (peer))

#define CUDASIM_RUNTIME_MEMORY_ENTRIES(X, T)                                                   \
  X(MemGetInfo, MemGetInfo, kContext, (size_t* free, size_t* total), (free, total))                \
  X(Malloc, Malloc, kDriver, (void** pointer, size_t bytes), (pointer, bytes))                     \
  X(MallocPitch, MallocPitch, kDriver, (void** pointer, size_t* pitch, size_t width,              \
    size_t height), (pointer, pitch, width, height))                                               \
  X(Malloc3D, Malloc3D, kContext, (cudaPitchedPtr* pointer, cudaExtent extent),                    \
    (pointer, extent))                                                                             \
  X(MallocManaged, MallocManaged, kDriver, (void** pointer, size_t bytes, unsigned flags),        \
    (pointer, bytes, flags))                                                                       \
  X(Free, Free, kContext, (void* pointer), (pointer))                                              \
  X(MallocHost, MallocHost, kContext, (void** pointer, size_t bytes), (pointer, bytes))            \
  X(HostAlloc, HostAlloc, kContext, (void** pointer, size_t bytes, unsigned flags),                \
    (pointer, bytes, flags))                                                                       \
  X(FreeHost, FreeHost, kContext, (void* pointer), (pointer))                                      \
  X(HostRegister, HostRegister, kContext, (void* pointer, size_t bytes, unsigned flags),           \
    (pointer, bytes, flags))                                                                       \
  X(HostUnregister, HostUnregister, kContext, (void* pointer), (pointer))                          \
  X(HostGetDevicePointer, HostGetDevicePointer, kDriver, (void** address, void* pointer,          \
    unsigned flags), (address, pointer, flags))                                                    \
  X(HostGetFlags, HostGetFlags, kContext, (unsigned* flags, void* pointer), (flags, pointer))      \
  X(PointerGetAttributes, PointerGetAttributes, kDriver, (cudaPointerAttributes* attributes,       \
    const void* pointer), (attributes, pointer))

#define CUDASIM_RUNTIME_POOL_ENTRIES(X, T)                                                     \
  T(MallocAsync, ptsz, MallocAsync, kDriver, (void** pointer, size_t bytes,                        \
    cudaStream_t stream), (pointer, bytes, stream))                                                \
  T(MallocFromPoolAsync, ptsz, MallocFromPoolAsync, kDriver, (void** pointer, size_t bytes,        \
    cudaMemPool_t pool, cudaStream_t stream), (pointer, bytes, pool, stream))                      \
  T(FreeAsync, ptsz, FreeAsync, kDriver, (void* pointer, cudaStream_t stream), (pointer, stream))  \
  X(MemPoolCreate, MemPoolCreate, kDriver, (cudaMemPool_t* pool,                                   \
    const cudaMemPoolProps* properties), (pool, properties))                                       \
  X(MemPoolDestroy, MemPoolDestroy, kDriver, (cudaMemPool_t pool), (pool))                         \
  X(MemPoolGetAttribute, MemPoolGetAttribute, kDriver, (cudaMemPool_t pool,                        \
    cudaMemPoolAttr attribute, void* value), (pool, attribute, value))                             \
  X(MemPoolSetAttribute, MemPoolSetAttribute, kDriver, (cudaMemPool_t pool,                        \
    cudaMemPoolAttr attribute, void* value), (pool, attribute, value))                             \
  X(MemPoolTrimTo, MemPoolTrimTo, kDriver, (cudaMemPool_t pool, size_t bytes), (pool, bytes))      \
  X(MemPoolGetAccess, MemPoolGetAccess, kDriver, (cudaMemAccessFlags* flags, cudaMemPool_t pool,   \
    cudaMemLocation* location), (flags, pool, location))                                           \
  X(MemPoolSetAccess, MemPoolSetAccess, kDriver, (cudaMemPool_t pool,                              \
    const cudaMemAccessDesc* access, size_t count), (pool, access, count))                         \
  X(MemPoolExportToShareableHandle, MemPoolExportToShareableHandle, kDriver, (void* handle,        \
    cudaMemPool_t pool, cudaMemAllocationHandleType type, unsigned flags),                         \
    (handle, pool, type, flags))                                                                   \
  X(MemPoolImportFromShareableHandle, MemPoolImportFromShareableHandle, kDriver,                   \
    (cudaMemPool_t* pool, void* handle, cudaMemAllocationHandleType type, unsigned flags),         \
    (pool, handle, type, flags))                                                                   \
  X(MemPoolExportPointer, MemPoolExportPointer, kDriver, (cudaMemPoolPtrExportData* data,          \
    void* pointer), (data, pointer))                                                               \
  X(MemPoolImportPointer, MemPoolImportPointer, kDriver, (void** pointer, cudaMemPool_t pool,      \
    cudaMemPoolPtrExportData* data), (pointer, pool, data))                                        \
  X(DeviceGetDefaultMemPool, DeviceGetDefaultMemPool, kDriver, (cudaMemPool_t* pool, int device),  \
    (pool, device))                                                                                \
  X(DeviceGetMemPool, DeviceGetMemPool, kDriver, (cudaMemPool_t* pool, int device),                \
    (pool, device))                                                                                \
  X(DeviceSetMemPool, DeviceSetMemPool, kDriver, (int device, cudaMemPool_t pool), (device, pool))

#define CUDASIM_RUNTIME_COPY_ENTRIES(X, T)                                                     \
  T(Memcpy, ptds, Memcpy, kContext, (void* to, const void* from, size_t bytes,                     \
    cudaMemcpyKind kind), (to, from, bytes, kind))                                                 \
  T(MemcpyAsync, ptsz, MemcpyAsync, kContext, (void* to, const void* from, size_t bytes,           \
    cudaMemcpyKind kind, cudaStream_t stream), (to, from, bytes, kind, stream))                    \
  X(MemcpyPeer, MemcpyPeer, kContext, (void* to, int to_device, const void* from,                  \
    int from_device, size_t bytes), (to, to_device, from, from_device, bytes))                     \
  X(MemcpyPeerAsync, MemcpyPeerAsync, kContext, (void* to, int to_device, const void* from,        \
    int from_device, size_t bytes, cudaStream_t stream), (to, to_device, from, from_device,        \
    bytes, stream))                                                                                \
  T(Memset, ptds, Memset, kContext, (void* to, int value, size_t bytes), (to, value, bytes))       \
  T(MemsetAsync, ptsz, MemsetAsync, kContext, (void* to, int value, size_t bytes,                  \
    cudaStream_t stream), (to, value, bytes, stream))

#define CUDASIM_RUNTIME_STREAM_ENTRIES(X, T)                                                   \
  X(StreamCreate, StreamCreate, kContext, (cudaStream_t* stream), (stream))                        \
  X(StreamCreateWithFlags, StreamCreateWithFlags, kContext, (cudaStream_t* stream,                 \
    unsigned flags), (stream, flags))                                                              \
  X(StreamCreateWithPriority, StreamCreateWithPriority, kContext, (cudaStream_t* stream,           \
    unsigned flags, int priority), (stream, flags, priority))                                      \
  X(StreamDestroy, StreamDestroy, kContext, (cudaStream_t stream), (stream))                       \
  T(StreamSynchronize, ptsz, StreamSynchronize, kContext, (cudaStream_t stream), (stream))         \
  T(StreamQuery, ptsz, StreamQuery, kContext, (cudaStream_t stream), (stream))                     \
  T(StreamWaitEvent, ptsz, StreamWaitEvent, kContext, (cudaStream_t stream, cudaEvent_t event,     \
    unsigned flags), (stream, event, flags))                                                       \
  T(StreamGetFlags, ptsz, StreamGetFlags, kContext, (cudaStream_t stream, unsigned* flags),        \
    (stream, flags))                                                                               \
  T(StreamGetPriority, ptsz, StreamGetPriority, kContext, (cudaStream_t stream, int* priority),    \
    (stream, priority))                                                                            \
  T(StreamGetId, ptsz, StreamGetId, kContext, (cudaStream_t stream, unsigned long long* id),       \
    (stream, id))                                                                                  \
  T(StreamGetDevice, ptsz, StreamGetDevice, kDriver, (cudaStream_t stream, int* device),           \
    (stream, device))                                                                              \
  T(StreamAddCallback, ptsz, StreamAddCallback, kContext, (cudaStream_t stream,                    \
    cudaStreamCallback_t callback, void* data, unsigned flags), (stream, callback, data, flags))   \
  T(LaunchHostFunc, ptsz, LaunchHostFunc, kContext, (cudaStream_t stream, cudaHostFn_t function,   \
    void* data), (stream, function, data))

#define CUDASIM_RUNTIME_EVENT_ENTRIES(X, T)                                                    \
  X(EventCreate, EventCreate, kContext, (cudaEvent_t* event), (event))                             \
  X(EventCreateWithFlags, EventCreateWithFlags, kContext, (cudaEvent_t* event, unsigned flags),    \
    (event, flags))                                                                                \
  X(EventDestroy, EventDestroy, kContext, (cudaEvent_t event), (event))                            \
  T(EventRecord, ptsz, EventRecord, kContext, (cudaEvent_t event, cudaStream_t stream),            \
    (event, stream))                                                                               \
  T(EventRecordWithFlags, ptsz, EventRecordWithFlags, kContext, (cudaEvent_t event,                \
    cudaStream_t stream, unsigned flags), (event, stream, flags))                                  \
  X(EventQuery, EventQuery, kDriver, (cudaEvent_t event), (event))                                 \
  X(EventSynchronize, EventSynchronize, kDriver, (cudaEvent_t event), (event))                     \
  X(EventElapsedTime, EventElapsedTime, kDriver, (float* milliseconds, cudaEvent_t start,          \
    cudaEvent_t end), (milliseconds, start, end))

#define CUDASIM_RUNTIME_IPC_ENTRIES(X, T)                                                      \
  X(IpcGetMemHandle, IpcGetMemHandle, kContext, (cudaIpcMemHandle_t* handle, void* pointer),       \
    (handle, pointer))                                                                             \
  X(IpcOpenMemHandle, IpcOpenMemHandle, kContext, (void** pointer, cudaIpcMemHandle_t handle,      \
    unsigned flags), (pointer, handle, flags))                                                     \
  X(IpcCloseMemHandle, IpcCloseMemHandle, kContext, (void* pointer), (pointer))                    \
  X(IpcGetEventHandle, IpcGetEventHandle, kContext, (cudaIpcEventHandle_t* handle,                 \
    cudaEvent_t event), (handle, event))                                                           \
  X(IpcOpenEventHandle, IpcOpenEventHandle, kContext, (cudaEvent_t* event,                         \
    cudaIpcEventHandle_t handle), (event, handle))

#define CUDASIM_RUNTIME_CAPTURE_ENTRIES(X, T)                                                  \
  X(ThreadExchangeStreamCaptureMode, ThreadExchangeStreamCaptureMode, kContext,                    \
    (cudaStreamCaptureMode* mode), (mode))                                                         \
  T(StreamIsCapturing, ptsz, StreamIsCapturing, kDriver, (cudaStream_t stream,                    \
    cudaStreamCaptureStatus* status), (stream, status))                                            \
  T(StreamBeginCapture, ptsz, StreamBeginCapture, kContext, (cudaStream_t stream,                  \
    cudaStreamCaptureMode mode), (stream, mode))                                                   \
  T(StreamEndCapture, ptsz, StreamEndCapture, kContext, (cudaStream_t stream,                      \
    cudaGraph_t* graph), (stream, graph))                                                          \
  T(StreamGetCaptureInfo, ptsz, StreamGetCaptureInfo, kContext, (cudaStream_t stream,              \
    cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,                   \
    const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* count),         \
    (stream, status, id, graph, dependencies, edges, count))

#define CUDASIM_RUNTIME_GRAPH_ENTRIES(X, T)                                                    \
  X(GraphCreate, GraphCreate, kContext, (cudaGraph_t* graph, unsigned flags), (graph, flags))      \
  X(GraphDestroy, GraphDestroy, kContext, (cudaGraph_t graph), (graph))                            \
  X(GraphGetNodes, GraphGetNodes, kContext, (cudaGraph_t graph, cudaGraphNode_t* nodes,            \
    size_t* count), (graph, nodes, count))                                                         \
  X(GraphNodeGetType, GraphNodeGetType, kContext, (cudaGraphNode_t node, cudaGraphNodeType* type), \
    (node, type))                                                                                  \
  X(GraphInstantiate, GraphInstantiate, kContext, (cudaGraphExec_t* exec, cudaGraph_t graph,       \
    unsigned long long flags), (exec, graph, flags))                                               \
  X(GraphInstantiateWithFlags, GraphInstantiate, kContext, (cudaGraphExec_t* exec,                 \
    cudaGraph_t graph, unsigned long long flags), (exec, graph, flags))                            \
  T(GraphLaunch, ptsz, GraphLaunch, kContext, (cudaGraphExec_t exec, cudaStream_t stream),         \
    (exec, stream))                                                                                \
  X(GraphExecUpdate, GraphExecUpdate, kContext, (cudaGraphExec_t exec, cudaGraph_t graph,          \
    cudaGraphExecUpdateResultInfo* info), (exec, graph, info))                                     \
  X(GraphExecDestroy, GraphExecDestroy, kContext, (cudaGraphExec_t exec), (exec))

#define CUDASIM_RUNTIME_AREA_ENTRIES(X, T)                                                     \
  T(Memcpy2D, ptds, Memcpy2D, kContext, (void* to, size_t to_pitch, const void* from,              \
    size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind), (to, to_pitch, from,     \
    from_pitch, width, height, kind))                                                              \
  T(Memcpy2DAsync, ptsz, Memcpy2DAsync, kContext, (void* to, size_t to_pitch, const void* from,    \
    size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream),     \
    (to, to_pitch, from, from_pitch, width, height, kind, stream))                                 \
  T(Memcpy2DToArray, ptds, Memcpy2DToArray, kContext, (cudaArray_t to, size_t x, size_t y,         \
    const void* from, size_t pitch, size_t width, size_t height, cudaMemcpyKind kind), (to, x, y,  \
    from, pitch, width, height, kind))                                                             \
  T(Memcpy2DToArrayAsync, ptsz, Memcpy2DToArrayAsync, kContext, (cudaArray_t to, size_t x,         \
    size_t y, const void* from, size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,    \
    cudaStream_t stream), (to, x, y, from, pitch, width, height, kind, stream))                    \
  T(Memcpy2DFromArray, ptds, Memcpy2DFromArray, kContext, (void* to, size_t pitch,                 \
    cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height, cudaMemcpyKind kind), \
    (to, pitch, from, x, y, width, height, kind))                                                  \
  T(Memcpy2DFromArrayAsync, ptsz, Memcpy2DFromArrayAsync, kContext, (void* to, size_t pitch,       \
    cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height, cudaMemcpyKind kind,  \
    cudaStream_t stream), (to, pitch, from, x, y, width, height, kind, stream))                    \
  T(Memcpy3D, ptds, Memcpy3D, kContext, (const cudaMemcpy3DParms* parameters), (parameters))       \
  T(Memcpy3DAsync, ptsz, Memcpy3DAsync, kContext, (const cudaMemcpy3DParms* parameters,            \
    cudaStream_t stream), (parameters, stream))                                                    \
  T(Memset2D, ptds, Memset2D, kContext, (void* to, size_t pitch, int value, size_t width,          \
    size_t height), (to, pitch, value, width, height))                                             \
  T(Memset2DAsync, ptsz, Memset2DAsync, kContext, (void* to, size_t pitch, int value,              \
    size_t width, size_t height, cudaStream_t stream), (to, pitch, value, width, height, stream))

#define CUDASIM_RUNTIME_ARRAY_ENTRIES(X, T)                                                    \
  X(MallocArray, MallocArray, kContext, (cudaArray_t* array, const cudaChannelFormatDesc* channel, \
    size_t width, size_t height, unsigned flags), (array, channel, width, height, flags))          \
  X(Malloc3DArray, Malloc3DArray, kContext, (cudaArray_t* array,                                   \
    const cudaChannelFormatDesc* channel, cudaExtent extent, unsigned flags), (array, channel,     \
    extent, flags))                                                                                \
  X(MallocMipmappedArray, MallocMipmappedArray, kContext, (cudaMipmappedArray_t* array,            \
    const cudaChannelFormatDesc* channel, cudaExtent extent, unsigned levels, unsigned flags),     \
    (array, channel, extent, levels, flags))                                                       \
  X(GetMipmappedArrayLevel, GetMipmappedArrayLevel, kContext, (cudaArray_t* array,                 \
    cudaMipmappedArray_const_t mipmapped, unsigned level), (array, mipmapped, level))              \
  X(FreeArray, FreeArray, kContext, (cudaArray_t array), (array))                                  \
  X(FreeMipmappedArray, FreeMipmappedArray, kContext, (cudaMipmappedArray_t array), (array))       \
  X(ArrayGetInfo, ArrayGetInfo, kDriver, (cudaChannelFormatDesc* channel, cudaExtent* extent,      \
    unsigned* flags, cudaArray_t array), (channel, extent, flags, array))                          \
  X(GetChannelDesc, GetChannelDesc, kContext, (cudaChannelFormatDesc* channel,                     \
    cudaArray_const_t array), (channel, array))

#define CUDASIM_RUNTIME_TEXTURE_ENTRIES(X, T)                                                  \
  X(CreateTextureObject, CreateTextureObject, kDriver, (cudaTextureObject_t* object,               \
    const cudaResourceDesc* resource, const cudaTextureDesc* texture,                              \
    const cudaResourceViewDesc* view), (object, resource, texture, view))                          \
  X(DestroyTextureObject, DestroyTextureObject, kContext, (cudaTextureObject_t object), (object))  \
  X(GetTextureObjectResourceDesc, GetTextureObjectResourceDesc, kContext,                          \
    (cudaResourceDesc* resource, cudaTextureObject_t object), (resource, object))                  \
  X(GetTextureObjectTextureDesc, GetTextureObjectTextureDesc, kContext,                            \
    (cudaTextureDesc* texture, cudaTextureObject_t object), (texture, object))                     \
  X(GetTextureObjectResourceViewDesc, GetTextureObjectResourceViewDesc, kContext,                  \
    (cudaResourceViewDesc* view, cudaTextureObject_t object), (view, object))                      \
  X(CreateSurfaceObject, CreateSurfaceObject, kDriver, (cudaSurfaceObject_t* object,               \
    const cudaResourceDesc* resource), (object, resource))                                         \
  X(DestroySurfaceObject, DestroySurfaceObject, kContext, (cudaSurfaceObject_t object), (object))  \
  X(GetSurfaceObjectResourceDesc, GetSurfaceObjectResourceDesc, kContext,                          \
    (cudaResourceDesc* resource, cudaSurfaceObject_t object), (resource, object))

#define CUDASIM_RUNTIME_LAUNCH_ENTRIES(X, T)                                                   \
  T(LaunchKernel, ptsz, LaunchKernel, kContext, (const void* symbol, dim3 grid, dim3 block,        \
    void** arguments, size_t shared_bytes, cudaStream_t stream), (symbol, grid, block, arguments,  \
    shared_bytes, stream))                                                                         \
  T(LaunchKernelExC, ptsz, LaunchKernelExC, kContext, (const cudaLaunchConfig_t* config,           \
    const void* symbol, void** arguments), (config, symbol, arguments))                            \
  X(FuncGetAttributes, FuncGetAttributes, kContext, (cudaFuncAttributes* attributes,               \
    const void* symbol), (attributes, symbol))                                                     \
  X(FuncGetName, FuncGetName, kDriver, (const char** name, const void* symbol), (name, symbol))    \
  X(GetFuncBySymbol, GetFuncBySymbol, kContext, (cudaFunction_t* function, const void* symbol),    \
    (function, symbol))                                                                            \
  X(GetKernel, GetKernel, kDriver, (cudaKernel_t* kernel, const void* symbol), (kernel, symbol))   \
  X(LibraryLoadData, LibraryLoadData, kDriver, (cudaLibrary_t* library, const void* code,          \
    cudaJitOption* jit_options, void** jit_values, unsigned jit_count, cudaLibraryOption* options, \
    void** values, unsigned count), (library, code, jit_options, jit_values, jit_count, options,   \
    values, count))                                                                                \
  X(LibraryUnload, LibraryUnload, kDriver, (cudaLibrary_t library), (library))                     \
  X(LibraryGetKernel, LibraryGetKernel, kDriver, (cudaKernel_t* kernel, cudaLibrary_t library,     \
    const char* name), (kernel, library, name))                                                    \
  X(LibraryGetKernelCount, LibraryGetKernelCount, kDriver, (unsigned* count,                       \
    cudaLibrary_t library), (count, library))                                                      \
  X(LibraryEnumerateKernels, LibraryEnumerateKernels, kDriver, (cudaKernel_t* kernels,             \
    unsigned count, cudaLibrary_t library), (kernels, count, library))

// From CUDA 13.1 on.
#define CUDASIM_RUNTIME_EXECUTION_ENTRIES(X, T)                                                \
  X(DeviceGetExecutionCtx, DeviceGetExecutionCtx, kExecution, (cudaExecutionContext_t* context,    \
    int device), (context, device))                                                                \
  X(GreenCtxCreate, GreenCtxCreate, kExecution, (cudaExecutionContext_t* context,                  \
    cudaDevResourceDesc_t description, int device, unsigned flags),                                \
    (context, description, device, flags))                                                         \
  X(ExecutionCtxDestroy, ExecutionCtxDestroy, kExecution, (cudaExecutionContext_t context),        \
    (context))                                                                                     \
  X(ExecutionCtxGetDevResource, ExecutionCtxGetDevResource, kExecution,                            \
    (cudaExecutionContext_t context, cudaDevResource* resource, cudaDevResourceType type),         \
    (context, resource, type))                                                                     \
  X(ExecutionCtxGetDevice, ExecutionCtxGetDevice, kExecution, (int* device,                        \
    cudaExecutionContext_t context), (device, context))                                            \
  X(ExecutionCtxGetId, ExecutionCtxGetId, kExecution, (cudaExecutionContext_t context,             \
    unsigned long long* id), (context, id))                                                        \
  X(ExecutionCtxRecordEvent, ExecutionCtxRecordEvent, kExecution,                                  \
    (cudaExecutionContext_t context, cudaEvent_t event), (context, event))                         \
  X(ExecutionCtxStreamCreate, ExecutionCtxStreamCreate, kExecution, (cudaStream_t* stream,         \
    cudaExecutionContext_t context, unsigned flags, int priority),                                 \
    (stream, context, flags, priority))                                                            \
  X(ExecutionCtxSynchronize, ExecutionCtxSynchronize, kExecution,                                  \
    (cudaExecutionContext_t context), (context))                                                   \
  X(ExecutionCtxWaitEvent, ExecutionCtxWaitEvent, kExecution, (cudaExecutionContext_t context,     \
    cudaEvent_t event), (context, event))                                                          \
  X(DeviceGetDevResource, DeviceGetDevResource, kExecution, (int device,                           \
    cudaDevResource* resource, cudaDevResourceType type), (device, resource, type))                \
  X(DevSmResourceSplitByCount, DevSmResourceSplitByCount, kExecution, (cudaDevResource* result,    \
    unsigned* count, const cudaDevResource* input, cudaDevResource* remaining, unsigned flags,     \
    unsigned least), (result, count, input, remaining, flags, least))                              \
  X(DevSmResourceSplit, DevSmResourceSplit, kExecution, (cudaDevResource* result, unsigned count,  \
    const cudaDevResource* input, cudaDevResource* remainder, unsigned flags,                      \
    cudaDevSmResourceGroupParams* groups), (result, count, input, remainder, flags, groups))       \
  X(DevResourceGenerateDesc, DevResourceGenerateDesc, kExecution,                                  \
    (cudaDevResourceDesc_t* description, cudaDevResource* resources, unsigned count),              \
    (description, resources, count))                                                               \
  T(StreamGetDevResource, ptsz, StreamGetDevResource, kExecution, (cudaStream_t stream,            \
    cudaDevResource* resource, cudaDevResourceType type), (stream, resource, type))

#define CUDASIM_RUNTIME_ENTRIES(X, T)   \
  CUDASIM_RUNTIME_ERROR_ENTRIES(X, T)   \
  CUDASIM_RUNTIME_VERSION_ENTRIES(X, T) \
  CUDASIM_RUNTIME_DEVICE_ENTRIES(X, T)  \
  CUDASIM_RUNTIME_MEMORY_ENTRIES(X, T)  \
  CUDASIM_RUNTIME_POOL_ENTRIES(X, T)    \
  CUDASIM_RUNTIME_COPY_ENTRIES(X, T)    \
  CUDASIM_RUNTIME_STREAM_ENTRIES(X, T)  \
  CUDASIM_RUNTIME_EVENT_ENTRIES(X, T)   \
  CUDASIM_RUNTIME_IPC_ENTRIES(X, T)     \
  CUDASIM_RUNTIME_CAPTURE_ENTRIES(X, T) \
  CUDASIM_RUNTIME_GRAPH_ENTRIES(X, T)   \
  CUDASIM_RUNTIME_AREA_ENTRIES(X, T)    \
  CUDASIM_RUNTIME_ARRAY_ENTRIES(X, T)   \
  CUDASIM_RUNTIME_TEXTURE_ENTRIES(X, T) \
  CUDASIM_RUNTIME_LAUNCH_ENTRIES(X, T)  \
  CUDASIM_RUNTIME_EXECUTION_ENTRIES(X, T)
// clang-format on

#endif  // CUDASIM_RUNTIME_ENTRY_LIST_H_
