// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/acquire.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "lib/acquire/acquire_call.h"
#include "lib/core/driver_status.h"
#include "lib/status/call_status.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Acquired;
using internal::CallOutcome;
using internal::CallStatus;
using internal::ContextText;
using internal::MemoryExtent;
using Why = CallOutcome::Why;

CUdeviceptr AddressOf(const void* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

std::string MemoryText(CUdeviceptr pointer) {
  return absl::StrCat("pointer ", internal::PointerText(pointer));
}

std::string CurrentText(const CallOutcome& outcome) {
  if (outcome.context == nullptr) return "no context is current";
  return absl::StrCat("the current one, ", ContextText(outcome.context), ", is on device ",
                      outcome.context_device);
}

absl::Status FromStreamStatus(const CallOutcome& outcome, CUstream stream) {
  if (outcome.why == Why::kNoEntry) {
    const absl::StatusOr<const Driver*> driver = Driver::Get();
    return driver.ok() ? (*driver)->Require(&Driver::StreamGetCtx).status() : driver.status();
  }
  return CallStatus(
      outcome, absl::StrCat(internal::StreamText(stream),
                            internal::MeansCurrent(stream) ? ", which means the current one" : ""));
}

absl::Status OnDeviceStatus(const CallOutcome& outcome) {
  if (outcome.why != Why::kInactive) return CallStatus(outcome);
  return absl::FailedPreconditionError(
      absl::StrCat("acquire a context on device ", outcome.device, ": ", CurrentText(outcome),
                   "; the primary context of device ", outcome.device,
                   " is not active, and creating it was not asked for. Make a context of device ",
                   outcome.device, " current, or ask with IfInactive::kCreate"));
}

absl::Status FromPointerStatus(const CallOutcome& outcome, CUdeviceptr pointer) {
  if (outcome.why == Why::kUnknownMemory) {
    return ToStatus(outcome.code, "acquire a context",
                    absl::StrCat(MemoryText(pointer),
                                 ", which is not memory that CUDA knows (plain host memory, or "
                                 "freed)"));
  }
  if (outcome.why == Why::kFindDevice) {
    return internal::NoDeviceStatus(outcome.code, outcome.device);
  }
  if (!outcome.of_memory) return CallStatus(outcome, MemoryText(pointer));
  const absl::Status status = OnDeviceStatus(outcome);
  return internal::Reworded(
      status, status.code(),
      absl::StrCat(MemoryText(pointer), " is memory of device ", outcome.device,
                   " that no context owns; ", status.message()));
}

std::string RangeText(CUdeviceptr pointer, std::size_t bytes) {
  return absl::StrCat("acquire a context: ", bytes, " bytes at ", internal::PointerText(pointer));
}

absl::Status FromBufferStatus(const CallOutcome& outcome, CUdeviceptr pointer, std::size_t bytes,
                              const MemoryExtent& found) {
  if (outcome.why == Why::kNoRange) {
    return absl::InvalidArgumentError(
        absl::StrCat(RangeText(pointer, bytes), bytes == 0 ? ": there is nothing to look at"
                                                           : ": more than there are addresses"));
  }
  if (outcome.why == Why::kOutside) {
    return absl::InvalidArgumentError(
        absl::StrCat(RangeText(pointer, bytes), ": only ", found.base + found.size - pointer,
                     " of them lie in the allocation there, which is ", found.size, " bytes at ",
                     internal::PointerText(found.base)));
  }
  return FromPointerStatus(outcome, pointer);
}

absl::Status CurrentStatus(const CallOutcome& outcome) {
  if (outcome.why == Why::kOtherDevice) {
    return absl::FailedPreconditionError(absl::StrCat("acquire the current context, device ",
                                                      outcome.device, ": ", CurrentText(outcome)));
  }
  return CallStatus(outcome, outcome.context != nullptr ? ContextText(outcome.context)
                                                        : absl::StrCat("device ", outcome.device));
}

}  // namespace

AcquireResult AcquireFromStream(CUstream stream) {
  Acquired acquired;
  const CallOutcome outcome = internal::AcquireFromStream(stream, &acquired);
  if (!outcome.ok()) return FromStreamStatus(outcome, stream);
  return AcquiredContext(acquired);
}

AcquireResult AcquireFromStream(CUstream stream, Device device, IfInactive if_inactive) {
  return internal::MeansCurrent(stream) ? AcquireOn(device, if_inactive)
                                        : AcquireFromStream(stream);
}

AcquireResult AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive) {
  Acquired acquired;
  const CallOutcome outcome = internal::AcquireFromPointer(pointer, if_inactive, &acquired);
  if (!outcome.ok()) return FromPointerStatus(outcome, pointer);
  return AcquiredContext(acquired);
}

AcquireResult AcquireFromPointer(const void* pointer, IfInactive if_inactive) {
  return AcquireFromPointer(AddressOf(pointer), if_inactive);
}

AcquireResult AcquireFromBuffer(CUdeviceptr pointer, std::size_t bytes, IfInactive if_inactive) {
  Acquired acquired;
  MemoryExtent found;
  const CallOutcome outcome =
      internal::AcquireFromBuffer(pointer, bytes, if_inactive, &acquired, &found);
  if (!outcome.ok()) return FromBufferStatus(outcome, pointer, bytes, found);
  return AcquiredContext(acquired);
}

AcquireResult AcquireFromBuffer(const void* pointer, std::size_t bytes, IfInactive if_inactive) {
  return AcquireFromBuffer(AddressOf(pointer), bytes, if_inactive);
}

AcquiredContext::AcquiredContext(const Acquired& acquired) noexcept
    : incarnation_(acquired.incarnation), source_(acquired.source), device_(acquired.device) {
  if (acquired.HoldsPrimary()) {
    kept_ = PrimaryContext(Device::Borrow(acquired.device), acquired.incarnation);
  }
}

absl::StatusOr<Device> AcquiredContext::device() const {
  if (device_ != internal::kDeviceNotAsked) return Device::Borrow(device_);
  CUGUEST_RETURN_IF_ERROR(Driver::Get().status());
  const ContextGuard guard(incarnation_);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), "find the device of an acquired context",
                               guard.advice());
  return Device::OfCurrentContext();
}

namespace internal {

AcquireResult AcquireFromOwner(const ContextRef& context, Device device, bool is_empty,
                               IfInactive if_inactive) {
  if (is_empty) return absl::InvalidArgumentError("acquire a context: the buffer is empty");
  Acquired acquired;
  const CallOutcome outcome = AcquireFromOwner(context, device.get(), if_inactive, &acquired);
  if (outcome.ok()) return AcquiredContext(acquired);
  return context.get() == nullptr
             ? OnDeviceStatus(outcome)
             : CallStatus(outcome, absl::StrCat("memory of ", ContextText(context.get())));
}

AcquireResult AcquireCurrent(const CurrentContext& asked, Device device) {
  Acquired acquired;
  const CallOutcome outcome = AcquireCurrent(asked, device.get(), &acquired);
  if (!outcome.ok()) return CurrentStatus(outcome);
  return AcquiredContext(acquired);
}

AcquireResult AcquireOn(const CurrentContext& asked, Device device, IfInactive if_inactive) {
  Acquired acquired;
  const CallOutcome outcome = AcquireOn(asked, device.get(), if_inactive, &acquired);
  if (!outcome.ok()) return OnDeviceStatus(outcome);
  return AcquiredContext(acquired);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
