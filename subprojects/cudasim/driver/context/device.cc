// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/device.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "driver/api.h"
#include "driver/context/gpu.h"
#include "driver/context/visible_devices.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/release.h"

namespace cudasim::driver {
namespace {

// The machine's device i sits at 0000:(kFirstBus + i):00.0.
constexpr int kFirstBus = 0x10;

struct Books {
  std::atomic<size_t> used{0};
};
Books books[kMaxDevices];
std::atomic<CUresult> sticky{CUDA_SUCCESS};
std::atomic<bool> has_exec_affinity{false};
std::atomic<bool> has_cig{false};
std::atomic<bool> has_pageable_access{false};
std::atomic<bool> has_memory_pools{true};

int BusOf(CUdevice device) { return kFirstBus + Process::IndexOf(device); }

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
  if (attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS &&
      DeviceFeatures::HasPageableAccess()) {
    return 1;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED &&
      !DeviceFeatures::HasMemoryPools()) {
    return 0;
  }
  return ThisGpu().Attribute(attribute);
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
    if (bytes > ThisGpu().memory - now) return false;
  } while (!used.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

void DeviceMemory::GiveBack(CUdevice device, size_t bytes) {
  books[device].used.fetch_sub(bytes, std::memory_order_relaxed);
}

size_t DeviceMemory::Free(CUdevice device) {
  return ThisGpu().memory - books[device].used.load(std::memory_order_relaxed);
}

void DeviceFeatures::SupportExecAffinity(bool supported) { has_exec_affinity.store(supported); }
bool DeviceFeatures::HasExecAffinity() { return has_exec_affinity.load(); }
void DeviceFeatures::SupportCig(bool supported) { has_cig.store(supported); }
bool DeviceFeatures::HasCig() { return has_cig.load(); }
void DeviceFeatures::SupportPageableAccess(bool supported) { has_pageable_access.store(supported); }
bool DeviceFeatures::HasPageableAccess() { return has_pageable_access.load(); }
void DeviceFeatures::SupportMemoryPools(bool supported) { has_memory_pools.store(supported); }
bool DeviceFeatures::HasMemoryPools() { return has_memory_pools.load(); }

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
  CopyText(name, size, ThisGpu().name);  // cut short without an error
  return CUDA_SUCCESS;
}

CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = UuidOfDevice(Process::IndexOf(device));
  return CUDA_SUCCESS;
}

CUresult DeviceTotalMem(size_t* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = 0;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = ThisGpu().memory;
  return CUDA_SUCCESS;
}

CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!IsAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  // Not modelled: attributes of devices and functions, and limits, that are newer than CUDA 13.0.
  if (attribute >= ModelledRelease().device_attributes) return NotModelled();
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
  for (CUdevice found = 0; IsDevice(found) && domain == 0 && slot == 0; ++found) {
    if (BusOf(found) != static_cast<int>(bus)) continue;
    *device = found;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
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
