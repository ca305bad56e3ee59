// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/context.h"

#include <mutex>
#include <numeric>
#include <vector>

#include "runtime/driver.h"
#include "runtime/thread.h"

namespace cudasim::runtime {
namespace {

bool IsAlive(CUcontext context, unsigned long long* id) {
  return Driver().cuCtxGetId(context, id) == CUDA_SUCCESS;
}

bool IsActive(int device) {
  unsigned flags = 0;
  int active = 0;
  Driver().cuDevicePrimaryCtxGetState(device, &flags, &active);
  return active != 0;
}

// The runtime's reference to one device's primary.
struct Reference {
  std::mutex mutex;
  CUcontext handle = nullptr;  // the primary's, for ever, once known
  bool held = false;
  unsigned long long incarnation = 0;  // the id of the incarnation that is held

  bool HoldsLiving() const {
    unsigned long long id = 0;
    return held && IsAlive(handle, &id) && id == incarnation;
  }

  // A living primary that is current: one reference is enough, and nobody looks whether
  // the driver's user has released it.
  CUresult Attach(int device) { return held ? CUDA_SUCCESS : Hold(device); }

  CUresult Hold(int device) {
    if (HoldsLiving()) return CUDA_SUCCESS;
    if (held && IsActive(device)) return TakeOver();
    GiveBack(device);
    const CUresult code = Driver().cuDevicePrimaryCtxRetain(&handle, device);
    if (code != CUDA_SUCCESS) return code;
    held = true;
    return Driver().cuCtxGetId(handle, &incarnation);
  }

  // A new incarnation that somebody else began: the reference to the one before counts for it, also
  // if a release too many has taken it (measured on an H100, driver 580.159.04).
  CUresult TakeOver() { return Driver().cuCtxGetId(handle, &incarnation); }

  // In vain if the driver's user took it.
  void GiveBack(int device) {
    if (held) Driver().cuDevicePrimaryCtxRelease(device);
    held = false;
  }

  // No call of the driver's tells a primary's handle without retaining it; a real runtime has
  // private tables. Where there are none, and retaining would begin an incarnation, a living
  // context is none of it.
  bool Is(CUcontext context, int device, bool is_alive) {
    if (handle == nullptr) Learn(device, is_alive);
    return handle == context;
  }

  void Learn(int device, bool only_active) {
    handle = PrimaryHandle(device);
    if (handle != nullptr) return;
    if (only_active && !IsActive(device)) return;
    if (Driver().cuDevicePrimaryCtxRetain(&handle, device) != CUDA_SUCCESS) return;
    Driver().cuDevicePrimaryCtxRelease(device);
  }
};

Reference& ReferenceOf(int device) {
  static auto& references = *new std::vector<Reference>(static_cast<size_t>(DeviceCount()));
  return references[static_cast<size_t>(device)];
}

// Two codes come through, every other one means that there is no device to be had
// (measured with twenty codes on an H200, driver 580.159.04).
cudaError_t RetainError(CUresult code) {
  const bool passes = code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_NOT_SUPPORTED;
  return passes ? ToError(code) : cudaErrorDevicesUnavailable;
}

std::vector<int> ValidDevices() {
  std::vector<int> devices = ThisThreadState().valid_devices;
  if (devices.empty()) {
    devices.resize(static_cast<size_t>(DeviceCount()));
    std::iota(devices.begin(), devices.end(), 0);
  }
  return devices;
}

// What the driver says of it as a green context.
CUresult AskGreen(CUcontext context) {
  CUcontext same = nullptr;
  return Driver().cuCtxFromGreenCtx(&same, reinterpret_cast<CUgreenCtx>(context));
}

// A destroyed green context says so itself, and the primary that it was of is held (measured on an
// H200, driver 580.159.04).
cudaError_t GoneError(const Current& current) {
  const CUresult code = AskGreen(current.context);
  if (code != CUDA_ERROR_CONTEXT_IS_DESTROYED) return cudaErrorDeviceUninitialized;
  Reference& reference = ReferenceOf(current.device);
  const std::lock_guard<std::mutex> lock(reference.mutex);
  reference.Hold(current.device);
  return ToError(code);
}

// The first device that can be had.
cudaError_t BindFirstDevice() {
  cudaError_t code = cudaErrorNoDevice;
  for (const int device : ValidDevices()) {
    CUcontext context = nullptr;
    code = HoldPrimary(device, &context);
    if (code == cudaSuccess) return ToError(Driver().cuCtxSetCurrent(context));
  }
  return code;
}

cudaError_t AttachToPrimary(int device) {
  Reference& reference = ReferenceOf(device);
  const std::lock_guard<std::mutex> lock(reference.mutex);
  const CUresult code = reference.Attach(device);
  return code == CUDA_SUCCESS ? cudaSuccess : RetainError(code);
}

}  // namespace

bool IsGreen(CUcontext context) { return context != nullptr && AskGreen(context) == CUDA_SUCCESS; }

cudaError_t GetCurrent(Current* current) {
  CUresult code = Driver().cuCtxGetCurrent(&current->context);
  if (code != CUDA_SUCCESS || current->context == nullptr) return ToError(code);
  code = Driver().cuCtxGetDevice(&current->device);
  if (code != CUDA_SUCCESS) return ToError(code);
  unsigned long long id = 0;
  current->is_alive = IsAlive(current->context, &id);
  Reference& reference = ReferenceOf(current->device);
  const std::lock_guard<std::mutex> lock(reference.mutex);
  current->is_primary = reference.Is(current->context, current->device, current->is_alive);
  return cudaSuccess;
}

cudaError_t BindContext() {
  Current current;
  const cudaError_t code = GetCurrent(&current);
  if (code != cudaSuccess) return code;
  if (current.context == nullptr) return BindFirstDevice();
  if (current.is_primary && current.is_alive) return AttachToPrimary(current.device);
  if (current.is_primary) return HoldPrimary(current.device, nullptr);
  return current.is_alive ? cudaSuccess : GoneError(current);
}

cudaError_t HoldPrimary(int device, CUcontext* context) {
  CUcontext current = nullptr;
  CUresult code = Driver().cuCtxGetCurrent(&current);
  if (code != CUDA_SUCCESS) return ToError(code);  // a forked child, or the end
  Reference& reference = ReferenceOf(device);
  const std::lock_guard<std::mutex> lock(reference.mutex);
  code = reference.Hold(device);
  if (code != CUDA_SUCCESS) return RetainError(code);
  if (context != nullptr) *context = reference.handle;
  return cudaSuccess;
}

cudaError_t ResetPrimary(int device) {
  Reference& reference = ReferenceOf(device);
  const std::lock_guard<std::mutex> lock(reference.mutex);
  const CUresult code = Driver().cuDevicePrimaryCtxReset(device);
  if (code == CUDA_SUCCESS) reference.GiveBack(device);
  return ToError(code);
}

}  // namespace cudasim::runtime
