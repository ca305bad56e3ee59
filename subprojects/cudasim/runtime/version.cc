// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions, and the driver's entries by name.

#include <cuda.h>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/driver.h"

namespace cudasim::runtime {

cudaError_t RuntimeGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = RuntimeVersion();
  return cudaSuccess;
}

// It initialises the driver, and succeeds without one.
cudaError_t DriverGetVersion(int* version) {
  EnsureDriver();
  if (version == nullptr) return cudaErrorInvalidValue;
  return DriverVersion(version);
}

cudaError_t GetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                cudaDriverEntryPointQueryResult* result) {
  return GetDriverEntryPointByVersion(symbol, function, static_cast<unsigned>(RuntimeVersion()),
                                      flags, result);
}

// The flags and the result have the driver's numbers.
cudaError_t GetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* result) {
  if (symbol == nullptr || function == nullptr) PanicNull("cudaGetDriverEntryPoint");
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult code = Driver().cuGetProcAddress(symbol, function, static_cast<int>(version),
                                                  cuuint64_t{flags}, &found);
  if (code != CUDA_SUCCESS) return ToError(code);
  if (result != nullptr) *result = static_cast<cudaDriverEntryPointQueryResult>(found);
  return cudaSuccess;
}

}  // namespace cudasim::runtime
