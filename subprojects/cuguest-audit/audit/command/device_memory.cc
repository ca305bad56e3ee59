// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/device_memory.h"

#include <dlfcn.h>

namespace cuguest::audit {

// The library stays loaded and initialised: it is used until the process ends.
DeviceMemory::DeviceMemory() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto count_of =
      reinterpret_cast<int (*)(unsigned*)>(dlsym(library, "nvmlDeviceGetCount_v2"));
  const auto device_at =
      reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
  memory_info_ = reinterpret_cast<int (*)(void*, Info*)>(dlsym(library, "nvmlDeviceGetMemoryInfo"));
  unsigned count = 0;
  const bool is_there = init != nullptr && count_of != nullptr && device_at != nullptr &&
                        memory_info_ != nullptr && init() == 0 && count_of(&count) == 0;
  for (unsigned i = 0; is_there && i < count; ++i) {
    void* device = nullptr;
    if (device_at(i, &device) == 0) devices_.push_back(device);
  }
}

std::vector<std::uint64_t> DeviceMemory::Used() const {
  std::vector<std::uint64_t> used;
  for (void* device : devices_) {
    Info info = {};
    used.push_back(memory_info_(device, &info) == 0 ? info.used : 0);
  }
  return used;
}

}  // namespace cuguest::audit
