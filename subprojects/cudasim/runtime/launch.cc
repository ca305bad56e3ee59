// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels by their host function or by their handle, and libraries of them. What stands
// for a kernel in a launch may be a host function, a cudaKernel_t or a function of the
// driver; only a host function has a kernel.

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "driver/handle_number.h"
#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/driver.h"
#include "runtime/not_modelled.h"
#include "runtime/registry.h"
#include "runtime/stream.h"

namespace cudasim::runtime {
namespace {

// The driver's handles are no addresses of anything (driver/handle_number.h).
bool IsAddress(const void* symbol) {
  return !cudasim::driver::HandleNumber::IsHandle(reinterpret_cast<std::uintptr_t>(symbol));
}

CUfunction AsFunction(const void* handle) {
  return static_cast<CUfunction>(const_cast<void*>(handle));
}

// What the driver launches.
cudaError_t FindLaunchable(const void* symbol, CUfunction* function) {
  if (symbol == nullptr) return cudaErrorInvalidDeviceFunction;
  if (IsRegistered(symbol)) {
    CUkernel kernel = nullptr;
    const cudaError_t code = FindKernel(symbol, &kernel);
    *function = AsFunction(kernel);
    return code;
  }
  if (IsAddress(symbol)) return cudaErrorInvalidResourceHandle;
  *function = AsFunction(symbol);
  return cudaSuccess;
}

CUkernel AsKernel(CUfunction function) { return reinterpret_cast<CUkernel>(function); }

// The same, in the current context if it is a kernel.
cudaError_t FindFunction(const void* symbol, CUfunction* function) {
  const cudaError_t code = FindLaunchable(symbol, function);
  const char* name = nullptr;
  if (code != cudaSuccess) return code;
  if (Driver().cuFuncGetName(&name, *function) != CUDA_ERROR_INVALID_HANDLE) return cudaSuccess;
  return ToError(Driver().cuKernelGetFunction(function, AsKernel(*function)));
}

template <typename Member>
CUresult Fill(Member* member, CUfunction_attribute attribute, CUfunction function) {
  int value = 0;
  const CUresult code = Driver().cuFuncGetAttribute(&value, attribute, function);
  *member = static_cast<Member>(value);
  return code;
}

// The options of the two APIs have the same numbers.
template <typename To, typename From>
std::vector<To> ToDriverOptions(const From* options, unsigned count) {
  std::vector<To> result;
  for (unsigned i = 0; options != nullptr && i < count; ++i) {
    result.push_back(static_cast<To>(options[i]));
  }
  return result;
}

}  // namespace

cudaError_t LaunchKernel(const void* symbol, dim3 grid, dim3 block, void** arguments,
                         size_t shared_bytes, cudaStream_t stream) {
  CUfunction function = nullptr;
  const cudaError_t code = FindLaunchable(symbol, &function);
  if (code != cudaSuccess) return code;
  return ToError(Driver().cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                                         block.z, static_cast<unsigned>(shared_bytes),
                                         ToDriver(stream), arguments, nullptr));
}

cudaError_t LaunchKernelExC(const cudaLaunchConfig_t* config, const void* symbol,
                            void** arguments) {
  if (config == nullptr) PanicNull("cudaLaunchKernelExC");
  // Not modelled: attributes of the runtime's launches.
  if (config->numAttrs > 0) return static_cast<cudaError_t>(NotModelled("cudaLaunchKernelExC"));
  return LaunchKernel(symbol, config->gridDim, config->blockDim, arguments,
                      config->dynamicSmemBytes, config->stream);
}

cudaError_t FuncGetAttributes(cudaFuncAttributes* attributes, const void* symbol) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  const cudaError_t code = FindFunction(symbol, &function);
  if (code != cudaSuccess) return code;
  *attributes = {};
#define CUDASIM_RUNTIME_FILL(member, attribute)                                                   \
  if (const CUresult filled = Fill(&attributes->member, CU_FUNC_ATTRIBUTE_##attribute, function); \
      filled != CUDA_SUCCESS) {                                                                   \
    return ToError(filled);                                                                       \
  }
  CUDASIM_RUNTIME_FILL(sharedSizeBytes, SHARED_SIZE_BYTES)
  CUDASIM_RUNTIME_FILL(constSizeBytes, CONST_SIZE_BYTES)
  CUDASIM_RUNTIME_FILL(localSizeBytes, LOCAL_SIZE_BYTES)
  CUDASIM_RUNTIME_FILL(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
  CUDASIM_RUNTIME_FILL(numRegs, NUM_REGS)
  CUDASIM_RUNTIME_FILL(ptxVersion, PTX_VERSION)
  CUDASIM_RUNTIME_FILL(binaryVersion, BINARY_VERSION)
  CUDASIM_RUNTIME_FILL(cacheModeCA, CACHE_MODE_CA)
  CUDASIM_RUNTIME_FILL(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES)
#undef CUDASIM_RUNTIME_FILL
  return cudaSuccess;
}

cudaError_t FuncGetName(const char** name, const void* symbol) {
  if (name == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  const cudaError_t code = FindLaunchable(symbol, &function);
  if (code != cudaSuccess) return code;
  const CUresult named = Driver().cuFuncGetName(name, function);
  if (named != CUDA_ERROR_INVALID_HANDLE) return ToError(named);
  return ToError(Driver().cuKernelGetName(name, AsKernel(function)));
}

// No place to write to is no error.
cudaError_t GetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  CUkernel kernel = nullptr;
  const cudaError_t code = FindKernel(symbol, &kernel);
  if (code != cudaSuccess) return code;
  CUfunction found = nullptr;
  const CUresult asked = Driver().cuKernelGetFunction(&found, kernel);
  if (asked == CUDA_SUCCESS && function != nullptr) *function = found;
  return ToError(asked);
}

cudaError_t GetKernel(cudaKernel_t* kernel, const void* symbol) {
  if (kernel == nullptr) return cudaErrorInvalidValue;
  return FindKernel(symbol, kernel);
}

cudaError_t LibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit_options,
                            void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                            void** values, unsigned count) {
  if (library == nullptr || code == nullptr) return cudaErrorInvalidValue;
  std::vector<CUjit_option> jit = ToDriverOptions<CUjit_option>(jit_options, jit_count);
  std::vector<CUlibraryOption> wanted = ToDriverOptions<CUlibraryOption>(options, count);
  return ToError(Driver().cuLibraryLoadData(library, code, jit.data(), jit_values, jit_count,
                                            wanted.data(), values, count));
}

cudaError_t LibraryUnload(cudaLibrary_t library) {
  return ToError(Driver().cuLibraryUnload(library));
}

cudaError_t LibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return ToError(Driver().cuLibraryGetKernel(kernel, library, name));
}

cudaError_t LibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return ToError(Driver().cuLibraryGetKernelCount(count, library));
}

cudaError_t LibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return ToError(Driver().cuLibraryEnumerateKernels(kernels, count, library));
}

}  // namespace cudasim::runtime
