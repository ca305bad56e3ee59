// SPDX-License-Identifier: Apache-2.0

#include "examples/support/host.h"

#include "cuguest/error.h"
#include "examples/support/check.h"

namespace support {

using cuguest::Driver;

absl::StatusOr<HostContext> HostContext::Create(const Driver& driver, cuguest::Device device) {
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
  CUcontext popped = nullptr;
  while (driver_.CtxPopCurrent(&popped) == CUDA_SUCCESS) {
  }
  for (CUcontext context : bottom_first) CHECK(driver_.CtxPushCurrent(context) == CUDA_SUCCESS);
}

std::vector<float> Ramp(int step) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i * step));
  return values;
}

}  // namespace support
