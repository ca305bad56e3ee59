// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 1
/// \file
/// `Device` names a GPU of this process. Asking for one initialises the driver but creates no
/// context and makes none current.
///
///   absl::StatusOr<cuguest::Device> device = cuguest::Device::At(cuguest::Device::Ordinal{1});
///   if (!device.ok()) return device.status();   // says how many there are

#ifndef CUGUEST_DEVICE_H_
#define CUGUEST_DEVICE_H_

#include <cuda.h>

#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack, count: never touched: no query here creates or retains a primary context.
/// Threads: a value; any thread.
/// Errors:  every function gives those of Driver::GetInitialized(), except that Count() answers 0
///          where a working driver sees no device.
class CUGUEST_API Device {
 public:
  /// A position in this process's list of devices, in the order of CUDA_VISIBLE_DEVICES. It means
  /// nothing in another process: pass a UUID there. Write `Device::Ordinal{1}`; an int does not
  /// convert.
  enum class Ordinal : int {};

  /// The 16 bytes that name a device across processes and reboots.
  struct Uuid {
    CUGUEST_HIDE Uuid() = default;

    std::array<unsigned char, 16> bytes{};
    bool is_mig = false;  ///< they name an instance of a device in MIG mode
    /// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", or "MIG-" and the same, as nvidia-smi and
    /// CUDA_VISIBLE_DEVICES write it.
    [[nodiscard]] CUGUEST_API std::string ToString() const;
    CUGUEST_HIDE friend bool operator==(const Uuid& a, const Uuid& b) { return a.bytes == b.bytes; }
    CUGUEST_HIDE friend bool operator!=(const Uuid& a, const Uuid& b) { return !(a == b); }
  };

  /// How many devices this process sees.
  [[nodiscard]] static absl::StatusOr<int> Count();

  /// Errors: kNotFound  no such device; the text says how many there are, and with none at all what
  ///                    usually hides them
  [[nodiscard]] static absl::StatusOr<Device> At(Ordinal ordinal);

  /// Errors: kFailedPrecondition, CUDA_ERROR_INVALID_CONTEXT: no context is current.
  [[nodiscard]] static absl::StatusOr<Device> OfCurrentContext();

  /// Names a device that the caller has as a handle. Nothing is checked.
  [[nodiscard]] CUGUEST_HIDE static constexpr Device Borrow(CUdevice handle) noexcept {
    return Device(handle);
  }

  [[nodiscard]] CUGUEST_HIDE constexpr CUdevice get() const noexcept { return handle_; }

  /// The driver's handles are the ordinals: CUDA Driver API, cuDeviceGet, "ordinal".
  [[nodiscard]] CUGUEST_HIDE constexpr Ordinal ordinal() const noexcept { return Ordinal{handle_}; }

  [[nodiscard]] absl::StatusOr<std::string> Name() const;
  /// "0000:65:00.0"
  [[nodiscard]] absl::StatusOr<std::string> PciBusId() const;
  /// Of a MIG instance its own. Before CUDA 11.4 a driver knows only the whole device's, which all
  /// of its instances then share, and `is_mig` is false.
  /// Needs:  cuDeviceGetUuid, CUDA 9.2; below that kUnimplemented.
  /// Cost:   two driver calls and a lookup.
  /// Source: CUDA Driver API, cuDeviceGetUuid_v2: "If the device is in MIG mode, returns its MIG
  ///         UUID". cuguest detects MIG mode by the first version returning another UUID, which has
  ///         not been measured on such a device.
  [[nodiscard]] absl::StatusOr<Uuid> GetUuid() const;

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
