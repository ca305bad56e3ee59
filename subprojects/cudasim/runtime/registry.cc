// SPDX-License-Identifier: Apache-2.0

#include "runtime/registry.h"

#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "runtime/driver.h"

namespace cudasim::runtime {

struct FatBinary {
  const void* image = nullptr;
  CUlibrary library = nullptr;  // once one of its functions was asked for

  CUresult Load() {
    if (library != nullptr) return CUDA_SUCCESS;
    return Driver().cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
};

namespace {

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

}  // namespace

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

}  // namespace cudasim::runtime
