// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory of each device is in use, by all processes of the machine, as NVML has it. Needs
// no context.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_DEVICE_MEMORY_H_
#define CUGUEST_AUDIT_COMMAND_DEVICE_MEMORY_H_

#include <cstdint>
#include <vector>

namespace cuguest::audit {

class DeviceMemory {
 public:
  // Opens libnvidia-ml.so.1, which comes with the driver.
  DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Bytes, in the order of NVML's devices, which is that of the bus. Empty without NVML.
  [[nodiscard]] std::vector<std::uint64_t> Used() const;

 private:
  struct Info {
    unsigned long long total, free, used;
  };

  int (*memory_info_)(void*, Info*) = nullptr;
  std::vector<void*> devices_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_DEVICE_MEMORY_H_
