// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cudaDeviceProp: most of it is the driver's attributes in other words.

#include <cuda.h>

#include <cstring>

#include "runtime/api.h"
#include "runtime/driver.h"

namespace cudasim::runtime {
namespace {

// Some members are int, some size_t, some unsigned.
template <typename Member>
CUresult Fill(Member* member, CUdevice_attribute attribute, int device) {
  int value = 0;
  const CUresult code = Driver().cuDeviceGetAttribute(&value, attribute, device);
  *member = static_cast<Member>(value);
  return code;
}

CUresult FillAttributes(cudaDeviceProp* properties, int device) {
#define CUDASIM_RUNTIME_FILL(member, attribute)                                                 \
  if (const CUresult code = Fill(&properties->member, CU_DEVICE_ATTRIBUTE_##attribute, device); \
      code != CUDA_SUCCESS) {                                                                   \
    return code;                                                                                \
  }
  CUDASIM_RUNTIME_FILL(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)
  CUDASIM_RUNTIME_FILL(regsPerBlock, MAX_REGISTERS_PER_BLOCK)
  CUDASIM_RUNTIME_FILL(warpSize, WARP_SIZE)
  CUDASIM_RUNTIME_FILL(memPitch, MAX_PITCH)
  CUDASIM_RUNTIME_FILL(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
  CUDASIM_RUNTIME_FILL(maxThreadsDim[0], MAX_BLOCK_DIM_X)
  CUDASIM_RUNTIME_FILL(maxThreadsDim[1], MAX_BLOCK_DIM_Y)
  CUDASIM_RUNTIME_FILL(maxThreadsDim[2], MAX_BLOCK_DIM_Z)
  CUDASIM_RUNTIME_FILL(maxGridSize[0], MAX_GRID_DIM_X)
  CUDASIM_RUNTIME_FILL(maxGridSize[1], MAX_GRID_DIM_Y)
  CUDASIM_RUNTIME_FILL(maxGridSize[2], MAX_GRID_DIM_Z)
  CUDASIM_RUNTIME_FILL(totalConstMem, TOTAL_CONSTANT_MEMORY)
  CUDASIM_RUNTIME_FILL(major, COMPUTE_CAPABILITY_MAJOR)
  CUDASIM_RUNTIME_FILL(minor, COMPUTE_CAPABILITY_MINOR)
  CUDASIM_RUNTIME_FILL(textureAlignment, TEXTURE_ALIGNMENT)
  CUDASIM_RUNTIME_FILL(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)
  CUDASIM_RUNTIME_FILL(multiProcessorCount, MULTIPROCESSOR_COUNT)
  CUDASIM_RUNTIME_FILL(integrated, INTEGRATED)
  CUDASIM_RUNTIME_FILL(canMapHostMemory, CAN_MAP_HOST_MEMORY)
  CUDASIM_RUNTIME_FILL(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH)
  CUDASIM_RUNTIME_FILL(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH)
  CUDASIM_RUNTIME_FILL(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)
  CUDASIM_RUNTIME_FILL(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)
  CUDASIM_RUNTIME_FILL(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)
  CUDASIM_RUNTIME_FILL(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS)
  CUDASIM_RUNTIME_FILL(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS)
  CUDASIM_RUNTIME_FILL(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS)
  CUDASIM_RUNTIME_FILL(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH)
  CUDASIM_RUNTIME_FILL(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS)
  CUDASIM_RUNTIME_FILL(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT)
  CUDASIM_RUNTIME_FILL(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS)
  CUDASIM_RUNTIME_FILL(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH)
  CUDASIM_RUNTIME_FILL(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS)
  CUDASIM_RUNTIME_FILL(surfaceAlignment, SURFACE_ALIGNMENT)
  CUDASIM_RUNTIME_FILL(concurrentKernels, CONCURRENT_KERNELS)
  CUDASIM_RUNTIME_FILL(ECCEnabled, ECC_ENABLED)
  CUDASIM_RUNTIME_FILL(pciBusID, PCI_BUS_ID)
  CUDASIM_RUNTIME_FILL(pciDeviceID, PCI_DEVICE_ID)
  CUDASIM_RUNTIME_FILL(pciDomainID, PCI_DOMAIN_ID)
  CUDASIM_RUNTIME_FILL(tccDriver, TCC_DRIVER)
  CUDASIM_RUNTIME_FILL(asyncEngineCount, ASYNC_ENGINE_COUNT)
  CUDASIM_RUNTIME_FILL(unifiedAddressing, UNIFIED_ADDRESSING)
  CUDASIM_RUNTIME_FILL(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)
  CUDASIM_RUNTIME_FILL(l2CacheSize, L2_CACHE_SIZE)
  CUDASIM_RUNTIME_FILL(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)
  CUDASIM_RUNTIME_FILL(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)
  CUDASIM_RUNTIME_FILL(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)
  CUDASIM_RUNTIME_FILL(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)
  CUDASIM_RUNTIME_FILL(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)
  CUDASIM_RUNTIME_FILL(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
  CUDASIM_RUNTIME_FILL(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)
  CUDASIM_RUNTIME_FILL(managedMemory, MANAGED_MEMORY)
  CUDASIM_RUNTIME_FILL(isMultiGpuBoard, MULTI_GPU_BOARD)
  CUDASIM_RUNTIME_FILL(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID)
  CUDASIM_RUNTIME_FILL(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED)
  CUDASIM_RUNTIME_FILL(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)
  CUDASIM_RUNTIME_FILL(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)
  CUDASIM_RUNTIME_FILL(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)
  CUDASIM_RUNTIME_FILL(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)
  CUDASIM_RUNTIME_FILL(cooperativeLaunch, COOPERATIVE_LAUNCH)
  CUDASIM_RUNTIME_FILL(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
  CUDASIM_RUNTIME_FILL(pageableMemoryAccessUsesHostPageTables,
                       PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)
  CUDASIM_RUNTIME_FILL(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)
  CUDASIM_RUNTIME_FILL(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)
  CUDASIM_RUNTIME_FILL(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE)
  CUDASIM_RUNTIME_FILL(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
  CUDASIM_RUNTIME_FILL(hostRegisterSupported, HOST_REGISTER_SUPPORTED)
  CUDASIM_RUNTIME_FILL(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED)
  CUDASIM_RUNTIME_FILL(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)
  CUDASIM_RUNTIME_FILL(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)
  CUDASIM_RUNTIME_FILL(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)
  CUDASIM_RUNTIME_FILL(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)
  CUDASIM_RUNTIME_FILL(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)
  CUDASIM_RUNTIME_FILL(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING)
  CUDASIM_RUNTIME_FILL(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES)
  CUDASIM_RUNTIME_FILL(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)
  CUDASIM_RUNTIME_FILL(ipcEventSupported, IPC_EVENT_SUPPORTED)
  CUDASIM_RUNTIME_FILL(clusterLaunch, CLUSTER_LAUNCH)
  CUDASIM_RUNTIME_FILL(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)
  CUDASIM_RUNTIME_FILL(deviceNumaConfig, NUMA_CONFIG)
  CUDASIM_RUNTIME_FILL(deviceNumaId, NUMA_ID)
  CUDASIM_RUNTIME_FILL(mpsEnabled, MPS_ENABLED)
  CUDASIM_RUNTIME_FILL(hostNumaId, HOST_NUMA_ID)
  CUDASIM_RUNTIME_FILL(gpuPciDeviceID, GPU_PCI_DEVICE_ID)
  CUDASIM_RUNTIME_FILL(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID)
  CUDASIM_RUNTIME_FILL(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED)
#undef CUDASIM_RUNTIME_FILL
  return CUDA_SUCCESS;
}

CUresult FillIdentity(cudaDeviceProp* properties, int device) {
  const DriverApi& driver = Driver();
  CUresult code = driver.cuDeviceGetName(properties->name, sizeof(properties->name), device);
  if (code == CUDA_SUCCESS) code = driver.cuDeviceGetUuid(&properties->uuid, device);
  if (code == CUDA_SUCCESS) code = driver.cuDeviceTotalMem(&properties->totalGlobalMem, device);
  return code;
}

// How well a device fits what is asked for: everything that is asked for is a minimum,
// and 0 asks for nothing.
bool Fits(const cudaDeviceProp& device, const cudaDeviceProp& wanted) {
  return device.major * 10 + device.minor >= wanted.major * 10 + wanted.minor &&
         device.totalGlobalMem >= wanted.totalGlobalMem &&
         device.multiProcessorCount >= wanted.multiProcessorCount;
}

}  // namespace

cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  std::memset(properties, 0, sizeof(*properties));
  CUresult code = FillIdentity(properties, device);
  if (code == CUDA_SUCCESS) code = FillAttributes(properties, device);
  return ToError(code);
}

// The first that fits; the first of all if none does.
cudaError_t ChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
  *device = 0;
  for (int candidate = 0; candidate < DeviceCount(); ++candidate) {
    cudaDeviceProp properties;
    const cudaError_t code = GetDeviceProperties(&properties, candidate);
    if (code != cudaSuccess) return code;
    if (!Fits(properties, *wanted)) continue;
    *device = candidate;
    break;
  }
  return cudaSuccess;
}

}  // namespace cudasim::runtime
