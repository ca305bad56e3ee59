// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulated devices: of one kind (context/gpu.h), which differ in UUID and PCI address.

#ifndef CUDASIM_DRIVER_CONTEXT_DEVICE_H_
#define CUDASIM_DRIVER_CONTEXT_DEVICE_H_

#include <cuda.h>

#include <cstddef>

namespace cudasim::driver {

inline constexpr int kMaxDevices = 16;
inline constexpr unsigned kMultiprocessors = 132;

// What one context takes: 524-527 MiB, measured on an H200, driver 580.159.04.
inline constexpr size_t kContextMemory = size_t{524} << 20;
// The same for a green context: measured on an H100, driver 580.159.04, which keeps
// 4 of it when the context is destroyed; this simulation keeps nothing.
inline constexpr size_t kGreenContextMemory = size_t{6} << 20;

bool IsDevice(CUdevice device);

// DeviceMemory
//
// The books of a device's memory; the bytes themselves are host memory and are
// touched only when somebody writes them.
//
// Threads: any; lock-free.
class DeviceMemory {
 public:
  // False when less than `bytes` is free; nothing is then taken.
  static bool Take(CUdevice device, size_t bytes);
  static void GiveBack(CUdevice device, size_t bytes);
  static size_t Free(CUdevice device);
};

// What a device can do only where there is more than a driver: an MPS server, a graphics client.
// Off unless Sim says otherwise; memory pools are on.
//
// Threads: any.
class DeviceFeatures {
 public:
  static void SupportExecAffinity(bool supported);
  static bool HasExecAffinity();
  static void SupportCig(bool supported);
  static bool HasCig();
  static void SupportPageableAccess(bool supported);
  static bool HasPageableAccess();
  static void SupportMemoryPools(bool supported);
  static bool HasMemoryPools();
};

// The error that a kernel left behind, or CUDA_SUCCESS. It never goes away, and
// it is one for all devices: after an illegal address on one device every context
// of the process was lost (measured on two H200, driver 580.159.04).
CUresult StickyError();

// The first one stays; CUDA_SUCCESS changes nothing.
void SetStickyError(CUresult code);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_DEVICE_H_
