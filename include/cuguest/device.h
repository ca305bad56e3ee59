// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// `Device` names a GPU of this process. devices.h says which ones there are, and what they are
/// called elsewhere.

#ifndef CUGUEST_DEVICE_H_
#define CUGUEST_DEVICE_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// A number of a device's multiprocessors. Write `SmCount{16}`; an int does not convert.
enum class SmCount : unsigned {};

/// Threads: value.
class Device {
 public:
  /// A position in this process's list of devices, in the order of CUDA_VISIBLE_DEVICES. It means
  /// nothing in another process: pass a UUID there. Write `Device::Ordinal{1}`; an int does not
  /// convert.
  enum class Ordinal : int {};

  struct Uuid;  // of devices.h

  /// Names a device that the caller has as a handle. Nothing is checked: where it is used, a device
  /// that there is not is CUDA_ERROR_INVALID_DEVICE.
  [[nodiscard]] CUGUEST_HIDE static constexpr Device Borrow(CUdevice handle) noexcept {
    return Device(handle);
  }

  [[nodiscard]] CUGUEST_HIDE constexpr CUdevice get() const noexcept { return handle_; }

  /// The driver's handles are the ordinals: CUDA Driver API, cuDeviceGet, "ordinal".
  [[nodiscard]] CUGUEST_HIDE constexpr Ordinal ordinal() const noexcept { return Ordinal{handle_}; }

  CUGUEST_HIDE friend constexpr bool operator==(Device a, Device b) {
    return a.handle_ == b.handle_;
  }
  CUGUEST_HIDE friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }

 private:
  CUGUEST_HIDE explicit constexpr Device(CUdevice handle) noexcept : handle_(handle) {}
  CUdevice handle_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_DEVICE_H_
