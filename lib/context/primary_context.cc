// SPDX-License-Identifier: Apache-2.0

#include "cuguest/primary_context.h"

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/core/driver_access.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

std::string PrimaryText(Device device) {
  return absl::StrCat("the primary context of device ", device.get());
}

}  // namespace

absl::StatusOr<PrimaryContext> PrimaryContext::Retain(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUcontext context = nullptr;
  const CUresult code = driver->DevicePrimaryCtxRetain(&context, device.get());
  if (code != CUDA_SUCCESS) return ToStatus(code, "retain", PrimaryText(device));
  const ContextRef incarnation = ContextRef::Borrow(context);
  if (incarnation.ok()) return PrimaryContext(device, incarnation);
  // Reset by somebody between the two calls: nothing that could be named was gained.
  static_cast<void>(driver->DevicePrimaryCtxRelease(device.get()));
  return ToStatus(incarnation.result(), "identify", PrimaryText(device));
}

absl::StatusOr<PrimaryContext> PrimaryContext::RetainIfActive(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const State state, Query(device));
  if (state.active) return Retain(device);
  return absl::FailedPreconditionError(absl::StrCat(
      "retain ", PrimaryText(device), " if it is active: nobody holds it, and it was not created"));
}

absl::StatusOr<PrimaryContext::State> PrimaryContext::Query(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  unsigned flags = 0;
  int active = 0;
  const CUresult code = driver->DevicePrimaryCtxGetState(device.get(), &flags, &active);
  if (code != CUDA_SUCCESS) return ToStatus(code, "query", PrimaryText(device));
  return State{active != 0, flags};
}

PrimaryContext& PrimaryContext::operator=(PrimaryContext&& other) noexcept {
  if (this == &other) return *this;
  static_cast<void>(End());
  device_ = other.device_;
  incarnation_ = std::exchange(other.incarnation_, ContextRef());
  return *this;
}

bool PrimaryContext::WasReset() const noexcept {
  return get() != nullptr && incarnation_.Check() == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

absl::Status PrimaryContext::Release() {
  const CUresult code = End();
  return code == CUDA_SUCCESS ? absl::OkStatus() : ToStatus(code, "release", PrimaryText(device_));
}

// Without a text, for the destructor: it must not need memory.
CUresult PrimaryContext::End() noexcept {
  if (get() == nullptr) return CUDA_SUCCESS;
  incarnation_ = ContextRef();
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = internal::TryDriver(&code);
  if (driver != nullptr) code = driver->DevicePrimaryCtxRelease(device_.get());
  // The process is ending, and the driver has taken everything back.
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

CUGUEST_END_NAMESPACE
