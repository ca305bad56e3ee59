// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/registry.h"

#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "runtime/driver.h"
#include "runtime/thread.h"

#define CUDASIM_RUNTIME_VISIBLE __attribute__((visibility("default")))

namespace cudasim::runtime {
namespace {

struct FatBinary {
  const void* image = nullptr;
  CUlibrary library = nullptr;  // once one of its functions was asked for

  CUresult Load() {
    if (library != nullptr) return CUDA_SUCCESS;
    return Driver().cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
};

struct Function {
  FatBinary* binary;
  std::string name;
};

struct Registry {
  std::mutex mutex;
  std::map<const void*, Function> functions;  // by the address of the host function
};

// Never destroyed: programs unregister when they end.
Registry& TheRegistry() {
  static auto& registry = *new Registry;
  return registry;
}

FatBinary* RegisterFatBinary(const void* image) {
  auto* const binary = new FatBinary;
  binary->image = image;
  return binary;
}

void RegisterFunction(FatBinary* binary, const void* symbol, const char* name) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  registry.functions[symbol] = {binary, name};
}

// At the end of a process the driver may be gone, and the library with it.
void UnregisterFatBinary(FatBinary* binary) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  for (auto function = registry.functions.begin(); function != registry.functions.end();) {
    function = function->second.binary == binary ? registry.functions.erase(function)
                                                 : std::next(function);
  }
  if (binary->library != nullptr) Driver().cuLibraryUnload(binary->library);
  delete binary;
}

// The handle that the host code carries around is of a type of its own.
void** ToHandle(FatBinary* binary) { return reinterpret_cast<void**>(binary); }
FatBinary* FromHandle(void** handle) { return reinterpret_cast<FatBinary*>(handle); }

}  // namespace

bool IsRegistered(const void* symbol) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.functions.count(symbol) != 0;
}

cudaError_t FindKernel(const void* symbol, CUkernel* kernel) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.functions.find(symbol);
  if (found == registry.functions.end()) return cudaErrorInvalidDeviceFunction;
  const Function& function = found->second;
  CUresult code = function.binary->Load();
  if (code == CUDA_SUCCESS) {
    code = Driver().cuLibraryGetKernel(kernel, function.binary->library, function.name.c_str());
  }
  return ToError(code);
}

// What the host code that nvcc generates calls (crt/host_runtime.h), but for the launch itself,
// which is in exports.cc.
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
