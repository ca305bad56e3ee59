// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/devices.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/core/driver_status.h"
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

}  // namespace

namespace internal {

absl::Status NoDeviceStatus(CUresult code, int ordinal) {
  int count = 0;
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  const bool counted = driver.ok() && (*driver)->DeviceGetCount(&count) == CUDA_SUCCESS;
  return ToStatus(code, absl::StrCat("find device ", ordinal),
                  counted ? absl::StrCat("of ", count, " in this process") : std::string());
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
