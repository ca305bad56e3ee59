// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, the choice of one, and what is set per device. The stack effects are those of
// Note [What a runtime does to contexts].

#include <algorithm>

#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/thread.h"

namespace cudasim::runtime {
namespace {

// The device that cudaGetDevice names where nothing is current.
int ChosenDevice() {
  const ThreadState& thread = ThisThreadState();
  if (thread.chosen_device >= 0) return thread.chosen_device;
  return thread.valid_devices.empty() ? 0 : thread.valid_devices.front();
}

// Every context maps host memory; the driver does not take the flag for a primary.
cudaError_t SetPrimaryFlags(int device, unsigned flags) {
  return ToError(Driver().cuDevicePrimaryCtxSetFlags(device, flags & ~unsigned{cudaDeviceMapHost}));
}

cudaError_t PrimaryFlags(int device, unsigned* flags) {
  int active = 0;
  const CUresult code = Driver().cuDevicePrimaryCtxGetState(device, flags, &active);
  *flags |= cudaDeviceMapHost;
  return ToError(code);
}

// The calls that name a device and mean its primary refuse to work in another context.
cudaError_t RequirePrimary() {
  Current current;
  const cudaError_t code = GetCurrent(&current);
  if (code != cudaSuccess) return code;
  const bool is_of_primary = current.is_primary || IsGreen(current.context);
  return is_of_primary ? cudaSuccess : cudaErrorIncompatibleDriverContext;
}

cudaError_t PeerContext(int peer, CUcontext* context) {
  if (!IsDevice(peer)) return cudaErrorInvalidDevice;
  const cudaError_t code = RequirePrimary();
  return code != cudaSuccess ? code : HoldPrimary(peer, context);
}

}  // namespace

cudaError_t GetDeviceCount(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = DeviceCount();
  return cudaSuccess;
}

cudaError_t GetDevice(int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  CUcontext context = nullptr;
  const CUresult code = Driver().cuCtxGetCurrent(&context);
  if (code != CUDA_SUCCESS) return ToError(code);
  if (context != nullptr) return ToError(Driver().cuCtxGetDevice(device));
  *device = ChosenDevice();
  return cudaSuccess;
}

cudaError_t SetDevice(int device) {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  CUcontext context = nullptr;
  const cudaError_t code = HoldPrimary(device, &context);
  if (code != cudaSuccess) return code;
  ThisThreadState().chosen_device = device;
  ThisThreadState().valid_devices.clear();
  return ToError(Driver().cuCtxSetCurrent(context));
}

// It also takes the current context off the stack, and does only that once the thread has called
// cudaSetDevice (measured on two H100, driver 580.159.04).
cudaError_t SetValidDevices(int* devices, int count) {
  if (count < 0 || (count > 0 && devices == nullptr)) return cudaErrorInvalidValue;
  if (!std::all_of(devices, devices + count, IsDevice)) return cudaErrorInvalidDevice;
  ThreadState& thread = ThisThreadState();
  if (thread.chosen_device < 0) thread.valid_devices.assign(devices, devices + count);
  return ToError(Driver().cuCtxSetCurrent(nullptr));
}

// Makes nothing current. Unknown bits of `flags` do not matter.
cudaError_t InitDevice(int device, unsigned device_flags, unsigned flags) {
  const bool has_flags = (flags & cudaInitDeviceFlagsAreValid) != 0;
  if (has_flags && (device_flags & ~unsigned{cudaDeviceMask}) != 0) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  const cudaError_t code = HoldPrimary(device, nullptr);
  return code == cudaSuccess && has_flags ? SetPrimaryFlags(device, device_flags) : code;
}

cudaError_t SetDeviceFlags(unsigned flags) {
  const unsigned schedule = flags & cudaDeviceScheduleMask;
  const bool are_flags =
      (flags & ~unsigned{cudaDeviceMask}) == 0 && (schedule & (schedule - 1)) == 0;
  if (!are_flags) return cudaErrorInvalidValue;
  cudaError_t code = BindContext();
  if (code == cudaSuccess) code = RequirePrimary();
  CUdevice device = 0;
  if (code == cudaSuccess) code = ToError(Driver().cuCtxGetDevice(&device));
  return code != cudaSuccess ? code : SetPrimaryFlags(device, flags);
}

// The current context's, whatever it is; where none is, those of the primary to be.
cudaError_t GetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return cudaErrorInvalidValue;
  CUcontext context = nullptr;
  const CUresult code = Driver().cuCtxGetCurrent(&context);
  if (code != CUDA_SUCCESS) return ToError(code);
  if (context == nullptr) return PrimaryFlags(ChosenDevice(), flags);
  return ToError(Driver().cuCtxGetFlags(flags));
}

// The attributes have the driver's numbers.
cudaError_t DeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return cudaErrorInvalidValue;
  return ToError(
      Driver().cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t DeviceGetPCIBusId(char* id, int size, int device) {
  if (id == nullptr || size <= 0) return cudaErrorInvalidValue;
  return ToError(Driver().cuDeviceGetPCIBusId(id, size, device));
}

cudaError_t DeviceGetByPCIBusId(int* device, const char* id) {
  if (device == nullptr || id == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuDeviceGetByPCIBusId(device, id));
}

// In a green context the device is its primary.
cudaError_t DeviceSynchronize() {
  Current current;
  cudaError_t code = GetCurrent(&current);
  if (code != cudaSuccess || !IsGreen(current.context)) return ToError(Driver().cuCtxSynchronize());
  CUcontext primary = nullptr;
  code = HoldPrimary(current.device, &primary);
  return code != cudaSuccess ? code : ToError(Driver().cuCtxSynchronize_v2(primary));
}

// Only a living primary that is current, or whose green context is, is reset; it stays current,
// dead.
cudaError_t DeviceReset() {
  Current current;
  const cudaError_t code = GetCurrent(&current);
  const bool is_of_primary = current.is_primary || IsGreen(current.context);
  if (code != cudaSuccess || !is_of_primary || !current.is_alive) return code;
  return ResetPrimary(current.device);
}

// The limits and the cache configurations have the driver's numbers.
cudaError_t DeviceGetLimit(size_t* value, cudaLimit limit) {
  return ToError(Driver().cuCtxGetLimit(value, static_cast<CUlimit>(limit)));
}

cudaError_t DeviceSetLimit(cudaLimit limit, size_t value) {
  return ToError(Driver().cuCtxSetLimit(static_cast<CUlimit>(limit), value));
}

cudaError_t DeviceGetCacheConfig(cudaFuncCache* config) {
  CUfunc_cache found = CU_FUNC_CACHE_PREFER_NONE;
  if (config == nullptr) return cudaErrorInvalidValue;
  const CUresult code = Driver().cuCtxGetCacheConfig(&found);
  if (code == CUDA_SUCCESS) *config = static_cast<cudaFuncCache>(found);
  return ToError(code);
}

cudaError_t DeviceSetCacheConfig(cudaFuncCache config) {
  return ToError(Driver().cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)));
}

cudaError_t DeviceGetStreamPriorityRange(int* least, int* greatest) {
  return ToError(Driver().cuCtxGetStreamPriorityRange(least, greatest));
}

// The one call that wants a context and makes none.
cudaError_t CtxResetPersistingL2Cache() { return ToError(Driver().cuCtxResetPersistingL2Cache()); }

cudaError_t DeviceCanAccessPeer(int* can, int device, int peer) {
  if (!IsDevice(device) || !IsDevice(peer)) return cudaErrorInvalidDevice;
  return ToError(Driver().cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t DeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to) {
  if (value == nullptr) return cudaErrorInvalidValue;
  return ToError(Driver().cuDeviceGetP2PAttribute(
      value, static_cast<CUdevice_P2PAttribute>(attribute), from, to));
}

cudaError_t DeviceEnablePeerAccess(int peer, unsigned flags) {
  CUcontext context = nullptr;
  const cudaError_t code = PeerContext(peer, &context);
  return code != cudaSuccess ? code : ToError(Driver().cuCtxEnablePeerAccess(context, flags));
}

cudaError_t DeviceDisablePeerAccess(int peer) {
  CUcontext context = nullptr;
  const cudaError_t code = PeerContext(peer, &context);
  return code != cudaSuccess ? code : ToError(Driver().cuCtxDisablePeerAccess(context));
}

}  // namespace cudasim::runtime
