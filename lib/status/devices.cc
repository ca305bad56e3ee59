// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/devices.h"

#include <stdlib.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/status/driver_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

std::string DeviceText(CUdevice device) { return absl::StrCat("device ", device); }

absl::StatusOr<Device::Uuid> ReadUuid(decltype(Driver::DeviceGetUuid) get, CUdevice device) {
  CUuuid raw;
  CUGUEST_RETURN_IF_CUDA_ERROR(internal::AskOf(device, [&] { return get(&raw, device); }),
                               "read the device's UUID", DeviceText(device));
  Device::Uuid uuid;
  static_assert(sizeof(raw.bytes) == sizeof(uuid.bytes));
  std::memcpy(uuid.bytes.data(), raw.bytes, uuid.bytes.size());
  return uuid;
}

absl::Status NoSuchDevice(CUresult code, const std::string& name) {
  int count = 0;
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  const bool counted = driver.ok() && (*driver)->DeviceGetCount(&count) == CUDA_SUCCESS;
  const char* const visible = secure_getenv("CUDA_VISIBLE_DEVICES");
  return ToStatus(
      code, absl::StrCat("find device ", name),
      absl::StrCat(counted ? absl::StrCat("of ", count, " in this process") : std::string(),
                   counted && visible != nullptr ? ", with " : "",
                   visible != nullptr ? absl::StrCat("CUDA_VISIBLE_DEVICES=", visible) : ""));
}

// The first of which is(device) says so, an absl::StatusOr<bool>.
template <typename Is>
absl::StatusOr<Device> FindDevice(const std::string& name, const Is& is) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  int count = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->DeviceGetCount(&count), "find device", name);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUGUEST_ASSIGN_OR_RETURN(const bool is_it, is(Device::Borrow(ordinal)));
    if (is_it) return Device::Borrow(ordinal);
  }
  return NoSuchDevice(CUDA_ERROR_INVALID_DEVICE, name);
}

// Domain, bus, device and function. The driver's own lookup would write a line of the host's log
// of errors for each id that it does not have.
using PciId = std::array<unsigned, 4>;
std::optional<PciId> ParsePciId(const std::string& text) {
  const auto matches = [&](const char* format, int count, auto*... numbers) {
    int length = 0;
    return std::sscanf(text.c_str(), format, numbers..., &length) == count &&
           text.size() == static_cast<std::size_t>(length);
  };
  PciId id = {};
  auto& [domain, bus, device, function] = id;
  if (text.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) return {};
  if (matches("%8x:%2x:%2x.%1x%n", 4, &domain, &bus, &device, &function)) return id;
  function = 0;
  if (matches("%8x:%2x:%2x%n", 3, &domain, &bus, &device)) return id;
  domain = 0;
  if (matches("%2x:%2x.%1x%n", 3, &bus, &device, &function)) return id;
  return {};
}

}  // namespace

namespace internal {

absl::Status NoDeviceStatus(CUresult code, int ordinal) {
  return NoSuchDevice(code, absl::StrCat(ordinal));
}

}  // namespace internal

std::string Device::Uuid::ToString() const {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = is_mig ? "MIG-" : "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[bytes[i] >> 4];
    text += kHex[bytes[i] & 15];
  }
  return text;
}

absl::StatusOr<int> CountDevices() {
  const absl::StatusOr<const Driver*> driver = Driver::GetInitialized();
  if (ProblemOf(driver.status()) == Driver::Problem::kNoDevice) return 0;
  if (!driver.ok()) return driver.status();
  int count = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR((*driver)->DeviceGetCount(&count), "count the devices");
  return count;
}

absl::StatusOr<Device> DeviceAt(Device::Ordinal ordinal) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUdevice handle = 0;
  const CUresult code = internal::AskOf(static_cast<int>(ordinal), [&] {
    return driver->DeviceGet(&handle, static_cast<int>(ordinal));
  });
  if (code == CUDA_SUCCESS) return Device::Borrow(handle);
  return internal::NoDeviceStatus(code, static_cast<int>(ordinal));
}

absl::StatusOr<Device> DeviceAt(const Device::Uuid& uuid) {
  return FindDevice(uuid.ToString(), [&](Device device) -> absl::StatusOr<bool> {
    CUGUEST_ASSIGN_OR_RETURN(const Device::Uuid its, UuidOf(device));
    return its == uuid;
  });
}

absl::StatusOr<Device> DeviceAt(std::string_view pci_bus_id) {
  const std::string text(pci_bus_id);
  const std::optional<PciId> id = ParsePciId(text);
  if (!id.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "find device \"", text, "\": it is no PCI id, which is written as 0000:65:00.0"));
  }
  return FindDevice(text, [&](Device device) -> absl::StatusOr<bool> {
    CUGUEST_ASSIGN_OR_RETURN(const std::string its, PciBusIdOf(device));
    return ParsePciId(its) == id;
  });
}

absl::StatusOr<Device> CurrentDevice() {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  CUdevice handle = 0;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->CtxGetDevice(&handle),
                               "find the device of the current context");
  return Device::Borrow(handle);
}

absl::StatusOr<std::string> NameOf(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  char name[256] = {};
  CUGUEST_RETURN_IF_CUDA_ERROR(
      internal::AskOf(device.get(),
                      [&] { return driver->DeviceGetName(name, sizeof(name), device.get()); }),
      "read the device's name", DeviceText(device.get()));
  return std::string(name);
}

absl::StatusOr<std::string> PciBusIdOf(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  char id[32] = {};
  CUGUEST_RETURN_IF_CUDA_ERROR(
      internal::AskOf(device.get(),
                      [&] { return driver->DeviceGetPCIBusId(id, sizeof(id), device.get()); }),
      "read the device's PCI id", DeviceText(device.get()));
  return std::string(id);
}

absl::StatusOr<Device::Uuid> UuidOf(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  const auto of_device = driver->Require(&Driver::DeviceGetUuid);
  if (!of_device.ok()) return of_device.status();
  const absl::StatusOr<Device::Uuid> whole = ReadUuid(*of_device, device.get());
  // The same name, and another function since CUDA 11.4.
  const auto of_instance = driver->Find<decltype(Driver::DeviceGetUuid)>("cuDeviceGetUuid", 11040);
  if (!whole.ok() || !of_instance.ok()) return whole;
  absl::StatusOr<Device::Uuid> own = ReadUuid(*of_instance, device.get());
  if (own.ok()) own->is_mig = *own != *whole;
  return own;
}

CUGUEST_END_NAMESPACE
