// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "library/kernel.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "driver/control.h"
#include "driver/panic.h"
#include "runtime/driver.h"

namespace cudasim::library {
namespace {

using cudasim::SimLaunch;
using cudasim::runtime::Driver;

constexpr char kName[] = "cudasim_library_operation";
constexpr char kPtx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry cudasim_library_operation(\n"
    "  .param .align 16 .b8 operation[240],\n"
    "  .param .u64 run) { ret; }\n";

const cudasim::driver::Control* FindControl() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* symbol = dlsym(driver, cudasim::driver::kControlSymbol);
  if (symbol == nullptr) {
    cudasim::driver::Panic(
        "the simulated libraries work on the simulated driver only; another libcuda.so.1 is "
        "first on the library path");
  }
  const auto* control = reinterpret_cast<const cudasim::driver::Control* (*)()>(symbol)();
  if (control->version != cudasim::driver::kControlVersion) {
    cudasim::driver::Panic("the simulated driver and library are of different builds");
  }
  return control;
}

const cudasim::driver::Control& SimulatedDriver() {
  static const cudasim::driver::Control* const control = FindControl();
  return *control;
}

CUresult RunOperation(const SimLaunch& launch) {
  CUresult (*run)(const void*) = nullptr;
  std::memcpy(&run, launch.parameters[1], sizeof(run));
  return run(launch.parameters[0]);
}

std::mutex mutex;
CUkernel kernel = nullptr;

CUresult LoadKernel() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (kernel != nullptr) return CUDA_SUCCESS;
  SimulatedDriver().register_kernel(kName, RunOperation);
  CUlibrary library = nullptr;
  CUresult code =
      Driver().cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code != CUDA_SUCCESS) return code;
  code = Driver().cuLibraryGetKernel(&kernel, library, kName);
  if (code != CUDA_SUCCESS) Driver().cuLibraryUnload(library);
  return code;
}

}  // namespace

CUresult Code::Load() {
  const CUresult code = LoadKernel();
  if (code != CUDA_SUCCESS) return code;
  anywhere = reinterpret_cast<CUfunction>(kernel);
  return Driver().cuKernelGetFunction(&here, kernel);
}

bool Code::IsOver() const {
  const char* name = nullptr;
  return here != nullptr && Driver().cuFuncGetName(&name, here) == CUDA_ERROR_INVALID_HANDLE;
}

CUresult SubmitBytes(CUfunction code, CUstream stream, CUresult (*run)(const void*),
                     const void* operation, size_t bytes) {
  unsigned char padded[kOperationBytes] = {};
  std::memcpy(padded, operation, bytes);
  void* parameters[] = {padded, &run};
  return Driver().cuLaunchKernel(code, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

bool MayAccess(const void* address, size_t bytes) {
  return bytes == 0 || SimulatedDriver().kernel_may_access(address, bytes);
}

}  // namespace cudasim::library
