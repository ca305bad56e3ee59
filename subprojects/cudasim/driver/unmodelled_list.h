// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of entry_list.h whose entries are exported and not modelled: NotModelled() counts the
// call, and returns CUDA_ERROR_NOT_SUPPORTED. Whatever it is called with, so a row has no
// parameters: the calling conventions of x86-64 and AArch64 let it be called with any.
//
// To model one, move its row to entry_list.h, and write its parameters and its function.

#ifndef CUDASIM_DRIVER_UNMODELLED_LIST_H_
#define CUDASIM_DRIVER_UNMODELLED_LIST_H_

// clang-format off
#define CUDASIM_UNMODELLED_ENTRIES(X, T)                                                          \
  X(Array3DCreate, 2000, "", NotModelled, kInitialized, (), ())                                   \
  X(Array3DGetDescriptor, 2000, "", NotModelled, kInitialized, (), ())                            \
  X(ArrayCreate, 2000, "", NotModelled, kInitialized, (), ())                                     \
  X(ArrayGetDescriptor, 2000, "", NotModelled, kInitialized, (), ())                              \
  X(ArrayGetMemoryRequirements, 11060, "", NotModelled, kInitialized, (), ())                     \
  X(ArrayGetPlane, 11020, "", NotModelled, kInitialized, (), ())                                  \
  X(ArrayGetSparseProperties, 11010, "", NotModelled, kInitialized, (), ())                       \
  X(CheckpointProcessCheckpoint, 12080, "", NotModelled, kInitialized, (), ())                    \
  X(CheckpointProcessGetRestoreThreadId, 12080, "", NotModelled, kInitialized, (), ())            \
  X(CheckpointProcessGetState, 12080, "", NotModelled, kInitialized, (), ())                      \
  X(CheckpointProcessLock, 12080, "", NotModelled, kInitialized, (), ())                          \
  X(CheckpointProcessRestore, 12080, "", NotModelled, kInitialized, (), ())                       \
  X(CheckpointProcessUnlock, 12080, "", NotModelled, kInitialized, (), ())                        \
  X(CoredumpGetAttribute, 12010, "", NotModelled, kInitialized, (), ())                           \
  X(CoredumpGetAttributeGlobal, 12010, "", NotModelled, kInitialized, (), ())                     \
  X(CoredumpSetAttribute, 12010, "", NotModelled, kInitialized, (), ())                           \
  X(CoredumpSetAttributeGlobal, 12010, "", NotModelled, kInitialized, (), ())                     \
  X(DestroyExternalMemory, 10000, "", NotModelled, kInitialized, (), ())                          \
  X(DestroyExternalSemaphore, 10000, "", NotModelled, kInitialized, (), ())                       \
  X(DeviceGetHostAtomicCapabilities, 13000, "", NotModelled, kInitialized, (), ())                \
  X(DeviceGetLuid, 10000, "", NotModelled, kInitialized, (), ())                                  \
  X(DeviceGetNvSciSyncAttributes, 10020, "", NotModelled, kInitialized, (), ())                   \
  X(DeviceGetP2PAtomicCapabilities, 13000, "", NotModelled, kInitialized, (), ())                 \
  X(DeviceGetProperties, 2000, "", NotModelled, kInitialized, (), ())                             \
  X(DeviceGetTexture1DLinearMaxWidth, 11010, "", NotModelled, kInitialized, (), ())               \
  X(DeviceRegisterAsyncNotification, 12040, "", NotModelled, kInitialized, (), ())                \
  X(DeviceTotalMem, 2000, "", NotModelled, kInitialized, (), ())                                  \
  X(DeviceUnregisterAsyncNotification, 12040, "", NotModelled, kInitialized, (), ())              \
  X(ExternalMemoryGetMappedBuffer, 10000, "", NotModelled, kInitialized, (), ())                  \
  X(ExternalMemoryGetMappedMipmappedArray, 10000, "", NotModelled, kInitialized, (), ())          \
  X(FlushGPUDirectRDMAWrites, 11030, "", NotModelled, kInitialized, (), ())                       \
  X(FuncSetSharedMemConfig, 4020, "", NotModelled, kInitialized, (), ())                          \
  X(GraphAddBatchMemOpNode, 11070, "", NotModelled, kInitialized, (), ())                         \
  X(GraphAddExternalSemaphoresSignalNode, 11020, "", NotModelled, kInitialized, (), ())           \
  X(GraphAddExternalSemaphoresWaitNode, 11020, "", NotModelled, kInitialized, (), ())             \
  X(GraphBatchMemOpNodeGetParams, 11070, "", NotModelled, kInitialized, (), ())                   \
  X(GraphBatchMemOpNodeSetParams, 11070, "", NotModelled, kInitialized, (), ())                   \
  X(GraphConditionalHandleCreate, 12030, "", NotModelled, kInitialized, (), ())                   \
  X(GraphDebugDotPrint, 11030, "", NotModelled, kInitialized, (), ())                             \
  X(GraphExecBatchMemOpNodeSetParams, 11070, "", NotModelled, kInitialized, (), ())               \
  X(GraphExecChildGraphNodeSetParams, 11010, "", NotModelled, kInitialized, (), ())               \
  X(GraphExecExternalSemaphoresSignalNodeSetParams, 11020, "",                                    \
    NotModelled, kInitialized, (), ())                                                            \
  X(GraphExecExternalSemaphoresWaitNodeSetParams, 11020, "", NotModelled, kInitialized, (), ())   \
  X(GraphExternalSemaphoresSignalNodeGetParams, 11020, "", NotModelled, kInitialized, (), ())     \
  X(GraphExternalSemaphoresSignalNodeSetParams, 11020, "", NotModelled, kInitialized, (), ())     \
  X(GraphExternalSemaphoresWaitNodeGetParams, 11020, "", NotModelled, kInitialized, (), ())       \
  X(GraphExternalSemaphoresWaitNodeSetParams, 11020, "", NotModelled, kInitialized, (), ())       \
  X(GraphKernelNodeCopyAttributes, 11000, "", NotModelled, kInitialized, (), ())                  \
  X(GraphKernelNodeGetAttribute, 11000, "", NotModelled, kInitialized, (), ())                    \
  T(GraphicsMapResources, 3000, "", 7000, ptsz, NotModelled, kInitialized, (), ())                \
  X(GraphicsResourceGetMappedMipmappedArray, 5000, "", NotModelled, kInitialized, (), ())         \
  X(GraphicsResourceGetMappedPointer, 3000, "", NotModelled, kInitialized, (), ())                \
  X(GraphicsResourceGetMappedPointer, 3020, "_v2", NotModelled, kInitialized, (), ())             \
  X(GraphicsResourceSetMapFlags, 3000, "", NotModelled, kInitialized, (), ())                     \
  X(GraphicsResourceSetMapFlags, 6050, "_v2", NotModelled, kInitialized, (), ())                  \
  X(GraphicsSubResourceGetMappedArray, 3000, "", NotModelled, kInitialized, (), ())               \
  T(GraphicsUnmapResources, 3000, "", 7000, ptsz, NotModelled, kInitialized, (), ())              \
  X(GraphicsUnregisterResource, 3000, "", NotModelled, kInitialized, (), ())                      \
  X(ImportExternalMemory, 10000, "", NotModelled, kInitialized, (), ())                           \
  X(ImportExternalSemaphore, 10000, "", NotModelled, kInitialized, (), ())                        \
  X(LaunchCooperativeKernelMultiDevice, 9000, "", NotModelled, kInitialized, (), ())              \
  X(LibraryGetUnifiedFunction, 12000, "", NotModelled, kInitialized, (), ())                      \
  X(LogsCurrent, 12090, "", NotModelled, kInitialized, (), ())                                    \
  X(LogsDumpToFile, 12090, "", NotModelled, kInitialized, (), ())                                 \
  X(LogsDumpToMemory, 12090, "", NotModelled, kInitialized, (), ())                               \
  X(MemAlloc, 2000, "", NotModelled, kInitialized, (), ())                                        \
  X(MemAllocHost, 2000, "", NotModelled, kInitialized, (), ())                                    \
  X(MemAllocPitch, 2000, "", NotModelled, kInitialized, (), ())                                   \
  T(MemBatchDecompressAsync, 12060, "", 12060, ptsz, NotModelled, kInitialized, (), ())           \
  T(MemDiscardAndPrefetchBatchAsync, 13000, "", 13000, ptsz, NotModelled, kInitialized, (), ())   \
  T(MemDiscardBatchAsync, 13000, "", 13000, ptsz, NotModelled, kInitialized, (), ())              \
  X(MemFree, 2000, "", NotModelled, kInitialized, (), ())                                         \
  X(MemGetAddressRange, 2000, "", NotModelled, kInitialized, (), ())                              \
  X(MemGetDefaultMemPool, 13000, "", NotModelled, kInitialized, (), ())                           \
  X(MemGetHandleForAddressRange, 11070, "", NotModelled, kInitialized, (), ())                    \
  X(MemGetInfo, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemGetMemPool, 13000, "", NotModelled, kInitialized, (), ())                                  \
  X(MemHostGetDevicePointer, 2020, "", NotModelled, kInitialized, (), ())                         \
  T(MemMapArrayAsync, 11010, "", 11010, ptsz, NotModelled, kInitialized, (), ())                  \
  T(MemPrefetchBatchAsync, 13000, "", 13000, ptsz, NotModelled, kInitialized, (), ())             \
  X(MemSetMemPool, 13000, "", NotModelled, kInitialized, (), ())                                  \
  X(Memcpy2D, 2000, "", NotModelled, kInitialized, (), ())                                        \
  X(Memcpy2DAsync, 2000, "", NotModelled, kInitialized, (), ())                                   \
  X(Memcpy2DUnaligned, 2000, "", NotModelled, kInitialized, (), ())                               \
  X(Memcpy3D, 2000, "", NotModelled, kInitialized, (), ())                                        \
  X(Memcpy3DAsync, 2000, "", NotModelled, kInitialized, (), ())                                   \
  T(Memcpy3DBatchAsync, 12080, "", 12080, ptsz, NotModelled, kInitialized, (), ())                \
  T(Memcpy3DBatchAsync, 13000, "_v2", 13000, ptsz, NotModelled, kInitialized, (), ())             \
  X(MemcpyAtoA, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyAtoD, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyAtoH, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyAtoHAsync, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(MemcpyDtoA, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyDtoD, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyDtoDAsync, 3000, "", NotModelled, kInitialized, (), ())                                 \
  X(MemcpyDtoH, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyDtoHAsync, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(MemcpyHtoA, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyHtoAAsync, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(MemcpyHtoD, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemcpyHtoDAsync, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(MemsetD16, 2000, "", NotModelled, kInitialized, (), ())                                       \
  X(MemsetD2D16, 2000, "", NotModelled, kInitialized, (), ())                                     \
  X(MemsetD2D32, 2000, "", NotModelled, kInitialized, (), ())                                     \
  X(MemsetD2D8, 2000, "", NotModelled, kInitialized, (), ())                                      \
  X(MemsetD32, 2000, "", NotModelled, kInitialized, (), ())                                       \
  X(MemsetD8, 2000, "", NotModelled, kInitialized, (), ())                                        \
  X(MipmappedArrayGetMemoryRequirements, 11060, "", NotModelled, kInitialized, (), ())            \
  X(MipmappedArrayGetSparseProperties, 11010, "", NotModelled, kInitialized, (), ())              \
  X(ModuleGetGlobal, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(ModuleGetSurfRef, 3000, "", NotModelled, kInitialized, (), ())                                \
  X(ModuleGetTexRef, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(MulticastAddDevice, 12010, "", NotModelled, kInitialized, (), ())                             \
  X(MulticastBindAddr, 12010, "", NotModelled, kInitialized, (), ())                              \
  X(MulticastBindMem, 12010, "", NotModelled, kInitialized, (), ())                               \
  X(MulticastCreate, 12010, "", NotModelled, kInitialized, (), ())                                \
  X(MulticastGetGranularity, 12010, "", NotModelled, kInitialized, (), ())                        \
  X(MulticastUnbind, 12010, "", NotModelled, kInitialized, (), ())                                \
  X(ParamSetTexRef, 2000, "", NotModelled, kInitialized, (), ())                                  \
  X(ProfilerInitialize, 4000, "", NotModelled, kInitialized, (), ())                              \
  T(SignalExternalSemaphoresAsync, 10000, "", 10000, ptsz, NotModelled, kInitialized, (), ())     \
  T(StreamAttachMemAsync, 6000, "", 7000, ptsz, NotModelled, kInitialized, (), ())                \
  T(StreamBatchMemOp, 8000, "", 8000, ptsz, NotModelled, kInitialized, (), ())                    \
  T(StreamBatchMemOp, 11070, "_v2", 11070, ptsz, NotModelled, kInitialized, (), ())               \
  T(StreamBeginCaptureToGraph, 12030, "", 12030, ptsz, NotModelled, kInitialized, (), ())         \
  T(StreamWaitValue32, 8000, "", 8000, ptsz, NotModelled, kInitialized, (), ())                   \
  T(StreamWaitValue32, 11070, "_v2", 11070, ptsz, NotModelled, kInitialized, (), ())              \
  T(StreamWaitValue64, 9000, "", 9000, ptsz, NotModelled, kInitialized, (), ())                   \
  T(StreamWaitValue64, 11070, "_v2", 11070, ptsz, NotModelled, kInitialized, (), ())              \
  T(StreamWriteValue32, 8000, "", 8000, ptsz, NotModelled, kInitialized, (), ())                  \
  T(StreamWriteValue32, 11070, "_v2", 11070, ptsz, NotModelled, kInitialized, (), ())             \
  T(StreamWriteValue64, 9000, "", 9000, ptsz, NotModelled, kInitialized, (), ())                  \
  T(StreamWriteValue64, 11070, "_v2", 11070, ptsz, NotModelled, kInitialized, (), ())             \
  X(SurfRefGetArray, 3000, "", NotModelled, kInitialized, (), ())                                 \
  X(SurfRefSetArray, 3000, "", NotModelled, kInitialized, (), ())                                 \
  X(TensorMapEncodeIm2col, 12000, "", NotModelled, kInitialized, (), ())                          \
  X(TensorMapEncodeIm2colWide, 12080, "", NotModelled, kInitialized, (), ())                      \
  X(TensorMapEncodeTiled, 12000, "", NotModelled, kInitialized, (), ())                           \
  X(TensorMapReplaceAddress, 12000, "", NotModelled, kInitialized, (), ())                        \
  X(TexRefCreate, 2000, "", NotModelled, kInitialized, (), ())                                    \
  X(TexRefDestroy, 2000, "", NotModelled, kInitialized, (), ())                                   \
  X(TexRefGetAddress, 2000, "", NotModelled, kInitialized, (), ())                                \
  X(TexRefGetAddress, 3020, "_v2", NotModelled, kInitialized, (), ())                             \
  X(TexRefGetAddressMode, 2000, "", NotModelled, kInitialized, (), ())                            \
  X(TexRefGetArray, 2000, "", NotModelled, kInitialized, (), ())                                  \
  X(TexRefGetBorderColor, 8000, "", NotModelled, kInitialized, (), ())                            \
  X(TexRefGetFilterMode, 2000, "", NotModelled, kInitialized, (), ())                             \
  X(TexRefGetFlags, 2000, "", NotModelled, kInitialized, (), ())                                  \
  X(TexRefGetFormat, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(TexRefGetMaxAnisotropy, 5000, "", NotModelled, kInitialized, (), ())                          \
  X(TexRefGetMipmapFilterMode, 5000, "", NotModelled, kInitialized, (), ())                       \
  X(TexRefGetMipmapLevelBias, 5000, "", NotModelled, kInitialized, (), ())                        \
  X(TexRefGetMipmapLevelClamp, 5000, "", NotModelled, kInitialized, (), ())                       \
  X(TexRefGetMipmappedArray, 5000, "", NotModelled, kInitialized, (), ())                         \
  X(TexRefSetAddress, 2000, "", NotModelled, kInitialized, (), ())                                \
  X(TexRefSetAddress, 3020, "_v2", NotModelled, kInitialized, (), ())                             \
  X(TexRefSetAddress2D, 2020, "", NotModelled, kInitialized, (), ())                              \
  X(TexRefSetAddress2D, 3020, "_v2", NotModelled, kInitialized, (), ())                           \
  X(TexRefSetAddress2D, 4010, "_v3", NotModelled, kInitialized, (), ())                           \
  X(TexRefSetAddressMode, 2000, "", NotModelled, kInitialized, (), ())                            \
  X(TexRefSetArray, 2000, "", NotModelled, kInitialized, (), ())                                  \
  X(TexRefSetBorderColor, 8000, "", NotModelled, kInitialized, (), ())                            \
  X(TexRefSetFilterMode, 2000, "", NotModelled, kInitialized, (), ())                             \
  X(TexRefSetFlags, 2000, "", NotModelled, kInitialized, (), ())                                  \
  X(TexRefSetFormat, 2000, "", NotModelled, kInitialized, (), ())                                 \
  X(TexRefSetMaxAnisotropy, 5000, "", NotModelled, kInitialized, (), ())                          \
  X(TexRefSetMipmapFilterMode, 5000, "", NotModelled, kInitialized, (), ())                       \
  X(TexRefSetMipmapLevelBias, 5000, "", NotModelled, kInitialized, (), ())                        \
  X(TexRefSetMipmapLevelClamp, 5000, "", NotModelled, kInitialized, (), ())                       \
  X(TexRefSetMipmappedArray, 5000, "", NotModelled, kInitialized, (), ())                         \
  T(WaitExternalSemaphoresAsync, 10000, "", 10000, ptsz, NotModelled, kInitialized, (), ())

// Of the headers of CUDA 13.1 to 13.5, with the versions of their typedefs. The simulation compiles
// with those of 13.0, which have none to hold a row against.
#define CUDASIM_LATER_ENTRIES(X, T)                                                               \
  X(CheckpointOperationComplete, 13040, "", NotModelled, kInitialized, (), ())                    \
  X(CoredumpDeregisterCompleteCallback, 13020, "", NotModelled, kInitialized, (), ())             \
  X(CoredumpDeregisterStartCallback, 13020, "", NotModelled, kInitialized, (), ())                \
  X(CoredumpRegisterCompleteCallback, 13020, "", NotModelled, kInitialized, (), ())               \
  X(CoredumpRegisterStartCallback, 13020, "", NotModelled, kInitialized, (), ())                  \
  X(DeviceGetCliqueCount, 13040, "", NotModelled, kInitialized, (), ())                           \
  X(DeviceGetCliqueInfo, 13040, "", NotModelled, kInitialized, (), ())                            \
  X(DeviceGetFabricClusterUuid, 13040, "", NotModelled, kInitialized, (), ())                     \
  T(FabricCpyBatchAsync, 13050, "", 13050, ptsz, NotModelled, kInitialized, (), ())               \
  X(FuncGetParamCount, 13020, "", NotModelled, kInitialized, (), ())                              \
  X(GraphAddNode, 13040, "_v3", NotModelled, kInitialized, (), ())                                \
  X(GraphExecGetId, 13010, "", NotModelled, kInitialized, (), ())                                 \
  X(GraphGetId, 13010, "", NotModelled, kInitialized, (), ())                                     \
  X(GraphNodeGetContainingGraph, 13010, "", NotModelled, kInitialized, (), ())                    \
  X(GraphNodeGetLocalId, 13010, "", NotModelled, kInitialized, (), ())                            \
  X(GraphNodeGetParams, 13020, "", NotModelled, kInitialized, (), ())                             \
  X(GraphNodeGetToolsId, 13010, "", NotModelled, kInitialized, (), ())                            \
  X(GraphNodeSetParams, 13040, "_v2", NotModelled, kInitialized, (), ())                          \
  X(KernelGetParamCount, 13020, "", NotModelled, kInitialized, (), ())                            \
  T(LaunchHostFunc, 13010, "_v2", 13010, ptsz, NotModelled, kInitialized, (), ())                 \
  X(LogicalEndpointAddDevice, 13030, "", NotModelled, kInitialized, (), ())                       \
  X(LogicalEndpointBindAddr, 13030, "", NotModelled, kInitialized, (), ())                        \
  X(LogicalEndpointBindMem, 13030, "", NotModelled, kInitialized, (), ())                         \
  X(LogicalEndpointCreate, 13030, "", NotModelled, kInitialized, (), ())                          \
  X(LogicalEndpointDestroy, 13030, "", NotModelled, kInitialized, (), ())                         \
  X(LogicalEndpointExport, 13030, "", NotModelled, kInitialized, (), ())                          \
  X(LogicalEndpointGetLimits, 13030, "", NotModelled, kInitialized, (), ())                       \
  X(LogicalEndpointIdRelease, 13030, "", NotModelled, kInitialized, (), ())                       \
  X(LogicalEndpointIdReserve, 13030, "", NotModelled, kInitialized, (), ())                       \
  X(LogicalEndpointImport, 13030, "", NotModelled, kInitialized, (), ())                          \
  X(LogicalEndpointQuery, 13030, "", NotModelled, kInitialized, (), ())                           \
  X(LogicalEndpointUnbind, 13030, "", NotModelled, kInitialized, (), ())                          \
  X(MemGetLocationInfo, 13040, "", NotModelled, kInitialized, (), ())                             \
  T(Memcpy3DWithAttributesAsync, 13020, "", 13020, ptsz, NotModelled, kInitialized, (), ())       \
  T(MemcpyWithAttributesAsync, 13020, "", 13020, ptsz, NotModelled, kInitialized, (), ())         \
  X(MulticastBindAddr, 13010, "_v2", NotModelled, kInitialized, (), ())                           \
  X(MulticastBindMem, 13010, "_v2", NotModelled, kInitialized, (), ())                            \
  T(StreamBeginCaptureToCig, 13010, "", 13010, ptsz, NotModelled, kInitialized, (), ())           \
  T(StreamBeginRecaptureToGraph, 13030, "", 13030, ptsz, NotModelled, kInitialized, (), ())       \
  T(StreamEndCaptureToCig, 13010, "", 13010, ptsz, NotModelled, kInitialized, (), ())             \
  X(TensorMapSetAllocationClass, 13050, "", NotModelled, kInitialized, (), ())

// Declared by cudaGL.h, cudaEGL.h and cudaVDPAU.h. Their typedefs need headers that are not of the
// toolkit: no version here is held against them.
#define CUDASIM_GRAPHICS_ENTRIES(X, T)                                                            \
  X(EGLStreamConsumerAcquireFrame, 7000, "", NotModelled, kInitialized, (), ())                   \
  X(EGLStreamConsumerConnect, 7000, "", NotModelled, kInitialized, (), ())                        \
  X(EGLStreamConsumerConnectWithFlags, 8000, "", NotModelled, kInitialized, (), ())               \
  X(EGLStreamConsumerDisconnect, 7000, "", NotModelled, kInitialized, (), ())                     \
  X(EGLStreamConsumerReleaseFrame, 7000, "", NotModelled, kInitialized, (), ())                   \
  X(EGLStreamProducerConnect, 7000, "", NotModelled, kInitialized, (), ())                        \
  X(EGLStreamProducerDisconnect, 7000, "", NotModelled, kInitialized, (), ())                     \
  X(EGLStreamProducerPresentFrame, 7000, "", NotModelled, kInitialized, (), ())                   \
  X(EGLStreamProducerReturnFrame, 7000, "", NotModelled, kInitialized, (), ())                    \
  X(EventCreateFromEGLSync, 9000, "", NotModelled, kInitialized, (), ())                          \
  X(GLCtxCreate, 2000, "", NotModelled, kInitialized, (), ())                                     \
  X(GLCtxCreate, 3020, "_v2", NotModelled, kInitialized, (), ())                                  \
  X(GLGetDevices, 4010, "", NotModelled, kInitialized, (), ())                                    \
  X(GLGetDevices, 6050, "_v2", NotModelled, kInitialized, (), ())                                 \
  X(GLInit, 2000, "", NotModelled, kInitialized, (), ())                                          \
  X(GLMapBufferObject, 2000, "", NotModelled, kInitialized, (), ())                               \
  T(GLMapBufferObject, 3020, "_v2", 7000, ptds, NotModelled, kInitialized, (), ())                \
  X(GLMapBufferObjectAsync, 2030, "", NotModelled, kInitialized, (), ())                          \
  T(GLMapBufferObjectAsync, 3020, "_v2", 7000, ptsz, NotModelled, kInitialized, (), ())           \
  X(GLRegisterBufferObject, 2000, "", NotModelled, kInitialized, (), ())                          \
  X(GLSetBufferObjectMapFlags, 2030, "", NotModelled, kInitialized, (), ())                       \
  X(GLUnmapBufferObject, 2000, "", NotModelled, kInitialized, (), ())                             \
  X(GLUnmapBufferObjectAsync, 2030, "", NotModelled, kInitialized, (), ())                        \
  X(GLUnregisterBufferObject, 2000, "", NotModelled, kInitialized, (), ())                        \
  X(GraphicsEGLRegisterImage, 7000, "", NotModelled, kInitialized, (), ())                        \
  X(GraphicsGLRegisterBuffer, 3000, "", NotModelled, kInitialized, (), ())                        \
  X(GraphicsGLRegisterImage, 3000, "", NotModelled, kInitialized, (), ())                         \
  X(GraphicsResourceGetMappedEglFrame, 7000, "", NotModelled, kInitialized, (), ())               \
  X(GraphicsVDPAURegisterOutputSurface, 3010, "", NotModelled, kInitialized, (), ())              \
  X(GraphicsVDPAURegisterVideoSurface, 3010, "", NotModelled, kInitialized, (), ())               \
  X(VDPAUCtxCreate, 3010, "", NotModelled, kInitialized, (), ())                                  \
  X(VDPAUCtxCreate, 3020, "_v2", NotModelled, kInitialized, (), ())                               \
  X(VDPAUGetDevice, 3010, "", NotModelled, kInitialized, (), ())
// clang-format on

#endif  // CUDASIM_DRIVER_UNMODELLED_LIST_H_
