// SPDX-License-Identifier: Apache-2.0

#include "driver/context/device.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "driver/api.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/release.h"

namespace cudasim::driver {
namespace {

constexpr char kName[] = "NVIDIA H100 80GB HBM3 (cudasim)";
// Device i sits at 0000:(kFirstBus + i):00.0.
constexpr int kFirstBus = 0x10;

struct Books {
  std::atomic<size_t> used{0};
};
Books books[kMaxDevices];
std::atomic<CUresult> sticky{CUDA_SUCCESS};
std::atomic<bool> has_exec_affinity{false};
std::atomic<bool> has_cig{false};

struct AttributeValue {
  CUdevice_attribute attribute;
  int value;
};

// An H100 SXM5, driver 580.159.04. An attribute that is not here is answered
// with 0, which for most of them means "not supported".
constexpr AttributeValue kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, static_cast<int>(kMultiprocessors)},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 32768000},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

int BusOf(CUdevice device) { return kFirstBus + device; }

bool IsAttribute(CUdevice_attribute attribute) {
  return attribute >= CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
         attribute < ThisRelease().device_attributes;
}

int ValueOf(CUdevice_attribute attribute, CUdevice device) {
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return BusOf(device);
  if (attribute == CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED ||
      attribute == CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED) {
    return DeviceFeatures::HasCig() ? 1 : 0;
  }
  for (const AttributeValue& row : kAttributes) {
    if (row.attribute == attribute) return row.value;
  }
  return 0;
}

// As much of `text` as fits, always terminated; false if that was not all.
bool CopyText(char* to, int size, const char* text) {
  const int needed = std::snprintf(to, static_cast<size_t>(size), "%s", text);
  return needed < size;
}

}  // namespace

bool IsDevice(CUdevice device) { return device >= 0 && device < Process::DeviceCount(); }

bool DeviceMemory::Take(CUdevice device, size_t bytes) {
  std::atomic<size_t>& used = books[device].used;
  size_t now = used.load(std::memory_order_relaxed);
  do {
    if (bytes > kDeviceMemory - now) return false;
  } while (!used.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

void DeviceMemory::GiveBack(CUdevice device, size_t bytes) {
  books[device].used.fetch_sub(bytes, std::memory_order_relaxed);
}

size_t DeviceMemory::Free(CUdevice device) {
  return kDeviceMemory - books[device].used.load(std::memory_order_relaxed);
}

void DeviceFeatures::SupportExecAffinity(bool supported) { has_exec_affinity.store(supported); }
bool DeviceFeatures::HasExecAffinity() { return has_exec_affinity.load(); }
void DeviceFeatures::SupportCig(bool supported) { has_cig.store(supported); }
bool DeviceFeatures::HasCig() { return has_cig.load(); }

CUresult StickyError() { return sticky.load(std::memory_order_acquire); }

void SetStickyError(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  CUresult none = CUDA_SUCCESS;
  sticky.compare_exchange_strong(none, code);
}

CUresult DeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = Process::DeviceCount();
  return CUDA_SUCCESS;
}

CUresult DeviceGetName(char* name, int size, CUdevice device) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (size <= 0) PanicNull();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  CopyText(name, size, kName);  // cut short without an error
  return CUDA_SUCCESS;
}

CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  constexpr char kPrefix[] = "cudasim-device-";
  static_assert(sizeof(kPrefix) == sizeof(uuid->bytes));
  std::memcpy(uuid->bytes, kPrefix, sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

CUresult DeviceTotalMem(size_t* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = kDeviceMemory;
  return CUDA_SUCCESS;
}

CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value == nullptr || !IsAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = ValueOf(attribute, device);
  return CUDA_SUCCESS;
}

CUresult DeviceComputeCapability(int* major, int* minor, CUdevice device) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *major = ValueOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  *minor = ValueOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return CUDA_SUCCESS;
}

CUresult DeviceGetPCIBusId(char* id, int size, CUdevice device) {
  if (id == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  char text[24];
  std::snprintf(text, sizeof(text), "0000:%02X:00.0", static_cast<unsigned>(BusOf(device)));
  return CopyText(id, size, text) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult DeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The forms of the CUDA Driver API: [domain]:[bus]:[device].[function],
  // [domain]:[bus]:[device] and [bus]:[device].[function].
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  if (std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (std::sscanf(id, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  const int ordinal = static_cast<int>(bus) - kFirstBus;
  if (domain != 0 || slot != 0 || !IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult DeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                               CUdevice to) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(from) || !IsDevice(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult DeviceGetExecAffinitySupport(int* value, CUexecAffinityType type, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  *value = DeviceFeatures::HasExecAffinity() ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
