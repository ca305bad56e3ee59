// SPDX-License-Identifier: Apache-2.0
//
// What the host code that nvcc generates calls (crt/host_runtime.h), but for the launch
// itself, which is in exports.cc.

#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

#include "runtime/registry.h"
#include "runtime/thread.h"

#define CUDASIM_RUNTIME_VISIBLE __attribute__((visibility("default")))

namespace cudasim::runtime {
namespace {

// The handle that the host code carries around is of a type of its own.
void** ToHandle(FatBinary* binary) { return reinterpret_cast<void**>(binary); }
FatBinary* FromHandle(void** handle) { return reinterpret_cast<FatBinary*>(handle); }

}  // namespace

extern "C" {

CUDASIM_RUNTIME_VISIBLE void** __cudaRegisterFatBinary(void* wrapper) {
  return ToHandle(RegisterFatBinary(static_cast<__fatBinC_Wrapper_t*>(wrapper)->data));
}

CUDASIM_RUNTIME_VISIBLE void __cudaRegisterFatBinaryEnd(void**) {}

CUDASIM_RUNTIME_VISIBLE void __cudaUnregisterFatBinary(void** handle) {
  UnregisterFatBinary(FromHandle(handle));
}

CUDASIM_RUNTIME_VISIBLE void __cudaRegisterFunction(void** handle, const char* symbol, char*,
                                                    const char* name, int, uint3*, uint3*, dim3*,
                                                    dim3*, int*) {
  RegisterFunction(FromHandle(handle), symbol, name);
}

// Accepted; there is no memory behind it, and no call that would show it.
CUDASIM_RUNTIME_VISIBLE void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int,
                                               int) {}

// For managed variables, of which there are none.
CUDASIM_RUNTIME_VISIBLE char __cudaInitModule(void**) { return 0; }

CUDASIM_RUNTIME_VISIBLE unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                                             size_t shared_bytes,
                                                             cudaStream_t stream) {
  ThisThreadState().configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

CUDASIM_RUNTIME_VISIBLE cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                               size_t* shared_bytes, void* stream) {
  auto& configurations = ThisThreadState().configurations;
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const CallConfiguration configuration = configurations.back();
  configurations.pop_back();
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

}  // extern "C"
}  // namespace cudasim::runtime
