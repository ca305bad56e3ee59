// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA version of the driver. This file is compiled once for each version that there is
// a libcuda.so.1 of, and all else once: see meson.build.

#include <atomic>

#include "driver/api.h"
#include "driver/process.h"

namespace cudasim::driver {
namespace {

// Constant-initialised: an entry may be called from a constructor of any library.
std::atomic<int> driver_version{CUDASIM_DRIVER_VERSION};

}  // namespace

void Process::SetDriverVersion(int version) { driver_version.store(version); }

int Process::DriverVersion() { return driver_version.load(std::memory_order_relaxed); }

CUresult DriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = Process::DriverVersion();
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
