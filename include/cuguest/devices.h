// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 1
/// \file
/// Which devices this process sees, and what they are called. Asking initialises the driver, but
/// creates no context and makes none current.
///
///   absl::StatusOr<cuguest::Device> device = cuguest::DeviceAt(cuguest::Device::Ordinal{1});
///   if (!device.ok()) return device.status();   // says how many there are
///
/// Every function here
/// Stack, count: never touched: no query creates or retains a primary context.
/// Threads: any.
/// Errors:  those of Driver::GetInitialized(), and of a device that there is not kNotFound.

#ifndef CUGUEST_DEVICES_H_
#define CUGUEST_DEVICES_H_

#include <cuda.h>

#include <array>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// The 16 bytes that name a device across processes and reboots.
struct Device::Uuid {
  CUGUEST_HIDE Uuid() = default;

  std::array<unsigned char, 16> bytes{};
  bool is_mig = false;  ///< they name an instance of a device in MIG mode
  /// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", or "MIG-" and the same, as nvidia-smi and
  /// CUDA_VISIBLE_DEVICES write it.
  [[nodiscard]] CUGUEST_API std::string ToString() const;
  CUGUEST_HIDE friend bool operator==(const Uuid& a, const Uuid& b) { return a.bytes == b.bytes; }
  CUGUEST_HIDE friend bool operator!=(const Uuid& a, const Uuid& b) { return !(a == b); }
};

/// How many devices this process sees; 0 where a working driver sees none.
[[nodiscard]] CUGUEST_API absl::StatusOr<int> CountDevices();

/// The device at a position in this process's list.
/// Errors: the text of kNotFound says how many there are, and what CUDA_VISIBLE_DEVICES is where it
///         is set; with none at all what usually hides them.
[[nodiscard]] CUGUEST_API absl::StatusOr<Device> DeviceAt(Device::Ordinal ordinal);

/// The device that is called so in every process: by its UUID, or by its place on the PCI bus
/// ("0000:65:00.0", "65:00.0" or "0000:65:00", in either case), of whose MIG instances the first.
/// Errors: kInvalidArgument  the text is no PCI id
///         kNotFound         as above; it may be hidden by CUDA_VISIBLE_DEVICES, which the text
///                           then has
/// Cost:   one driver call, and for each device until it is found what UuidOf() or PciBusIdOf()
///         makes.
[[nodiscard]] CUGUEST_API absl::StatusOr<Device> DeviceAt(const Device::Uuid& uuid);
[[nodiscard]] CUGUEST_API absl::StatusOr<Device> DeviceAt(std::string_view pci_bus_id);

/// The device of the current context.
/// Errors: those of Driver::Get(), and
///         kFailedPrecondition, CUDA_ERROR_INVALID_CONTEXT: no context is current.
[[nodiscard]] CUGUEST_API absl::StatusOr<Device> CurrentDevice();

/// What its maker calls it: "NVIDIA H100 80GB HBM3".
[[nodiscard]] CUGUEST_API absl::StatusOr<std::string> NameOf(Device device);
/// Where it is on the PCI bus: "0000:65:00.0".
[[nodiscard]] CUGUEST_API absl::StatusOr<std::string> PciBusIdOf(Device device);
/// The device's UUID; of a MIG instance its own. Before CUDA 11.4 a driver knows only the whole
/// device's, which all of its instances then share, and `is_mig` is false.
/// Needs:  cuDeviceGetUuid, CUDA 9.2; below that kUnimplemented.
/// Cost:   two driver calls and a lookup.
/// Source: CUDA Driver API, cuDeviceGetUuid_v2: "If the device is in MIG mode, returns its MIG
///         UUID". cuguest detects MIG mode by the first version returning another UUID, which has
///         not been measured on such a device.
[[nodiscard]] CUGUEST_API absl::StatusOr<Device::Uuid> UuidOf(Device device);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_DEVICES_H_
