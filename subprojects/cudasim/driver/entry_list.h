// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every entry of the simulated driver, once. The exports (exports.cc), the table
// behind cuGetProcAddress (proc_address.cc), the call counters and the fault
// injection (entry.cc) are all made from these rows; a new part of the driver is
// a new list here and a file with its functions.
//
//   X(Base, version, suffix, Function, Floor, (parameters), (arguments))
//   T(Base, version, suffix, twin_version, twin_suffix, Function, Floor, (...), (...))
//
// The exported symbol is "cu" Base suffix; `version` is the API version that
// introduced this signature (exports.cc holds each row against the typedef
// PFN_cu<Base>_v<version> of <cudaTypedefs.h>). A T row also has a twin, for
// callers whose stream 0 is the per-thread stream. `Floor`: see entry.h.
//
// What a driver exports and the simulation does not model has its rows in unmodelled_list.h.

#ifndef CUDASIM_DRIVER_ENTRY_LIST_H_
#define CUDASIM_DRIVER_ENTRY_LIST_H_

#include "driver/unmodelled_list.h"

// clang-format off
#define CUDASIM_PROCESS_ENTRIES(X, T)                                                          \
  X(Init, 2000, "", Init, kOwn, (unsigned flags), (flags))                                         \
  X(DriverGetVersion, 2020, "", DriverGetVersion, kAlways, (int* version), (version))              \
  X(GetErrorName, 6000, "", GetErrorName, kAlways, (CUresult code, const char** name),             \
    (code, name))                                                                                  \
  X(GetErrorString, 6000, "", GetErrorString, kAlways, (CUresult code, const char** text),         \
    (code, text))                                                                                  \
  X(GetExportTable, 3000, "", GetExportTable, kAlways, (const void** table, const CUuuid* id),     \
    (table, id))                                                                                   \
  X(GetProcAddress, 11030, "", GetProcAddress, kAlways,                                            \
    (const char* name, void** function, int version, cuuint64_t flags),                            \
    (name, function, version, flags))                                                              \
  X(GetProcAddress, 12000, "_v2", GetProcAddressStatus, kAlways,                                   \
    (const char* name, void** function, int version, cuuint64_t flags,                             \
     CUdriverProcAddressQueryResult* status),                                                      \
    (name, function, version, flags, status))                                                      \
  X(LogsRegisterCallback, 12090, "", LogsRegisterCallback, kAlways,                                \
    (CUlogsCallback function, void* user, CUlogsCallbackHandle* handle), (function, user, handle)) \
  X(LogsUnregisterCallback, 12090, "", LogsUnregisterCallback, kAlways,                            \
    (CUlogsCallbackHandle handle), (handle))

#define CUDASIM_DEVICE_ENTRIES(X, T)                                                           \
  X(DeviceGet, 2000, "", DeviceGet, kInitialized, (CUdevice* device, int ordinal),                 \
    (device, ordinal))                                                                             \
  X(DeviceGetCount, 2000, "", DeviceGetCount, kInitialized, (int* count), (count))                 \
  X(DeviceGetName, 2000, "", DeviceGetName, kInitialized, (char* name, int size, CUdevice device), \
    (name, size, device))                                                                          \
  X(DeviceGetUuid, 9020, "", DeviceGetUuid, kInitialized, (CUuuid* uuid, CUdevice device),         \
    (uuid, device))                                                                                \
  X(DeviceGetUuid, 11040, "_v2", DeviceGetUuid, kInitialized, (CUuuid* uuid, CUdevice device),     \
    (uuid, device))                                                                                \
  X(DeviceTotalMem, 3020, "_v2", DeviceTotalMem, kInitialized, (size_t* bytes, CUdevice device),   \
    (bytes, device))                                                                               \
  X(DeviceGetAttribute, 2000, "", DeviceGetAttribute, kInitialized,                                \
    (int* value, CUdevice_attribute attribute, CUdevice device), (value, attribute, device))       \
  X(DeviceComputeCapability, 2000, "", DeviceComputeCapability, kInitialized,                      \
    (int* major, int* minor, CUdevice device), (major, minor, device))                             \
  X(DeviceGetPCIBusId, 4010, "", DeviceGetPCIBusId, kInitialized,                                  \
    (char* id, int size, CUdevice device), (id, size, device))                                     \
  X(DeviceGetByPCIBusId, 4010, "", DeviceGetByPCIBusId, kInitialized,                              \
    (CUdevice* device, const char* id), (device, id))                                              \
  X(DeviceCanAccessPeer, 4000, "", DeviceCanAccessPeer, kInitialized,                              \
    (int* can, CUdevice device, CUdevice peer), (can, device, peer))                               \
  X(DeviceGetP2PAttribute, 8000, "", DeviceGetP2PAttribute, kInitialized,                          \
    (int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to),                     \
    (value, attribute, from, to))                                                                  \
  X(DeviceGetExecAffinitySupport, 11040, "", DeviceGetExecAffinitySupport, kInitialized,           \
    (int* value, CUexecAffinityType type, CUdevice device), (value, type, device))

#define CUDASIM_CONTEXT_ENTRIES(X, T)                                                          \
  X(CtxCreate, 2000, "", CtxCreateFirst, kInitialized,                                             \
    (CUcontext* context, unsigned flags, CUdevice device), (context, flags, device))               \
  X(CtxCreate, 3020, "_v2", CtxCreate, kInitialized,                                               \
    (CUcontext* context, unsigned flags, CUdevice device), (context, flags, device))               \
  X(CtxCreate, 11040, "_v3", CtxCreateAffinity, kInitialized,                                      \
    (CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags,                 \
     CUdevice device),                                                                             \
    (context, affinity, count, flags, device))                                                     \
  X(CtxCreate, 12050, "_v4", CtxCreateParameters, kInitialized,                                    \
    (CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device),          \
    (context, parameters, flags, device))                                                          \
  X(CtxDestroy, 2000, "", CtxDestroy, kOwn, (CUcontext context), (context))                        \
  X(CtxDestroy, 4000, "_v2", CtxDestroy, kOwn, (CUcontext context), (context))                     \
  X(CtxAttach, 2000, "", CtxAttach, kInitialized, (CUcontext* context, unsigned flags),            \
    (context, flags))                                                                              \
  X(CtxDetach, 2000, "", CtxDetach, kInitialized, (CUcontext context), (context))                  \
  X(CtxPushCurrent, 2000, "", CtxPushCurrent, kInitialized, (CUcontext context), (context))        \
  X(CtxPushCurrent, 4000, "_v2", CtxPushCurrent, kInitialized, (CUcontext context), (context))     \
  X(CtxPopCurrent, 2000, "", CtxPopCurrent, kInitialized, (CUcontext* context), (context))         \
  X(CtxPopCurrent, 4000, "_v2", CtxPopCurrent, kInitialized, (CUcontext* context), (context))      \
  X(CtxSetCurrent, 4000, "", CtxSetCurrent, kInitialized, (CUcontext context), (context))          \
  X(CtxGetCurrent, 4000, "", CtxGetCurrent, kInitialized, (CUcontext* context), (context))         \
  X(CtxGetDevice, 2000, "", CtxGetDevice, kInitialized, (CUdevice* device), (device))              \
  X(CtxGetDevice, 13000, "_v2", CtxGetDeviceOf, kInitialized,                                      \
    (CUdevice* device, CUcontext context), (device, context))                                      \
  X(CtxGetId, 12000, "", CtxGetId, kInitialized, (CUcontext context, unsigned long long* id),      \
    (context, id))                                                                                 \
  X(CtxGetFlags, 7000, "", CtxGetFlags, kInitialized, (unsigned* flags), (flags))                  \
  X(CtxSetFlags, 12010, "", CtxSetFlags, kInitialized, (unsigned flags), (flags))                  \
  X(CtxGetApiVersion, 3020, "", CtxGetApiVersion, kInitialized,                                    \
    (CUcontext context, unsigned* version), (context, version))                                    \
  X(CtxSynchronize, 2000, "", CtxSynchronize, kInitialized, (), ())                                \
  X(CtxSynchronize, 13000, "_v2", CtxSynchronizeOf, kInitialized, (CUcontext context), (context))  \
  X(CtxGetLimit, 3010, "", CtxGetLimit, kInitialized, (size_t* value, CUlimit limit),              \
    (value, limit))                                                                                \
  X(CtxSetLimit, 3010, "", CtxSetLimit, kInitialized, (CUlimit limit, size_t value),               \
    (limit, value))                                                                                \
  X(CtxGetCacheConfig, 3020, "", CtxGetCacheConfig, kInitialized, (CUfunc_cache* config),          \
    (config))                                                                                      \
  X(CtxSetCacheConfig, 3020, "", CtxSetCacheConfig, kInitialized, (CUfunc_cache config), (config)) \
  X(CtxGetSharedMemConfig, 4020, "", CtxGetSharedMemConfig, kInitialized,                          \
    (CUsharedconfig* config), (config))                                                            \
  X(CtxSetSharedMemConfig, 4020, "", CtxSetSharedMemConfig, kInitialized,                          \
    (CUsharedconfig config), (config))                                                             \
  X(CtxGetStreamPriorityRange, 5050, "", CtxGetStreamPriorityRange, kInitialized,                  \
    (int* least, int* greatest), (least, greatest))                                                \
  X(CtxGetExecAffinity, 11040, "", CtxGetExecAffinity, kInitialized,                               \
    (CUexecAffinityParam* affinity, CUexecAffinityType type), (affinity, type))                    \
  X(CtxResetPersistingL2Cache, 11000, "", CtxResetPersistingL2Cache, kInitialized, (), ())         \
  X(CtxEnablePeerAccess, 4000, "", CtxEnablePeerAccess, kInitialized,                              \
    (CUcontext peer, unsigned flags), (peer, flags))                                               \
  X(CtxDisablePeerAccess, 4000, "", CtxDisablePeerAccess, kInitialized, (CUcontext peer), (peer))  \
  X(ProfilerStart, 4000, "", ProfilerStart, kInitialized, (), ())                                  \
  X(ProfilerStop, 4000, "", ProfilerStop, kInitialized, (), ())

#define CUDASIM_PRIMARY_ENTRIES(X, T)                                                          \
  X(DevicePrimaryCtxRetain, 7000, "", DevicePrimaryCtxRetain, kInitialized,                        \
    (CUcontext* context, CUdevice device), (context, device))                                      \
  X(DevicePrimaryCtxRelease, 7000, "", DevicePrimaryCtxReleaseQuietly, kInitialized, (CUdevice device),   \
    (device))                                                                                      \
  X(DevicePrimaryCtxRelease, 11000, "_v2", DevicePrimaryCtxRelease, kInitialized,                  \
    (CUdevice device), (device))                                                                   \
  X(DevicePrimaryCtxReset, 7000, "", DevicePrimaryCtxResetFirst, kInitialized, (CUdevice device),  \
    (device))                                                                                      \
  X(DevicePrimaryCtxReset, 11000, "_v2", DevicePrimaryCtxReset, kInitialized, (CUdevice device),   \
    (device))                                                                                      \
  X(DevicePrimaryCtxSetFlags, 7000, "", DevicePrimaryCtxSetFlagsInactive, kInitialized,            \
    (CUdevice device, unsigned flags), (device, flags))                                            \
  X(DevicePrimaryCtxSetFlags, 11000, "_v2", DevicePrimaryCtxSetFlags, kInitialized,                \
    (CUdevice device, unsigned flags), (device, flags))                                            \
  X(DevicePrimaryCtxGetState, 7000, "", DevicePrimaryCtxGetState, kInitialized,                    \
    (CUdevice device, unsigned* flags, int* active), (device, flags, active))

#define CUDASIM_GREEN_ENTRIES(X, T)                                                            \
  X(DeviceGetDevResource, 12040, "", DeviceGetDevResource, kInitialized, (CUdevice device,         \
    CUdevResource* resource, CUdevResourceType type), (device, resource, type))                    \
  X(CtxGetDevResource, 12040, "", CtxGetDevResource, kInitialized, (CUcontext context,             \
    CUdevResource* resource, CUdevResourceType type), (context, resource, type))                   \
  X(GreenCtxGetDevResource, 12040, "", GreenCtxGetDevResource, kInitialized, (CUgreenCtx green,    \
    CUdevResource* resource, CUdevResourceType type), (green, resource, type))                     \
  X(DevSmResourceSplitByCount, 12040, "", DevSmResourceSplitByCount, kInitialized,                 \
    (CUdevResource* groups, unsigned* count, const CUdevResource* input,                           \
    CUdevResource* remaining, unsigned flags, unsigned least),                                     \
    (groups, count, input, remaining, flags, least))                                               \
  X(DevSmResourceSplit, 13010, "", DevSmResourceSplit, kInitialized, (CUdevResource* groups,       \
    unsigned count, const CUdevResource* input, CUdevResource* remaining, unsigned flags,          \
    SmGroup* wanted), (groups, count, input, remaining, flags, wanted))                            \
  X(DevResourceGenerateDesc, 12040, "", DevResourceGenerateDesc, kInitialized,                     \
    (CUdevResourceDesc* description, CUdevResource* resources, unsigned count),                    \
    (description, resources, count))                                                               \
  X(GreenCtxCreate, 12040, "", GreenCtxCreate, kInitialized, (CUgreenCtx* green,                   \
    CUdevResourceDesc description, CUdevice device, unsigned flags),                               \
    (green, description, device, flags))                                                           \
  X(GreenCtxDestroy, 12040, "", GreenCtxDestroy, kInitialized, (CUgreenCtx green), (green))        \
  X(CtxFromGreenCtx, 12040, "", CtxFromGreenCtx, kInitialized, (CUcontext* context,                \
    CUgreenCtx green), (context, green))                                                           \
  X(GreenCtxGetId, 12090, "", GreenCtxGetId, kInitialized, (CUgreenCtx green,                      \
    unsigned long long* id), (green, id))                                                          \
  X(GreenCtxStreamCreate, 12050, "", GreenCtxStreamCreate, kInitialized, (CUstream* stream,        \
    CUgreenCtx green, unsigned flags, int priority), (stream, green, flags, priority))             \
  X(StreamGetGreenCtx, 12040, "", StreamGetGreenCtx, kInitialized, (CUstream stream,               \
    CUgreenCtx* green), (stream, green))                                                           \
  T(StreamGetDevResource, 13010, "", 13010, ptsz, StreamGetDevResource, kInitialized,              \
    (CUstream stream, CUdevResource* resource, CUdevResourceType type), (stream, resource, type))  \
  X(GreenCtxRecordEvent, 12040, "", GreenCtxRecordEvent, kInitialized, (CUgreenCtx green,          \
    CUevent event), (green, event))                                                                \
  X(GreenCtxWaitEvent, 12040, "", GreenCtxWaitEvent, kInitialized, (CUgreenCtx green,              \
    CUevent event), (green, event))                                                                \
  X(CtxRecordEvent, 12050, "", CtxRecordEvent, kInitialized, (CUcontext context, CUevent event),   \
    (context, event))                                                                              \
  X(CtxWaitEvent, 12050, "", CtxWaitEvent, kInitialized, (CUcontext context, CUevent event),       \
    (context, event))

#define CUDASIM_MEMORY_ENTRIES(X, T)                                                           \
  X(MemGetInfo, 3020, "_v2", MemGetInfo, kInitialized, (size_t* free, size_t* total), (free,       \
    total))                                                                                        \
  X(MemAlloc, 3020, "_v2", MemAlloc, kInitialized, (CUdeviceptr* address, size_t bytes),           \
    (address, bytes))                                                                              \
  X(MemAllocPitch, 3020, "_v2", MemAllocPitch, kInitialized, (CUdeviceptr* address, size_t*        \
    pitch, size_t width, size_t height, unsigned element), (address, pitch, width, height,         \
    element))                                                                                      \
  X(MemAllocManaged, 6000, "", MemAllocManaged, kInitialized, (CUdeviceptr* address, size_t        \
    bytes, unsigned flags), (address, bytes, flags))                                               \
  X(MemFree, 3020, "_v2", MemFree, kInitialized, (CUdeviceptr address), (address))                 \
  X(MemGetAddressRange, 3020, "_v2", MemGetAddressRange, kInitialized, (CUdeviceptr* base,         \
    size_t* size, CUdeviceptr address), (base, size, address))                                     \
  X(MemAllocHost, 3020, "_v2", MemAllocHost, kInitialized, (void** pointer, size_t bytes),         \
    (pointer, bytes))                                                                              \
  X(MemHostAlloc, 2020, "", MemHostAlloc, kInitialized, (void** pointer, size_t bytes, unsigned    \
    flags), (pointer, bytes, flags))                                                               \
  X(MemFreeHost, 2000, "", MemFreeHost, kInitialized, (void* pointer), (pointer))                  \
  X(MemHostGetDevicePointer, 3020, "_v2", MemHostGetDevicePointer, kInitialized, (CUdeviceptr*     \
    address, void* pointer, unsigned flags), (address, pointer, flags))                            \
  X(MemHostGetFlags, 2030, "", MemHostGetFlags, kInitialized, (unsigned* flags, void* pointer),    \
    (flags, pointer))                                                                              \
  X(PointerGetAttribute, 4000, "", PointerGetAttribute, kInitialized, (void* data,                 \
    CUpointer_attribute attribute, CUdeviceptr address), (data, attribute, address))               \
  X(PointerGetAttributes, 7000, "", PointerGetAttributes, kInitialized, (unsigned count,           \
    CUpointer_attribute* attributes, void** data, CUdeviceptr address), (count, attributes,        \
    data, address))

#define CUDASIM_POINTER_ENTRIES(X, T)                                                          \
  X(PointerSetAttribute, 6000, "", PointerSetAttribute, kInitialized, (const void* value,          \
    CUpointer_attribute attribute, CUdeviceptr address), (value, attribute, address))              \
  X(MemAdvise, 8000, "", MemAdviseFirst, kInitialized, (CUdeviceptr address, size_t bytes,         \
    CUmem_advise advice, CUdevice device), (address, bytes, advice, device))                       \
  X(MemAdvise, 12020, "_v2", MemAdvise, kInitialized, (CUdeviceptr address, size_t bytes,          \
    CUmem_advise advice, CUmemLocation location), (address, bytes, advice, location))              \
  T(MemPrefetchAsync, 8000, "", 8000, ptsz, MemPrefetchAsyncFirst, kInitialized,                   \
    (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),                         \
    (address, bytes, device, stream))                                                              \
  T(MemPrefetchAsync, 12020, "_v2", 12020, ptsz, MemPrefetchAsync, kInitialized,                   \
    (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),  \
    (address, bytes, location, flags, stream))                                                     \
  X(MemRangeGetAttribute, 8000, "", MemRangeGetAttribute, kInitialized, (void* data, size_t size,  \
    CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes),                           \
    (data, size, attribute, address, bytes))                                                       \
  X(MemRangeGetAttributes, 8000, "", MemRangeGetAttributes, kInitialized, (void** data,            \
    size_t* sizes, CUmem_range_attribute* attributes, size_t count, CUdeviceptr address,           \
    size_t bytes), (data, sizes, attributes, count, address, bytes))                               \
  X(IpcGetMemHandle, 4010, "", IpcGetMemHandle, kInitialized, (CUipcMemHandle* handle,             \
    CUdeviceptr address), (handle, address))                                                       \
  X(IpcOpenMemHandle, 4010, "", IpcOpenMemHandle, kInitialized, (CUdeviceptr* address,             \
    CUipcMemHandle handle, unsigned flags), (address, handle, flags))                              \
  X(IpcOpenMemHandle, 11000, "_v2", IpcOpenMemHandle, kInitialized, (CUdeviceptr* address,         \
    CUipcMemHandle handle, unsigned flags), (address, handle, flags))                              \
  X(IpcCloseMemHandle, 4010, "", IpcCloseMemHandle, kInitialized, (CUdeviceptr address),           \
    (address))                                                                                     \
  X(IpcGetEventHandle, 4010, "", IpcGetEventHandle, kInitialized, (CUipcEventHandle* handle,       \
    CUevent event), (handle, event))                                                               \
  X(IpcOpenEventHandle, 4010, "", IpcOpenEventHandle, kInitialized, (CUevent* event,               \
    CUipcEventHandle handle), (event, handle))

#define CUDASIM_POOL_ENTRIES(X, T)                                                             \
  T(MemAllocAsync, 11020, "", 11020, ptsz, MemAllocAsync, kInitialized, (CUdeviceptr* address,     \
    size_t bytes, CUstream stream), (address, bytes, stream))                                      \
  T(MemFreeAsync, 11020, "", 11020, ptsz, MemFreeAsync, kInitialized, (CUdeviceptr address,        \
    CUstream stream), (address, stream))                                                           \
  T(MemAllocFromPoolAsync, 11020, "", 11020, ptsz, MemAllocFromPoolAsync, kInitialized,            \
    (CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream), (address, bytes,     \
    pool, stream))                                                                                 \
  X(MemPoolCreate, 11020, "", MemPoolCreate, kInitialized, (CUmemoryPool* pool,                    \
    const CUmemPoolProps* properties), (pool, properties))                                         \
  X(MemPoolDestroy, 11020, "", MemPoolDestroy, kInitialized, (CUmemoryPool pool), (pool))          \
  X(MemPoolGetAttribute, 11020, "", MemPoolGetAttribute, kInitialized, (CUmemoryPool pool,         \
    CUmemPool_attribute attribute, void* value), (pool, attribute, value))                         \
  X(MemPoolSetAttribute, 11020, "", MemPoolSetAttribute, kInitialized, (CUmemoryPool pool,         \
    CUmemPool_attribute attribute, void* value), (pool, attribute, value))                         \
  X(MemPoolTrimTo, 11020, "", MemPoolTrimTo, kInitialized, (CUmemoryPool pool, size_t bytes),      \
    (pool, bytes))                                                                                 \
  X(MemPoolGetAccess, 11020, "", MemPoolGetAccess, kInitialized, (CUmemAccess_flags* flags,        \
    CUmemoryPool pool, CUmemLocation* location), (flags, pool, location))                          \
  X(MemPoolSetAccess, 11020, "", MemPoolSetAccess, kInitialized, (CUmemoryPool pool,               \
    const CUmemAccessDesc* access, size_t count), (pool, access, count))                           \
  X(MemPoolExportToShareableHandle, 11020, "", MemPoolExportToShareableHandle, kInitialized,       \
    (void* handle, CUmemoryPool pool, CUmemAllocationHandleType type,                              \
    unsigned long long flags), (handle, pool, type, flags))                                        \
  X(MemPoolImportFromShareableHandle, 11020, "", MemPoolImportFromShareableHandle, kInitialized,   \
    (CUmemoryPool* pool, void* handle, CUmemAllocationHandleType type,                             \
    unsigned long long flags), (pool, handle, type, flags))                                        \
  X(MemPoolExportPointer, 11020, "", MemPoolExportPointer, kInitialized,                           \
    (CUmemPoolPtrExportData* data, CUdeviceptr address), (data, address))                          \
  X(MemPoolImportPointer, 11020, "", MemPoolImportPointer, kInitialized, (CUdeviceptr* address,    \
    CUmemoryPool pool, CUmemPoolPtrExportData* data), (address, pool, data))                       \
  X(DeviceGetDefaultMemPool, 11020, "", DeviceGetDefaultMemPool, kInitialized,                     \
    (CUmemoryPool* pool, CUdevice device), (pool, device))                                         \
  X(DeviceGetMemPool, 11020, "", DeviceGetMemPool, kInitialized, (CUmemoryPool* pool,              \
    CUdevice device), (pool, device))                                                              \
  X(DeviceSetMemPool, 11020, "", DeviceSetMemPool, kInitialized, (CUdevice device,                 \
    CUmemoryPool pool), (device, pool))

#define CUDASIM_VIRTUAL_MEMORY_ENTRIES(X, T)                                                   \
  X(MemGetAllocationGranularity, 10020, "", MemGetAllocationGranularity, kInitialized,             \
    (size_t* granularity, const CUmemAllocationProp* properties,                                   \
    CUmemAllocationGranularity_flags option), (granularity, properties, option))                   \
  X(MemAddressReserve, 10020, "", MemAddressReserve, kInitialized, (CUdeviceptr* address,          \
    size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags), (address, size,    \
    alignment, hint, flags))                                                                       \
  X(MemAddressFree, 10020, "", MemAddressFree, kInitialized, (CUdeviceptr address, size_t size),   \
    (address, size))                                                                               \
  X(MemCreate, 10020, "", MemCreate, kInitialized, (CUmemGenericAllocationHandle* handle,          \
    size_t size, const CUmemAllocationProp* properties, unsigned long long flags), (handle, size,  \
    properties, flags))                                                                            \
  X(MemRelease, 10020, "", MemRelease, kInitialized, (CUmemGenericAllocationHandle handle),        \
    (handle))                                                                                      \
  X(MemMap, 10020, "", MemMap, kInitialized, (CUdeviceptr address, size_t size, size_t offset,     \
    CUmemGenericAllocationHandle handle, unsigned long long flags), (address, size, offset,        \
    handle, flags))                                                                                \
  X(MemUnmap, 10020, "", MemUnmap, kInitialized, (CUdeviceptr address, size_t size), (address,     \
    size))                                                                                         \
  X(MemSetAccess, 10020, "", MemSetAccess, kInitialized, (CUdeviceptr address, size_t size,        \
    const CUmemAccessDesc* access, size_t count), (address, size, access, count))                  \
  X(MemGetAccess, 10020, "", MemGetAccess, kInitialized, (unsigned long long* flags,               \
    const CUmemLocation* location, CUdeviceptr address), (flags, location, address))               \
  X(MemRetainAllocationHandle, 11000, "", MemRetainAllocationHandle, kInitialized,                 \
    (CUmemGenericAllocationHandle* handle, void* address), (handle, address))                      \
  X(MemExportToShareableHandle, 10020, "", MemExportToShareableHandle, kInitialized,               \
    (void* exported, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,          \
    unsigned long long flags), (exported, handle, type, flags))                                    \
  X(MemImportFromShareableHandle, 10020, "", MemImportFromShareableHandle, kInitialized,           \
    (CUmemGenericAllocationHandle* handle, void* exported, CUmemAllocationHandleType type),        \
    (handle, exported, type))                                                                      \
  X(MemGetAllocationPropertiesFromHandle, 10020, "", MemGetAllocationPropertiesFromHandle,         \
    kInitialized, (CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle),          \
    (properties, handle))

#define CUDASIM_REGISTER_ENTRIES(X, T)                                                         \
  X(MemHostRegister, 4000, "", MemHostRegister, kInitialized, (void* pointer, size_t bytes,        \
    unsigned flags), (pointer, bytes, flags))                                                      \
  X(MemHostRegister, 6050, "_v2", MemHostRegister, kInitialized, (void* pointer, size_t bytes,     \
    unsigned flags), (pointer, bytes, flags))                                                      \
  X(MemHostUnregister, 4000, "", MemHostUnregister, kInitialized, (void* pointer), (pointer))

#define CUDASIM_COPY_ENTRIES(X, T)                                                             \
  T(Memcpy, 4000, "", 7000, ptds, Memcpy, kInitialized, (CUdeviceptr to, CUdeviceptr from,         \
    size_t bytes), (to, from, bytes))                                                              \
  T(MemcpyAsync, 4000, "", 7000, ptsz, MemcpyAsync, kInitialized, (CUdeviceptr to, CUdeviceptr     \
    from, size_t bytes, CUstream stream), (to, from, bytes, stream))                               \
  T(MemcpyHtoD, 3020, "_v2", 7000, ptds, MemcpyHtoD, kInitialized, (CUdeviceptr to, const void*    \
    from, size_t bytes), (to, from, bytes))                                                        \
  T(MemcpyHtoDAsync, 3020, "_v2", 7000, ptsz, MemcpyHtoDAsync, kInitialized, (CUdeviceptr to,      \
    const void* from, size_t bytes, CUstream stream), (to, from, bytes, stream))                   \
  T(MemcpyDtoH, 3020, "_v2", 7000, ptds, MemcpyDtoH, kInitialized, (void* to, CUdeviceptr from,    \
    size_t bytes), (to, from, bytes))                                                              \
  T(MemcpyDtoHAsync, 3020, "_v2", 7000, ptsz, MemcpyDtoHAsync, kInitialized, (void* to,            \
    CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))                   \
  T(MemcpyDtoD, 3020, "_v2", 7000, ptds, MemcpyDtoD, kInitialized, (CUdeviceptr to, CUdeviceptr    \
    from, size_t bytes), (to, from, bytes))                                                        \
  T(MemcpyDtoDAsync, 3020, "_v2", 7000, ptsz, MemcpyDtoDAsync, kInitialized, (CUdeviceptr to,      \
    CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))                   \
  T(MemcpyPeer, 4000, "", 7000, ptds, MemcpyPeer, kInitialized, (CUdeviceptr to, CUcontext         \
    to_context, CUdeviceptr from, CUcontext from_context, size_t bytes), (to, to_context, from,    \
    from_context, bytes))                                                                          \
  T(MemcpyPeerAsync, 4000, "", 7000, ptsz, MemcpyPeerAsync, kInitialized, (CUdeviceptr to,         \
    CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream         \
    stream), (to, to_context, from, from_context, bytes, stream))                                  \
  T(MemsetD8, 3020, "_v2", 7000, ptds, MemsetD8, kInitialized, (CUdeviceptr to, unsigned char      \
    value, size_t count), (to, value, count))                                                      \
  T(MemsetD8Async, 3020, "", 7000, ptsz, MemsetD8Async, kInitialized, (CUdeviceptr to, unsigned    \
    char value, size_t count, CUstream stream), (to, value, count, stream))                        \
  T(MemsetD16, 3020, "_v2", 7000, ptds, MemsetD16, kInitialized, (CUdeviceptr to, unsigned short   \
    value, size_t count), (to, value, count))                                                      \
  T(MemsetD16Async, 3020, "", 7000, ptsz, MemsetD16Async, kInitialized, (CUdeviceptr to,           \
    unsigned short value, size_t count, CUstream stream), (to, value, count, stream))              \
  T(MemsetD32, 3020, "_v2", 7000, ptds, MemsetD32, kInitialized, (CUdeviceptr to, unsigned         \
    value, size_t count), (to, value, count))                                                      \
  T(MemsetD32Async, 3020, "", 7000, ptsz, MemsetD32Async, kInitialized, (CUdeviceptr to,           \
    unsigned value, size_t count, CUstream stream), (to, value, count, stream))

#define CUDASIM_BATCH_ENTRIES(X, T)                                                            \
  T(MemcpyBatchAsync, 12080, "", 12080, ptsz, MemcpyBatchAsyncFirst, kInitialized, (CUdeviceptr*   \
    to, CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes* attributes, size_t*    \
    indices, size_t attribute_count, size_t* failed, CUstream stream), (to, from, sizes, count,    \
    attributes, indices, attribute_count, failed, stream))                                         \
  T(MemcpyBatchAsync, 13000, "_v2", 13000, ptsz, MemcpyBatchAsync, kInitialized, (CUdeviceptr* to, \
    CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes* attributes, size_t*        \
    indices, size_t attribute_count, CUstream stream), (to, from, sizes, count, attributes,        \
    indices, attribute_count, stream))

#define CUDASIM_AREA_ENTRIES(X, T)                                                             \
  T(Memcpy2D, 3020, "_v2", 7000, ptds, Memcpy2D, kInitialized, (const CUDA_MEMCPY2D* copy),        \
    (copy))                                                                                        \
  T(Memcpy2DUnaligned, 3020, "_v2", 7000, ptds, Memcpy2D, kInitialized,                            \
    (const CUDA_MEMCPY2D* copy), (copy))                                                           \
  T(Memcpy2DAsync, 3020, "_v2", 7000, ptsz, Memcpy2DAsync, kInitialized, (const CUDA_MEMCPY2D*     \
    copy, CUstream stream), (copy, stream))                                                        \
  T(Memcpy3D, 3020, "_v2", 7000, ptds, Memcpy3D, kInitialized, (const CUDA_MEMCPY3D* copy),        \
    (copy))                                                                                        \
  T(Memcpy3DAsync, 3020, "_v2", 7000, ptsz, Memcpy3DAsync, kInitialized, (const CUDA_MEMCPY3D*     \
    copy, CUstream stream), (copy, stream))                                                        \
  T(Memcpy3DPeer, 4000, "", 7000, ptds, Memcpy3DPeer, kInitialized, (const CUDA_MEMCPY3D_PEER*     \
    copy), (copy))                                                                                 \
  T(Memcpy3DPeerAsync, 4000, "", 7000, ptsz, Memcpy3DPeerAsync, kInitialized, (const               \
    CUDA_MEMCPY3D_PEER* copy, CUstream stream), (copy, stream))                                    \
  T(MemcpyHtoA, 3020, "_v2", 7000, ptds, MemcpyHtoA, kInitialized, (CUarray to, size_t offset,     \
    const void* from, size_t bytes), (to, offset, from, bytes))                                    \
  T(MemcpyHtoAAsync, 3020, "_v2", 7000, ptsz, MemcpyHtoAAsync, kInitialized, (CUarray to, size_t   \
    offset, const void* from, size_t bytes, CUstream stream), (to, offset, from, bytes, stream))   \
  T(MemcpyAtoH, 3020, "_v2", 7000, ptds, MemcpyAtoH, kInitialized, (void* to, CUarray from,        \
    size_t offset, size_t bytes), (to, from, offset, bytes))                                       \
  T(MemcpyAtoHAsync, 3020, "_v2", 7000, ptsz, MemcpyAtoHAsync, kInitialized, (void* to, CUarray    \
    from, size_t offset, size_t bytes, CUstream stream), (to, from, offset, bytes, stream))        \
  T(MemcpyDtoA, 3020, "_v2", 7000, ptds, MemcpyDtoA, kInitialized, (CUarray to, size_t offset,     \
    CUdeviceptr from, size_t bytes), (to, offset, from, bytes))                                    \
  T(MemcpyAtoD, 3020, "_v2", 7000, ptds, MemcpyAtoD, kInitialized, (CUdeviceptr to, CUarray from,  \
    size_t offset, size_t bytes), (to, from, offset, bytes))                                       \
  T(MemcpyAtoA, 3020, "_v2", 7000, ptds, MemcpyAtoA, kInitialized, (CUarray to, size_t to_offset,  \
    CUarray from, size_t from_offset, size_t bytes), (to, to_offset, from, from_offset, bytes))    \
  T(MemsetD2D8, 3020, "_v2", 7000, ptds, MemsetD2D8, kInitialized, (CUdeviceptr to, size_t pitch,  \
    unsigned char value, size_t width, size_t height), (to, pitch, value, width, height))          \
  T(MemsetD2D8Async, 3020, "", 7000, ptsz, MemsetD2D8Async, kInitialized, (CUdeviceptr to, size_t  \
    pitch, unsigned char value, size_t width, size_t height, CUstream stream), (to, pitch, value,  \
    width, height, stream))                                                                        \
  T(MemsetD2D16, 3020, "_v2", 7000, ptds, MemsetD2D16, kInitialized, (CUdeviceptr to, size_t       \
    pitch, unsigned short value, size_t width, size_t height), (to, pitch, value, width, height))  \
  T(MemsetD2D16Async, 3020, "", 7000, ptsz, MemsetD2D16Async, kInitialized, (CUdeviceptr to,       \
    size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream), (to,        \
    pitch, value, width, height, stream))                                                          \
  T(MemsetD2D32, 3020, "_v2", 7000, ptds, MemsetD2D32, kInitialized, (CUdeviceptr to, size_t       \
    pitch, unsigned value, size_t width, size_t height), (to, pitch, value, width, height))        \
  T(MemsetD2D32Async, 3020, "", 7000, ptsz, MemsetD2D32Async, kInitialized, (CUdeviceptr to,       \
    size_t pitch, unsigned value, size_t width, size_t height, CUstream stream), (to, pitch,       \
    value, width, height, stream))

#define CUDASIM_ARRAY_ENTRIES(X, T)                                                            \
  X(ArrayCreate, 3020, "_v2", ArrayCreate, kInitialized, (CUarray* array,                          \
    const CUDA_ARRAY_DESCRIPTOR* description), (array, description))                               \
  X(Array3DCreate, 3020, "_v2", Array3DCreate, kInitialized, (CUarray* array,                      \
    const CUDA_ARRAY3D_DESCRIPTOR* shape), (array, shape))                                         \
  X(ArrayGetDescriptor, 3020, "_v2", ArrayGetDescriptor, kInitialized,                             \
    (CUDA_ARRAY_DESCRIPTOR* description, CUarray array), (description, array))                     \
  X(Array3DGetDescriptor, 3020, "_v2", Array3DGetDescriptor, kInitialized,                         \
    (CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray array), (shape, array))                               \
  X(ArrayDestroy, 2000, "", ArrayDestroy, kInitialized, (CUarray array), (array))                  \
  X(MipmappedArrayCreate, 5000, "", MipmappedArrayCreate, kInitialized, (CUmipmappedArray* array,  \
    const CUDA_ARRAY3D_DESCRIPTOR* shape, unsigned levels), (array, shape, levels))                \
  X(MipmappedArrayGetLevel, 5000, "", MipmappedArrayGetLevel, kInitialized, (CUarray* level,       \
    CUmipmappedArray array, unsigned index), (level, array, index))                                \
  X(MipmappedArrayDestroy, 5000, "", MipmappedArrayDestroy, kInitialized, (CUmipmappedArray        \
    array), (array))

#define CUDASIM_TEXTURE_ENTRIES(X, T)                                                          \
  X(TexObjectCreate, 5000, "", TexObjectCreate, kInitialized, (CUtexObject* object,                \
    const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampling,                         \
    const CUDA_RESOURCE_VIEW_DESC* view), (object, resource, sampling, view))                      \
  X(TexObjectDestroy, 5000, "", TexObjectDestroy, kInitialized, (CUtexObject object), (object))    \
  X(TexObjectGetResourceDesc, 5000, "", TexObjectGetResourceDesc, kInitialized,                    \
    (CUDA_RESOURCE_DESC* resource, CUtexObject object), (resource, object))                        \
  X(TexObjectGetTextureDesc, 5000, "", TexObjectGetTextureDesc, kInitialized,                      \
    (CUDA_TEXTURE_DESC* sampling, CUtexObject object), (sampling, object))                         \
  X(TexObjectGetResourceViewDesc, 5000, "", TexObjectGetResourceViewDesc, kInitialized,            \
    (CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object), (view, object))                           \
  X(SurfObjectCreate, 5000, "", SurfObjectCreate, kInitialized, (CUsurfObject* object,             \
    const CUDA_RESOURCE_DESC* resource), (object, resource))                                       \
  X(SurfObjectDestroy, 5000, "", SurfObjectDestroy, kInitialized, (CUsurfObject object), (object)) \
  X(SurfObjectGetResourceDesc, 5000, "", SurfObjectGetResourceDesc, kInitialized,                  \
    (CUDA_RESOURCE_DESC* resource, CUsurfObject object), (resource, object))

#define CUDASIM_STREAM_ENTRIES(X, T)                                                           \
  X(StreamCreate, 2000, "", StreamCreate, kInitialized, (CUstream* stream, unsigned flags),        \
    (stream, flags))                                                                               \
  X(StreamCreateWithPriority, 5050, "", StreamCreateWithPriority, kInitialized, (CUstream*         \
    stream, unsigned flags, int priority), (stream, flags, priority))                              \
  X(StreamDestroy, 2000, "", StreamDestroy, kInitialized, (CUstream stream), (stream))             \
  X(StreamDestroy, 4000, "_v2", StreamDestroy, kInitialized, (CUstream stream), (stream))          \
  T(StreamSynchronize, 2000, "", 7000, ptsz, StreamSynchronize, kCallback, (CUstream stream),      \
    (stream))                                                                                      \
  T(StreamQuery, 2000, "", 7000, ptsz, StreamQuery, kCallback, (CUstream stream), (stream))        \
  T(StreamWaitEvent, 3020, "", 7000, ptsz, StreamWaitEvent, kInitialized, (CUstream stream,        \
    CUevent event, unsigned flags), (stream, event, flags))                                        \
  T(StreamGetCtx, 9020, "", 9020, ptsz, StreamGetCtx, kCallback, (CUstream stream, CUcontext*      \
    context), (stream, context))                                                                   \
  T(StreamGetCtx, 12050, "_v2", 12050, ptsz, StreamGetCtxGreen, kCallback, (CUstream stream,       \
    CUcontext* context, CUgreenCtx* green), (stream, context, green))                              \
  T(StreamGetFlags, 5050, "", 7000, ptsz, StreamGetFlags, kInitialized, (CUstream stream,          \
    unsigned* flags), (stream, flags))                                                             \
  T(StreamGetPriority, 5050, "", 7000, ptsz, StreamGetPriority, kInitialized, (CUstream stream,    \
    int* priority), (stream, priority))                                                            \
  T(StreamGetId, 12000, "", 12000, ptsz, StreamGetId, kInitialized, (CUstream stream, unsigned     \
    long long* id), (stream, id))                                                                  \
  T(StreamGetDevice, 12080, "", 12080, ptsz, StreamGetDevice, kInitialized, (CUstream stream,      \
    CUdevice* device), (stream, device))                                                           \
  T(StreamAddCallback, 5000, "", 7000, ptsz, StreamAddCallback, kInitialized, (CUstream stream,    \
    CUstreamCallback callback, void* data, unsigned flags), (stream, callback, data, flags))       \
  T(LaunchHostFunc, 10000, "", 10000, ptsz, LaunchHostFunc, kInitialized, (CUstream stream,        \
    CUhostFn function, void* data), (stream, function, data))                                      \
  T(StreamIsCapturing, 10000, "", 10000, ptsz, StreamIsCapturing, kCallback, (CUstream stream,     \
    CUstreamCaptureStatus* status), (stream, status))                                              \
  X(ThreadExchangeStreamCaptureMode, 10010, "", ThreadExchangeStreamCaptureMode, kThread,          \
    (CUstreamCaptureMode* mode), (mode))

#define CUDASIM_STREAM_ATTRIBUTE_ENTRIES(X, T)                                                 \
  T(StreamGetAttribute, 11000, "", 11000, ptsz, StreamGetAttribute, kInitialized, (CUstream        \
    stream, CUstreamAttrID id, CUstreamAttrValue* value), (stream, id, value))                     \
  T(StreamSetAttribute, 11000, "", 11000, ptsz, StreamSetAttribute, kInitialized, (CUstream        \
    stream, CUstreamAttrID id, const CUstreamAttrValue* value), (stream, id, value))               \
  T(StreamCopyAttributes, 11000, "", 11000, ptsz, StreamCopyAttributes, kInitialized, (CUstream    \
    to, CUstream from), (to, from))

#define CUDASIM_CAPTURE_ENTRIES(X, T)                                                          \
  T(StreamBeginCapture, 10000, "", 10000, ptsz, StreamBeginCaptureFirst, kCallback, (CUstream   \
    stream), (stream))                                                                             \
  T(StreamBeginCapture, 10010, "_v2", 10010, ptsz, StreamBeginCapture, kCallback, (CUstream     \
    stream, CUstreamCaptureMode mode), (stream, mode))                                             \
  T(StreamEndCapture, 10000, "", 10000, ptsz, StreamEndCapture, kCallback, (CUstream stream,    \
    CUgraph* graph), (stream, graph))                                                              \
  T(StreamGetCaptureInfo, 10010, "", 10010, ptsz, StreamGetCaptureInfo, kCallback, (CUstream    \
    stream, CUstreamCaptureStatus* status, cuuint64_t* id), (stream, status, id))                  \
  T(StreamGetCaptureInfo, 11030, "_v2", 11030, ptsz, StreamGetCaptureInfoGraph, kCallback,      \
    (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const         \
    CUgraphNode** dependencies, size_t* count), (stream, status, id, graph, dependencies, count))  \
  T(StreamGetCaptureInfo, 12030, "_v3", 12030, ptsz, StreamGetCaptureInfoEdges, kCallback,      \
    (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const         \
    CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count), (stream, status,    \
    id, graph, dependencies, edges, count))                                                        \
  T(StreamUpdateCaptureDependencies, 11030, "", 11030, ptsz, StreamUpdateCaptureDependenciesFirst, \
    kCallback, (CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags), (stream, nodes,\
    count, flags))                                                                                 \
  T(StreamUpdateCaptureDependencies, 12030, "_v2", 12030, ptsz, StreamUpdateCaptureDependencies,   \
    kCallback, (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,   \
    unsigned flags), (stream, nodes, edges, count, flags))

#define CUDASIM_GRAPH_ENTRIES(X, T)                                                            \
  X(GraphCreate, 10000, "", GraphCreate, kInitialized, (CUgraph* graph, unsigned flags), (graph,   \
    flags))                                                                                        \
  X(GraphDestroy, 10000, "", GraphDestroy, kInitialized, (CUgraph graph), (graph))                 \
  X(GraphGetNodes, 10000, "", GraphGetNodes, kInitialized, (CUgraph graph, CUgraphNode* nodes,     \
    size_t* count), (graph, nodes, count))                                                         \
  X(GraphNodeGetType, 10000, "", GraphNodeGetType, kInitialized, (CUgraphNode node,                \
    CUgraphNodeType* type), (node, type))                                                          \
  X(GraphInstantiate, 10000, "", GraphInstantiate, kInitialized, (CUgraphExec* exec, CUgraph       \
    graph, CUgraphNode* error_node, char* log, size_t size), (exec, graph, error_node, log, size)) \
  X(GraphInstantiate, 11000, "_v2", GraphInstantiate, kInitialized, (CUgraphExec* exec, CUgraph    \
    graph, CUgraphNode* error_node, char* log, size_t size), (exec, graph, error_node, log, size)) \
  X(GraphInstantiateWithFlags, 11040, "", GraphInstantiateWithFlags, kInitialized, (CUgraphExec*   \
    exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))                          \
  T(GraphLaunch, 10000, "", 10000, ptsz, GraphLaunch, kInitialized, (CUgraphExec exec, CUstream    \
    stream), (exec, stream))                                                                       \
  X(GraphExecDestroy, 10000, "", GraphExecDestroy, kInitialized, (CUgraphExec exec), (exec))       \
  X(GraphAddEmptyNode, 10000, "", GraphAddEmptyNode, kInitialized, (CUgraphNode* node, CUgraph     \
    graph, const CUgraphNode* dependencies, size_t count), (node, graph, dependencies, count))     \
  X(GraphAddMemcpyNode, 10000, "", GraphAddMemcpyNode, kInitialized, (CUgraphNode* node, CUgraph   \
    graph, const CUgraphNode* dependencies, size_t count, const CUDA_MEMCPY3D* copy, CUcontext     \
    context), (node, graph, dependencies, count, copy, context))                                   \
  X(GraphAddMemsetNode, 10000, "", GraphAddMemsetNode, kInitialized, (CUgraphNode* node, CUgraph   \
    graph, const CUgraphNode* dependencies, size_t count, const CUDA_MEMSET_NODE_PARAMS* fill,     \
    CUcontext context), (node, graph, dependencies, count, fill, context))                         \
  X(GraphAddNode, 12020, "", GraphAddNodeFirst, kInitialized, (CUgraphNode* node, CUgraph graph,   \
    const CUgraphNode* dependencies, size_t count, CUgraphNodeParams* params),                     \
    (node, graph, dependencies, count, params))                                                    \
  X(GraphAddNode, 12030, "_v2", GraphAddNode, kInitialized, (CUgraphNode* node, CUgraph graph,     \
    const CUgraphNode* dependencies, const CUgraphEdgeData* edges, size_t count,                   \
    CUgraphNodeParams* params), (node, graph, dependencies, edges, count, params))                 \
  X(GraphAddKernelNode, 10000, "", GraphAddKernelNodeFirst, kInitialized, (CUgraphNode* node,      \
    CUgraph graph, const CUgraphNode* dependencies, size_t count,                                  \
    const CUDA_KERNEL_NODE_PARAMS_v1* params), (node, graph, dependencies, count, params))         \
  X(GraphAddKernelNode, 12000, "_v2", GraphAddKernelNode, kInitialized, (CUgraphNode* node,        \
    CUgraph graph, const CUgraphNode* dependencies, size_t count,                                  \
    const CUDA_KERNEL_NODE_PARAMS_v2* params), (node, graph, dependencies, count, params))         \
  X(GraphAddChildGraphNode, 10000, "", GraphAddChildGraphNode, kInitialized, (CUgraphNode* node,   \
    CUgraph graph, const CUgraphNode* dependencies, size_t count, CUgraph child),                  \
    (node, graph, dependencies, count, child))                                                     \
  X(GraphChildGraphNodeGetGraph, 10000, "", GraphChildGraphNodeGetGraph, kInitialized,             \
    (CUgraphNode node, CUgraph* graph), (node, graph))                                             \
  X(GraphClone, 10000, "", GraphClone, kInitialized, (CUgraph* clone, CUgraph original),           \
    (clone, original))                                                                             \
  X(GraphNodeFindInClone, 10000, "", GraphNodeFindInClone, kInitialized, (CUgraphNode* node,       \
    CUgraphNode original, CUgraph clone), (node, original, clone))                                 \
  X(GraphKernelNodeGetParams, 10000, "", GraphKernelNodeGetParamsFirst, kInitialized,              \
    (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params), (node, params))                        \
  X(GraphKernelNodeGetParams, 12000, "_v2", GraphKernelNodeGetParams, kInitialized,                \
    (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* params), (node, params))                        \
  X(GraphKernelNodeSetParams, 10000, "", GraphKernelNodeSetParamsFirst, kInitialized,              \
    (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params), (node, params))                  \
  X(GraphKernelNodeSetParams, 12000, "_v2", GraphKernelNodeSetParams, kInitialized,                \
    (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params), (node, params))                  \
  X(GraphMemcpyNodeGetParams, 10000, "", GraphMemcpyNodeGetParams, kInitialized,                   \
    (CUgraphNode node, CUDA_MEMCPY3D* params), (node, params))                                     \
  X(GraphMemcpyNodeSetParams, 10000, "", GraphMemcpyNodeSetParams, kInitialized,                   \
    (CUgraphNode node, const CUDA_MEMCPY3D* params), (node, params))                               \
  X(GraphMemsetNodeGetParams, 10000, "", GraphMemsetNodeGetParams, kInitialized,                   \
    (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params), (node, params))                           \
  X(GraphMemsetNodeSetParams, 10000, "", GraphMemsetNodeSetParams, kInitialized,                   \
    (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params), (node, params))                     \
  X(GraphNodeSetParams, 12020, "", GraphNodeSetParams, kInitialized, (CUgraphNode node,            \
    CUgraphNodeParams* params), (node, params))                                                    \
  X(GraphExecMemcpyNodeSetParams, 10020, "", GraphExecMemcpyNodeSetParams, kInitialized,           \
    (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext context),          \
    (exec, node, params, context))                                                                 \
  X(GraphExecMemsetNodeSetParams, 10020, "", GraphExecMemsetNodeSetParams, kInitialized,           \
    (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,                    \
    CUcontext context), (exec, node, params, context))                                             \
  X(GraphExecNodeSetParams, 12020, "", GraphExecNodeSetParams, kInitialized, (CUgraphExec exec,    \
    CUgraphNode node, CUgraphNodeParams* params), (exec, node, params))                            \
  X(GraphDestroyNode, 10000, "", GraphDestroyNode, kInitialized, (CUgraphNode node), (node))       \
  X(GraphKernelNodeSetAttribute, 11000, "", GraphKernelNodeSetAttribute, kInitialized,             \
    (CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value),                 \
    (node, id, value))                                                                             \
  X(GraphExecKernelNodeSetParams, 10010, "", GraphExecKernelNodeSetParamsFirst, kInitialized,      \
    (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params),                \
    (exec, node, params))                                                                          \
  X(GraphExecKernelNodeSetParams, 12000, "_v2", GraphExecKernelNodeSetParams, kInitialized,        \
    (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params),                \
    (exec, node, params))                                                                          \
  X(GraphAddHostNode, 10000, "", GraphAddHostNode, kInitialized, (CUgraphNode* node, CUgraph       \
    graph, const CUgraphNode* dependencies, size_t count, const CUDA_HOST_NODE_PARAMS* params),    \
    (node, graph, dependencies, count, params))                                                    \
  X(GraphHostNodeGetParams, 10000, "", GraphHostNodeGetParams, kInitialized, (CUgraphNode          \
    node, CUDA_HOST_NODE_PARAMS* params), (node, params))                                          \
  X(GraphHostNodeSetParams, 10000, "", GraphHostNodeSetParams, kInitialized, (CUgraphNode          \
    node, const CUDA_HOST_NODE_PARAMS* params), (node, params))                                    \
  X(GraphExecHostNodeSetParams, 10020, "", GraphExecHostNodeSetParams, kInitialized,               \
    (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params), (exec, node,        \
    params))                                                                                       \
  X(GraphAddEventRecordNode, 11010, "", GraphAddEventRecordNode, kInitialized, (CUgraphNode*       \
    node, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUevent event), (node,     \
    graph, dependencies, count, event))                                                            \
  X(GraphAddEventWaitNode, 11010, "", GraphAddEventWaitNode, kInitialized, (CUgraphNode* node,     \
    CUgraph graph, const CUgraphNode* dependencies, size_t count, CUevent event), (node, graph,    \
    dependencies, count, event))                                                                   \
  X(GraphEventRecordNodeGetEvent, 11010, "", GraphEventRecordNodeGetEvent, kInitialized,           \
    (CUgraphNode node, CUevent* event), (node, event))                                             \
  X(GraphEventRecordNodeSetEvent, 11010, "", GraphEventRecordNodeSetEvent, kInitialized,           \
    (CUgraphNode node, CUevent event), (node, event))                                              \
  X(GraphExecEventRecordNodeSetEvent, 11010, "", GraphExecEventRecordNodeSetEvent,                 \
    kInitialized, (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))        \
  X(GraphEventWaitNodeGetEvent, 11010, "", GraphEventWaitNodeGetEvent, kInitialized,               \
    (CUgraphNode node, CUevent* event), (node, event))                                             \
  X(GraphEventWaitNodeSetEvent, 11010, "", GraphEventWaitNodeSetEvent, kInitialized,               \
    (CUgraphNode node, CUevent event), (node, event))                                              \
  X(GraphExecEventWaitNodeSetEvent, 11010, "", GraphExecEventWaitNodeSetEvent, kInitialized,       \
    (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))                      \
  X(GraphAddMemAllocNode, 11040, "", GraphAddMemAllocNode, kInitialized, (CUgraphNode* node,       \
    CUgraph graph, const CUgraphNode* dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS*      \
    params), (node, graph, dependencies, count, params))                                           \
  X(GraphAddMemFreeNode, 11040, "", GraphAddMemFreeNode, kInitialized, (CUgraphNode* node,         \
    CUgraph graph, const CUgraphNode* dependencies, size_t count, CUdeviceptr address), (node,     \
    graph, dependencies, count, address))                                                          \
  X(GraphMemAllocNodeGetParams, 11040, "", GraphMemAllocNodeGetParams, kInitialized,               \
    (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params), (node, params))                        \
  X(GraphMemFreeNodeGetParams, 11040, "", GraphMemFreeNodeGetParams, kInitialized,                 \
    (CUgraphNode node, CUdeviceptr* address), (node, address))                                     \
  X(DeviceGraphMemTrim, 11040, "", DeviceGraphMemTrim, kInitialized, (CUdevice device),            \
    (device))                                                                                      \
  X(DeviceGetGraphMemAttribute, 11040, "", DeviceGetGraphMemAttribute, kInitialized, (CUdevice     \
    device, CUgraphMem_attribute attribute, void* value), (device, attribute, value))              \
  X(DeviceSetGraphMemAttribute, 11040, "", DeviceSetGraphMemAttribute, kInitialized, (CUdevice     \
    device, CUgraphMem_attribute attribute, void* value), (device, attribute, value))              \
  X(GraphNodeGetEnabled, 11060, "", GraphNodeGetEnabled, kInitialized, (CUgraphExec exec,          \
    CUgraphNode node, unsigned* is_enabled), (exec, node, is_enabled))                             \
  X(GraphNodeSetEnabled, 11060, "", GraphNodeSetEnabled, kInitialized, (CUgraphExec exec,          \
    CUgraphNode node, unsigned is_enabled), (exec, node, is_enabled))

#define CUDASIM_GRAPH_TOPOLOGY_ENTRIES(X, T)                                                     \
  X(GraphAddDependencies, 10000, "", GraphAddDependenciesFirst, kInitialized, (CUgraph graph,      \
    const CUgraphNode* from, const CUgraphNode* to, size_t count), (graph, from, to, count))       \
  X(GraphAddDependencies, 12030, "_v2", GraphAddDependencies, kInitialized, (CUgraph graph,        \
    const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count),    \
    (graph, from, to, data, count))                                                                \
  X(GraphRemoveDependencies, 10000, "", GraphRemoveDependenciesFirst, kInitialized, (CUgraph       \
    graph, const CUgraphNode* from, const CUgraphNode* to, size_t count), (graph, from, to,        \
    count))                                                                                        \
  X(GraphRemoveDependencies, 12030, "_v2", GraphRemoveDependencies, kInitialized, (CUgraph         \
    graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t     \
    count), (graph, from, to, data, count))                                                        \
  X(GraphGetEdges, 10000, "", GraphGetEdgesFirst, kInitialized, (CUgraph graph, CUgraphNode*       \
    from, CUgraphNode* to, size_t* count), (graph, from, to, count))                               \
  X(GraphGetEdges, 12030, "_v2", GraphGetEdges, kInitialized, (CUgraph graph, CUgraphNode*         \
    from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count), (graph, from, to, data,          \
    count))                                                                                        \
  X(GraphGetRootNodes, 10000, "", GraphGetRootNodes, kInitialized, (CUgraph graph,                 \
    CUgraphNode* nodes, size_t* count), (graph, nodes, count))                                     \
  X(GraphNodeGetDependencies, 10000, "", GraphNodeGetDependenciesFirst, kInitialized,              \
    (CUgraphNode node, CUgraphNode* nodes, size_t* count), (node, nodes, count))                   \
  X(GraphNodeGetDependencies, 12030, "_v2", GraphNodeGetDependencies, kInitialized,                \
    (CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count), (node, nodes,    \
    data, count))                                                                                  \
  X(GraphNodeGetDependentNodes, 10000, "", GraphNodeGetDependentNodesFirst, kInitialized,          \
    (CUgraphNode node, CUgraphNode* nodes, size_t* count), (node, nodes, count))                   \
  X(GraphNodeGetDependentNodes, 12030, "_v2", GraphNodeGetDependentNodes, kInitialized,            \
    (CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count), (node, nodes,    \
    data, count))

#define CUDASIM_GRAPH_OBJECT_ENTRIES(X, T)                                                     \
  T(GraphInstantiateWithParams, 12000, "", 12000, ptsz, GraphInstantiateWithParams, kInitialized,  \
    (CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), (exec, graph,       \
    params))                                                                                       \
  X(GraphExecUpdate, 10020, "", GraphExecUpdateFirst, kInitialized, (CUgraphExec exec, CUgraph     \
    graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result), (exec, graph, error_node,    \
    result))                                                                                       \
  X(GraphExecUpdate, 12000, "_v2", GraphExecUpdate, kInitialized, (CUgraphExec exec, CUgraph       \
    graph, CUgraphExecUpdateResultInfo* info), (exec, graph, info))                                \
  T(GraphUpload, 11010, "", 11010, ptsz, GraphUpload, kInitialized, (CUgraphExec exec, CUstream    \
    stream), (exec, stream))                                                                       \
  X(GraphExecGetFlags, 12000, "", GraphExecGetFlags, kInitialized, (CUgraphExec exec, cuuint64_t*  \
    flags), (exec, flags))                                                                         \
  X(UserObjectCreate, 11030, "", UserObjectCreate, kInitialized, (CUuserObject* object, void*      \
    data, CUhostFn destroy, unsigned references, unsigned flags), (object, data, destroy,          \
    references, flags))                                                                            \
  X(UserObjectRetain, 11030, "", UserObjectRetain, kInitialized, (CUuserObject object, unsigned    \
    count), (object, count))                                                                       \
  X(UserObjectRelease, 11030, "", UserObjectRelease, kInitialized, (CUuserObject object, unsigned  \
    count), (object, count))                                                                       \
  X(GraphRetainUserObject, 11030, "", GraphRetainUserObject, kInitialized, (CUgraph graph,         \
    CUuserObject object, unsigned count, unsigned flags), (graph, object, count, flags))           \
  X(GraphReleaseUserObject, 11030, "", GraphReleaseUserObject, kInitialized, (CUgraph graph,       \
    CUuserObject object, unsigned count), (graph, object, count))

#define CUDASIM_EVENT_ENTRIES(X, T)                                                            \
  X(EventCreate, 2000, "", EventCreate, kInitialized, (CUevent* event, unsigned flags), (event,    \
    flags))                                                                                        \
  X(EventDestroy, 2000, "", EventDestroy, kInitialized, (CUevent event), (event))                  \
  X(EventDestroy, 4000, "_v2", EventDestroy, kInitialized, (CUevent event), (event))               \
  T(EventRecord, 2000, "", 7000, ptsz, EventRecord, kInitialized, (CUevent event, CUstream         \
    stream), (event, stream))                                                                      \
  T(EventRecordWithFlags, 11010, "", 11010, ptsz, EventRecordWithFlags, kInitialized, (CUevent     \
    event, CUstream stream, unsigned flags), (event, stream, flags))                               \
  X(EventQuery, 2000, "", EventQuery, kCallback, (CUevent event), (event))                         \
  X(EventSynchronize, 2000, "", EventSynchronize, kInitialized, (CUevent event), (event))          \
  X(EventElapsedTime, 2000, "", EventElapsedTime, kInitialized, (float* milliseconds, CUevent      \
    start, CUevent end), (milliseconds, start, end))                                               \
  X(EventElapsedTime, 12080, "_v2", EventElapsedTime, kInitialized, (float* milliseconds,          \
    CUevent start, CUevent end), (milliseconds, start, end))

#define CUDASIM_MODULE_ENTRIES(X, T)                                                           \
  X(ModuleLoad, 2000, "", ModuleLoad, kInitialized, (CUmodule* module, const char* path), (module, \
    path))                                                                                         \
  X(ModuleLoadFatBinary, 2000, "", ModuleLoadFatBinary, kInitialized, (CUmodule* module, const     \
    void* image), (module, image))                                                                 \
  X(ModuleLoadData, 2000, "", ModuleLoadData, kInitialized, (CUmodule* module, const void*         \
    image), (module, image))                                                                       \
  X(ModuleLoadDataEx, 2010, "", ModuleLoadDataEx, kInitialized, (CUmodule* module, const void*     \
    image, unsigned count, CUjit_option* options, void** values), (module, image, count,           \
    options, values))                                                                              \
  X(ModuleUnload, 2000, "", ModuleUnload, kInitialized, (CUmodule module), (module))               \
  X(ModuleGetFunction, 2000, "", ModuleGetFunction, kInitialized, (CUfunction* function,           \
    CUmodule module, const char* name), (function, module, name))

#define CUDASIM_LIBRARY_ENTRIES(X, T)                                                          \
  X(ModuleGetFunctionCount, 12040, "", ModuleGetFunctionCount, kInitialized, (unsigned* count,     \
    CUmodule module), (count, module))                                                             \
  X(ModuleEnumerateFunctions, 12040, "", ModuleEnumerateFunctions, kInitialized, (CUfunction*      \
    functions, unsigned count, CUmodule module), (functions, count, module))                       \
  X(ModuleGetLoadingMode, 11070, "", ModuleGetLoadingMode, kInitialized, (CUmoduleLoadingMode*     \
    mode), (mode))                                                                                 \
  X(FuncGetModule, 11000, "", FuncGetModule, kInitialized, (CUmodule* module, CUfunction           \
    function), (module, function))                                                                 \
  X(FuncGetName, 12030, "", FuncGetName, kInitialized, (const char** name, CUfunction function),   \
    (name, function))                                                                              \
  X(FuncGetParamInfo, 12040, "", FuncGetParamInfo, kInitialized, (CUfunction function, size_t      \
    index, size_t* offset, size_t* size), (function, index, offset, size))                         \
  X(FuncLoad, 12040, "", FuncLoad, kInitialized, (CUfunction function), (function))                \
  X(FuncIsLoaded, 12040, "", FuncIsLoaded, kInitialized, (CUfunctionLoadingState* state,           \
    CUfunction function), (state, function))                                                       \
  X(LibraryLoadData, 12000, "", LibraryLoadData, kInitialized, (CUlibrary* library, const void*    \
    image, CUjit_option* options, void** values, unsigned count, CUlibraryOption* library_options, \
    void** library_values, unsigned library_count), (library, image, options, values, count,       \
    library_options, library_values, library_count))                                               \
  X(LibraryLoadFromFile, 12000, "", LibraryLoadFromFile, kInitialized, (CUlibrary* library, const  \
    char* path, CUjit_option* options, void** values, unsigned count, CUlibraryOption*             \
    library_options, void** library_values, unsigned library_count), (library, path, options,      \
    values, count, library_options, library_values, library_count))                                \
  X(LibraryUnload, 12000, "", LibraryUnload, kInitialized, (CUlibrary library), (library))         \
  X(LibraryGetKernel, 12000, "", LibraryGetKernel, kInitialized, (CUkernel* kernel, CUlibrary      \
    library, const char* name), (kernel, library, name))                                           \
  X(LibraryGetKernelCount, 12040, "", LibraryGetKernelCount, kInitialized, (unsigned* count,       \
    CUlibrary library), (count, library))                                                          \
  X(LibraryEnumerateKernels, 12040, "", LibraryEnumerateKernels, kInitialized, (CUkernel*          \
    kernels, unsigned count, CUlibrary library), (kernels, count, library))                        \
  X(LibraryGetModule, 12000, "", LibraryGetModule, kInitialized, (CUmodule* module, CUlibrary      \
    library), (module, library))                                                                   \
  X(KernelGetFunction, 12000, "", KernelGetFunction, kInitialized, (CUfunction* function,          \
    CUkernel kernel), (function, kernel))                                                          \
  X(KernelGetLibrary, 12050, "", KernelGetLibrary, kInitialized, (CUlibrary* library, CUkernel     \
    kernel), (library, kernel))                                                                    \
  X(KernelGetName, 12030, "", KernelGetName, kInitialized, (const char** name, CUkernel kernel),   \
    (name, kernel))                                                                                \
  X(KernelGetParamInfo, 12040, "", KernelGetParamInfo, kInitialized, (CUkernel kernel, size_t      \
    index, size_t* offset, size_t* size), (kernel, index, offset, size))                           \
  X(KernelGetAttribute, 12000, "", KernelGetAttribute, kInitialized, (int* value,                  \
    CUfunction_attribute attribute, CUkernel kernel, CUdevice device), (value, attribute, kernel,  \
    device))                                                                                       \
  X(KernelSetAttribute, 12000, "", KernelSetAttribute, kInitialized, (CUfunction_attribute         \
    attribute, int value, CUkernel kernel, CUdevice device), (attribute, value, kernel, device))   \
  X(KernelSetCacheConfig, 12000, "", KernelSetCacheConfig, kInitialized, (CUkernel kernel,         \
    CUfunc_cache config, CUdevice device), (kernel, config, device))                               \
  X(LibraryGetGlobal, 12000, "", LibraryGetGlobal, kInitialized, (CUdeviceptr* address, size_t*    \
    size, CUlibrary library, const char* name), (address, size, library, name))                    \
  X(LibraryGetManaged, 12000, "", LibraryGetManaged, kInitialized, (CUdeviceptr* address, size_t*  \
    size, CUlibrary library, const char* name), (address, size, library, name))

// Launches, and what is asked and set of functions for their sake.
#define CUDASIM_LAUNCH_ENTRIES(X, T)                                                           \
  X(FuncGetAttribute, 2020, "", FuncGetAttribute, kInitialized, (int* value,                       \
    CUfunction_attribute attribute, CUfunction function), (value, attribute, function))            \
  X(FuncSetAttribute, 9000, "", FuncSetAttribute, kInitialized, (CUfunction function,              \
    CUfunction_attribute attribute, int value), (function, attribute, value))                      \
  X(FuncSetCacheConfig, 3000, "", FuncSetCacheConfig, kInitialized, (CUfunction function,          \
    CUfunc_cache config), (function, config))                                                      \
  X(ModuleGetGlobal, 3020, "_v2", ModuleGetGlobal, kInitialized, (CUdeviceptr* address, size_t*    \
    size, CUmodule module, const char* name), (address, size, module, name))                       \
  T(LaunchKernel, 4000, "", 7000, ptsz, LaunchKernel, kInitialized, (CUfunction function,          \
    unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
    unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra),    \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,            \
    parameters, extra))                                                                            \
  T(LaunchKernelEx, 11060, "", 11060, ptsz, LaunchKernelEx, kInitialized, (const CUlaunchConfig*   \
    config, CUfunction function, void** parameters, void** extra), (config, function, parameters,  \
    extra))                                                                                        \
  T(LaunchCooperativeKernel, 9000, "", 9000, ptsz, LaunchCooperativeKernel, kInitialized,          \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
    unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void**             \
    parameters), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,       \
    stream, parameters))

#define CUDASIM_STEPS_ENTRIES(X, T)                                                            \
  X(FuncSetBlockShape, 2000, "", FuncSetBlockShape, kInitialized, (CUfunction function, int x,     \
    int y, int z), (function, x, y, z))                                                            \
  X(FuncSetSharedSize, 2000, "", FuncSetSharedSize, kInitialized, (CUfunction function, unsigned   \
    bytes), (function, bytes))                                                                     \
  X(ParamSetSize, 2000, "", ParamSetSize, kInitialized, (CUfunction function, unsigned bytes),     \
    (function, bytes))                                                                             \
  X(ParamSeti, 2000, "", ParamSeti, kInitialized, (CUfunction function, int offset, unsigned       \
    value), (function, offset, value))                                                             \
  X(ParamSetf, 2000, "", ParamSetf, kInitialized, (CUfunction function, int offset, float value),  \
    (function, offset, value))                                                                     \
  X(ParamSetv, 2000, "", ParamSetv, kInitialized, (CUfunction function, int offset, void* value,   \
    unsigned bytes), (function, offset, value, bytes))                                             \
  X(Launch, 2000, "", LaunchOnce, kInitialized, (CUfunction function), (function))                 \
  X(LaunchGrid, 2000, "", LaunchGrid, kInitialized, (CUfunction function, int width, int height),  \
    (function, width, height))                                                                     \
  X(LaunchGridAsync, 2000, "", LaunchGridAsync, kInitialized, (CUfunction function, int width, int \
    height, CUstream stream), (function, width, height, stream))

#define CUDASIM_OCCUPANCY_ENTRIES(X, T)                                                        \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, 6050, "",                                           \
    OccupancyMaxActiveBlocksPerMultiprocessor, kInitialized, (int* blocks, CUfunction function,    \
    int threads, size_t shared_bytes), (blocks, function, threads, shared_bytes))                  \
  X(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, "",                                  \
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, kInitialized, (int* blocks, CUfunction     \
    function, int threads, size_t shared_bytes, unsigned flags), (blocks, function, threads,       \
    shared_bytes, flags))                                                                          \
  X(OccupancyMaxPotentialBlockSize, 6050, "", OccupancyMaxPotentialBlockSize, kInitialized, (int*  \
    blocks, int* threads, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared_bytes,  \
    int limit), (blocks, threads, function, shared_of, shared_bytes, limit))                       \
  X(OccupancyMaxPotentialBlockSizeWithFlags, 7000, "", OccupancyMaxPotentialBlockSizeWithFlags,    \
    kInitialized, (int* blocks, int* threads, CUfunction function, CUoccupancyB2DSize shared_of,   \
    size_t shared_bytes, int limit, unsigned flags), (blocks, threads, function, shared_of,        \
    shared_bytes, limit, flags))                                                                   \
  X(OccupancyAvailableDynamicSMemPerBlock, 10020, "", OccupancyAvailableDynamicSMemPerBlock,       \
    kInitialized, (size_t* bytes, CUfunction function, int blocks, int threads), (bytes, function, \
    blocks, threads))                                                                              \
  X(OccupancyMaxActiveClusters, 11070, "", OccupancyMaxActiveClusters, kInitialized, (int*         \
    clusters, CUfunction function, const CUlaunchConfig* config), (clusters, function, config))    \
  X(OccupancyMaxPotentialClusterSize, 11070, "", OccupancyMaxPotentialClusterSize, kInitialized,   \
    (int* size, CUfunction function, const CUlaunchConfig* config), (size, function, config))

#define CUDASIM_LINK_ENTRIES(X, T)                                                             \
  X(LinkCreate, 5050, "", LinkCreate, kInitialized, (unsigned count, CUjit_option* options,        \
    void** values, CUlinkState* state), (count, options, values, state))                           \
  X(LinkCreate, 6050, "_v2", LinkCreate, kInitialized, (unsigned count, CUjit_option* options,     \
    void** values, CUlinkState* state), (count, options, values, state))                           \
  X(LinkAddData, 5050, "", LinkAddData, kInitialized, (CUlinkState state, CUjitInputType type,     \
    void* data, size_t size, const char* name, unsigned count, CUjit_option* options,              \
    void** values), (state, type, data, size, name, count, options, values))                       \
  X(LinkAddData, 6050, "_v2", LinkAddData, kInitialized, (CUlinkState state, CUjitInputType type,  \
    void* data, size_t size, const char* name, unsigned count, CUjit_option* options,              \
    void** values), (state, type, data, size, name, count, options, values))                       \
  X(LinkAddFile, 5050, "", LinkAddFile, kInitialized, (CUlinkState state, CUjitInputType type,     \
    const char* path, unsigned count, CUjit_option* options, void** values), (state, type, path,   \
    count, options, values))                                                                       \
  X(LinkAddFile, 6050, "_v2", LinkAddFile, kInitialized, (CUlinkState state, CUjitInputType type,  \
    const char* path, unsigned count, CUjit_option* options, void** values), (state, type, path,   \
    count, options, values))                                                                       \
  X(LinkComplete, 5050, "", LinkComplete, kInitialized, (CUlinkState state, void** cubin,          \
    size_t* size), (state, cubin, size))                                                           \
  X(LinkDestroy, 5050, "", LinkDestroy, kInitialized, (CUlinkState state), (state))

#define CUDASIM_ENTRIES(X, T)       \
  CUDASIM_PROCESS_ENTRIES(X, T)     \
  CUDASIM_DEVICE_ENTRIES(X, T)      \
  CUDASIM_CONTEXT_ENTRIES(X, T)     \
  CUDASIM_PRIMARY_ENTRIES(X, T)     \
  CUDASIM_GREEN_ENTRIES(X, T)       \
  CUDASIM_MEMORY_ENTRIES(X, T)      \
  CUDASIM_POINTER_ENTRIES(X, T)     \
  CUDASIM_POOL_ENTRIES(X, T)        \
  CUDASIM_VIRTUAL_MEMORY_ENTRIES(X, T) \
  CUDASIM_REGISTER_ENTRIES(X, T)    \
  CUDASIM_COPY_ENTRIES(X, T)        \
  CUDASIM_BATCH_ENTRIES(X, T)       \
  CUDASIM_AREA_ENTRIES(X, T)        \
  CUDASIM_ARRAY_ENTRIES(X, T)       \
  CUDASIM_TEXTURE_ENTRIES(X, T)     \
  CUDASIM_STREAM_ENTRIES(X, T)      \
  CUDASIM_STREAM_ATTRIBUTE_ENTRIES(X, T) \
  CUDASIM_CAPTURE_ENTRIES(X, T)     \
  CUDASIM_GRAPH_ENTRIES(X, T)       \
  CUDASIM_GRAPH_TOPOLOGY_ENTRIES(X, T) \
  CUDASIM_GRAPH_OBJECT_ENTRIES(X, T) \
  CUDASIM_EVENT_ENTRIES(X, T)       \
  CUDASIM_MODULE_ENTRIES(X, T)      \
  CUDASIM_LIBRARY_ENTRIES(X, T)     \
  CUDASIM_LAUNCH_ENTRIES(X, T)      \
  CUDASIM_STEPS_ENTRIES(X, T)       \
  CUDASIM_OCCUPANCY_ENTRIES(X, T)   \
  CUDASIM_LINK_ENTRIES(X, T)        \
  CUDASIM_UNMODELLED_ENTRIES(X, T)  \
  CUDASIM_LATER_ENTRIES(X, T)       \
  CUDASIM_GRAPHICS_ENTRIES(X, T)
// clang-format on

#endif  // CUDASIM_DRIVER_ENTRY_LIST_H_
