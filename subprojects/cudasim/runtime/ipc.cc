// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory and events of another process of the machine. The handles have the driver's layout, and
// the flags its numbers.
//
// Not measured: that each call binds the primary context when none is current.

#include <cuda.h>

#include <cstring>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/driver.h"

namespace cudasim::runtime {
namespace {

template <typename To, typename From>
To Convert(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace

cudaError_t IpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  CUipcMemHandle found = {};
  const CUresult code =
      Driver().cuIpcGetMemHandle(handle != nullptr ? &found : nullptr, ToAddress(pointer));
  if (code == CUDA_SUCCESS) *handle = Convert<cudaIpcMemHandle_t>(found);
  return ToError(code);
}

cudaError_t IpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  CUdeviceptr address = 0;
  const CUresult code = Driver().cuIpcOpenMemHandle(pointer != nullptr ? &address : nullptr,
                                                    Convert<CUipcMemHandle>(handle), flags);
  if (code == CUDA_SUCCESS) *pointer = ToPointer(address);
  return ToError(code);
}

cudaError_t IpcCloseMemHandle(void* pointer) {
  return ToError(Driver().cuIpcCloseMemHandle(ToAddress(pointer)));
}

cudaError_t IpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  CUipcEventHandle found = {};
  const CUresult code = Driver().cuIpcGetEventHandle(handle != nullptr ? &found : nullptr, event);
  if (code == CUDA_SUCCESS) *handle = Convert<cudaIpcEventHandle_t>(found);
  return ToError(code);
}

cudaError_t IpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return ToError(Driver().cuIpcOpenEventHandle(event, Convert<CUipcEventHandle>(handle)));
}

}  // namespace cudasim::runtime
