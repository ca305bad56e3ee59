// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/host.h"

#include <dlfcn.h>

#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "examples/support/check.h"

namespace support {

using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;

void* FindSymbol(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : dlsym(library, symbol);
}

CUresult ResetDevice(Device device) {
  const auto reset = DRIVER(cuDevicePrimaryCtxReset);
  return reset == nullptr ? CUDA_ERROR_NOT_FOUND : reset(device.get());
}

bool IsActive(Device device) {
  const PrimaryContext::State state = PrimaryContext::Query(device);
  return CHECK_OK(cuguest::ToStatus(state)) && state.active;
}

const char* Activity(Device device) { return IsActive(device) ? "P is active" : "P is inactive"; }

absl::StatusOr<CUcontext> HandleOfPrimary(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext primary, PrimaryContext::Retain(device));
  return primary.get();
}

absl::StatusOr<HostContext> HostContext::Create(const Driver& driver, Device device) {
  CUcontext context = nullptr;
  const CUresult code = driver.CtxCreate(&context, 0, device.get());
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "create a context of the host's");
  CUcontext popped = nullptr;  // cuCtxCreate left it current
  driver.CtxPopCurrent(&popped);
  return HostContext(&driver, context);
}

HostContext& HostContext::operator=(HostContext&& other) noexcept {
  if (this == &other) return *this;
  Destroy();
  driver_ = other.driver_;
  context_ = std::exchange(other.context_, nullptr);
  return *this;
}

void HostContext::Destroy() {
  if (context_ != nullptr) driver_->CtxDestroy(std::exchange(context_, nullptr));
}

void HostStack::Set(const std::vector<CUcontext>& bottom_first) {
  CUcontext top = nullptr;  // asked for, since a pop that fails is a line in the driver's log
  while (driver_.CtxGetCurrent(&top) == CUDA_SUCCESS && top != nullptr) driver_.CtxPopCurrent(&top);
  for (CUcontext context : bottom_first) CHECK(driver_.CtxPushCurrent(context) == CUDA_SUCCESS);
}

std::vector<float> Ramp(int step) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i * step));
  return values;
}

}  // namespace support
