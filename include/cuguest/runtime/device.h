// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 4
/// \file
/// Devices: the runtime's number, the driver's `CUdevice` and `cuguest::Device`. None has an owner.
///
///   absl::StatusOr<Device> device = runtime::FromRuntime(ordinal);   // an int of cudaSetDevice
///   if (!device.ok()) return device.status();                        // says how many there are
///   cudaDeviceGetAttribute(&value, attribute, runtime::ToRuntime(*device));

#ifndef CUGUEST_RUNTIME_DEVICE_H_
#define CUGUEST_RUNTIME_DEVICE_H_

#include <cuda.h>

#include "absl/status/statusor.h"
#include "cuguest/devices.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// The number that cudaSetDevice and the like take, interchangeable with the driver's handle.
/// Threads: any. Cost: none.
/// Source:  CUDA Runtime API, "Interactions with the CUDA Driver API".
[[nodiscard]] constexpr int ToRuntime(Device device) noexcept {
  return static_cast<int>(device.ordinal());
}

/// The device that the runtime calls `number`, checked against the devices of this process:
/// cudaSetValidDevices restricts the runtime's choice and renumbers nothing.
/// Stack, count, last error: not touched.
/// Errors: as DeviceAt: kNotFound with the number of devices there are.
[[nodiscard]] inline absl::StatusOr<Device> FromRuntime(int number) {
  return DeviceAt(Device::Ordinal{number});
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_DEVICE_H_
