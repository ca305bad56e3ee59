// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The UUIDs of two instances of one device in MIG mode, on functions that are the test's own:
// the first version of cuDeviceGetUuid gives the device's, the second one the instance's.

#include <cstring>

#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Device;
using cuguest::Driver;

// Device 2 is not in MIG mode.
CUresult OfDevice(CUuuid* uuid, CUdevice device) {
  std::memset(uuid->bytes, device == 2 ? 0x22 : 0xdd, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}
CUresult OfInstance(CUuuid* uuid, CUdevice device) {
  std::memset(uuid->bytes, device == 2 ? 0x22 : device, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}
CUresult Init(unsigned) { return CUDA_SUCCESS; }
CUresult GetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult Unused() { return CUDA_ERROR_UNKNOWN; }

// `user`: the newest version of cuDeviceGetUuid that there is.
void* LookUp(const char* name, int version, void* user) {
  if (std::strcmp(name, "cuInit") == 0) return reinterpret_cast<void*>(&Init);
  if (std::strcmp(name, "cuDriverGetVersion") == 0) return reinterpret_cast<void*>(&GetVersion);
  if (std::strcmp(name, "cuDeviceGetUuid") != 0) return reinterpret_cast<void*>(&Unused);
  if (version > *static_cast<int*>(user)) return nullptr;
  return version < 11040 ? reinterpret_cast<void*>(&OfDevice)
                         : reinterpret_cast<void*>(&OfInstance);
}

void InstancesHaveUuidsOfTheirOwn() {
  static int newest = 11040;
  CHECK(Driver::Adopt(&LookUp, &newest).ok());
  const Device::Uuid first = *UuidOf(Device::Borrow(0));
  const Device::Uuid second = *UuidOf(Device::Borrow(1));
  CHECK(first != second);
  CHECK(first.ToString() == "MIG-00000000-0000-0000-0000-000000000000");
  CHECK(second.ToString() == "MIG-01010101-0101-0101-0101-010101010101");
  CHECK(UuidOf(Device::Borrow(2))->ToString() == "GPU-22222222-2222-2222-2222-222222222222");
}

void OldDriversKnowTheDeviceOnly() {
  static int newest = 9020;
  CHECK(Driver::Adopt(&LookUp, &newest).ok());
  const Device::Uuid first = *UuidOf(Device::Borrow(0));
  CHECK(first == *UuidOf(Device::Borrow(1)));
  CHECK(first.ToString() == "GPU-dddddddd-dddd-dddd-dddd-dddddddddddd");
}

void NoDriverFunctionIsAStatus() {
  static int newest = 9010;
  CHECK(Driver::Adopt(&LookUp, &newest).ok());
  CHECK(absl::IsUnimplemented(UuidOf(Device::Borrow(0)).status()));
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"instances_have_uuids_of_their_own", &InstancesHaveUuidsOfTheirOwn},
          {"old_drivers_know_the_device_only", &OldDriversKnowTheDeviceOnly},
          {"no_driver_function_is_a_status", &NoDriverFunctionIsAStatus},
      });
}
