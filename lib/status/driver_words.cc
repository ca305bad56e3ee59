// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks the process's driver for its version.                                           tier: 1

#include "lib/status/driver_words.h"

#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// Codes that say little by themselves: many things give them.
bool IsVague(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && code <= CUDA_ERROR_CAPTURED_EVENT;
  }
}

bool CouldHear() {
  const DriverTable* const driver = g_driver.load(std::memory_order_acquire);
  return driver != nullptr && driver->version >= kHasLogs;
}

}  // namespace

std::atomic<std::string (*)(CUresult code, const char* doing)> g_driver_words{nullptr};

std::string WordsText(CUresult code, const char* doing) {
  if (const auto words = g_driver_words.load(std::memory_order_acquire)) {
    const std::string said = words(code, doing);
    return said.empty() ? said : "; the driver says in " + said;
  }
  if (!IsVague(code) || !CouldHear()) return "";
  return "; the driver's own reason, where it has one, is here with a cuguest::DriverLog open";
}

CUGUEST_END_INTERNAL_NAMESPACE
