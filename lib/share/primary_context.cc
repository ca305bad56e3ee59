// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/primary_context.h"

#include <utility>

#include "lib/core/failure.h"
#include "lib/share/ending.h"
#include "lib/share/owed.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::AskOf;
using Reason = Error::Reason;

Error OfPrimary(const Error& error, Device device) {
  return error.ok() ? error : internal::OfDevice(error, Error::Subject::kPrimary, device.get());
}

// Retains, and says which incarnation it was.
Error RetainOn(Device device, ContextRef* incarnation) {
  const DriverTable* driver = nullptr;
  const Error found = internal::GetInitializedDriver(&driver);
  if (!found.ok()) return found;
  CUcontext context = nullptr;
  const CUresult code =
      AskOf(device.get(), [&] { return driver->DevicePrimaryCtxRetain(&context, device.get()); });
  if (code != CUDA_SUCCESS) return OfPrimary(internal::Failure(code, "retain"), device);
  internal::LearnPrimary(device.get(), context);
  *incarnation = ContextRef::Borrow(context);
  if (incarnation->ok()) return {};
  // Reset by somebody between the two calls: nothing that could be named was gained.
  static_cast<void>(driver->DevicePrimaryCtxRelease(device.get()));
  return OfPrimary(internal::Failure(incarnation->result(), "identify"), device);
}

}  // namespace

PrimaryContext PrimaryContext::Retain(Device device) noexcept {
  internal::EndOwed();
  PrimaryContext primary;
  primary.device_ = device;
  primary.error_ = RetainOn(device, &primary.incarnation_);
  return primary;
}

PrimaryContext PrimaryContext::RetainIfActive(Device device) noexcept {
  const State state = Query(device);
  if (state.ok() && state.active) return Retain(device);
  PrimaryContext none;
  none.device_ = device;
  none.error_ = state.error();
  if (state.ok()) {
    none.error_ = OfPrimary(internal::Failure(Reason::kNobodyHolds, CUDA_ERROR_INVALID_CONTEXT,
                                              "retain if it is active"),
                            device);
  }
  return none;
}

PrimaryContext::State PrimaryContext::Query(Device device) noexcept {
  State state;
  const DriverTable* driver = nullptr;
  state.failure = internal::GetInitializedDriver(&driver);
  if (!state.ok()) return state;
  unsigned flags = 0;
  int active = 0;
  const CUresult code = AskOf(device.get(), [&] {
    return driver->DevicePrimaryCtxGetState(device.get(), &flags, &active);
  });
  state.failure = OfPrimary(internal::Failure(code, "query"), device);
  if (!state.ok()) return state;
  state.active = active != 0;
  state.flags = flags;
  return state;
}

PrimaryContext& PrimaryContext::operator=(PrimaryContext&& other) noexcept {
  if (this == &other) return *this;
  const PrimaryContext before(std::move(*this));
  device_ = other.device_;
  incarnation_ = other.incarnation_;
  error_ = other.error_;
  other.incarnation_ = ContextRef();
  return *this;
}

PrimaryContext::~PrimaryContext() {
  internal::EndOwed();
  if (ok()) internal::ReleasePrimaryOrOwe(device_.get(), "a PrimaryContext");
}

Error PrimaryContext::error() const noexcept {
  if (ok()) return {};
  if (!error_.ok()) return error_;
  return internal::Failure(Reason::kEmpty, CUDA_ERROR_INVALID_CONTEXT, "hold a primary context");
}

bool PrimaryContext::WasReset() const noexcept {
  return ok() && incarnation_.Check() == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Error PrimaryContext::Release() noexcept {
  if (!ok()) return {};
  const CUresult code = internal::ReleasePrimary(device_.get());
  if (!internal::IsStillHeld(code)) incarnation_ = ContextRef();
  return OfPrimary(internal::Failure(code, "release"), device_);
}

CUGUEST_END_NAMESPACE
