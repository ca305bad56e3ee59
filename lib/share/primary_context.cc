// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/primary_context.h"

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/share/primary_call.h"
#include "lib/status/call_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE

absl::StatusOr<PrimaryContext> PrimaryContext::Retain(Device device) {
  ContextRef incarnation;
  CUGUEST_RETURN_IF_ERROR(
      internal::CallStatus(internal::RetainPrimary(device.get(), &incarnation)));
  return PrimaryContext(device, incarnation);
}

absl::StatusOr<PrimaryContext> PrimaryContext::RetainIfActive(Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const State state, Query(device));
  if (state.active) return Retain(device);
  return absl::FailedPreconditionError(
      absl::StrCat("retain ", internal::PrimaryText(device.get()),
                   " if it is active: nobody holds it, and it was not created"));
}

absl::StatusOr<PrimaryContext::State> PrimaryContext::Query(Device device) {
  internal::PrimaryState state;
  CUGUEST_RETURN_IF_ERROR(internal::CallStatus(internal::QueryPrimary(device.get(), &state)));
  return State{state.active, state.flags};
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
  CUGUEST_RETURN_IF_CUDA_ERROR(End(), "release", internal::PrimaryText(device_.get()));
  return absl::OkStatus();
}

// Without a text, for the destructor: it must not need memory.
CUresult PrimaryContext::End() noexcept {
  if (get() == nullptr) return CUDA_SUCCESS;
  const CUresult code = internal::ReleasePrimary(device_.get());
  if (!internal::IsStillHeld(code)) incarnation_ = ContextRef();
  return code;
}

CUGUEST_END_NAMESPACE
