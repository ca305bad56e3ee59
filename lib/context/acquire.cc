// SPDX-License-Identifier: Apache-2.0

#include "cuguest/acquire.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;
using internal::CurrentContext;
using internal::Incarnation;
using internal::MeansCurrent;
using internal::StreamText;
using Source = AcquiredContext::Source;

// What the calling thread has current: nothing, or a context, dead or alive, and its
// device.
struct Current {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUresult life = CUDA_SUCCESS;
  ContextRef incarnation;  // empty if it is dead

  bool IsOn(Device wanted) const { return context != nullptr && device == wanted.get(); }
  std::string Text() const {
    if (context == nullptr) return "no context is current";
    return absl::StrCat("the current one, ", ContextText(context), ", is on device ", device);
  }
};

// Which incarnation of `context`, which is current, is alive there. After a sticky error only the
// question by handle is answered.
CUresult Identify(const CurrentContext& asked, CUcontext context, ContextRef* incarnation) {
  if (asked.code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return asked.code;
  *incarnation = asked.code == CUDA_SUCCESS ? Incarnation{context, asked.id}.Ref()
                                            : ContextRef::Borrow(context);
  return incarnation->result();
}

void See(const ContextRef& incarnation, CUdevice device) {
  internal::t_this_thread.seen = {incarnation.id(), incarnation.get(), device};
}
constexpr CUdevice kNotAsked = -1;

absl::StatusOr<Current> LookAtCurrent(const Driver& driver, const CurrentContext& asked) {
  Current current;
  const bool is_seen = asked.IsSeen();
  if (is_seen) current = {asked.Seen().context, internal::t_this_thread.seen.device, {}, {}};
  CUresult code = is_seen ? CUDA_SUCCESS : driver.CtxGetCurrent(&current.context);
  const bool is_any = code == CUDA_SUCCESS && current.context != nullptr;
  if (is_any && (!is_seen || current.device == kNotAsked)) {
    code = driver.CtxGetDevice(&current.device);
  }
  if (is_any && code == CUDA_SUCCESS) {
    current.life = Identify(asked, current.context, &current.incarnation);
    if (current.life != CUDA_ERROR_CONTEXT_IS_DESTROYED) code = current.life;
  }
  if (code != CUDA_SUCCESS) return ToStatus(code, "look at the current context");
  if (current.incarnation.ok()) See(current.incarnation, current.device);
  return current;
}

absl::Status NoContextOf(CUresult code, CUstream stream) {
  return ToStatus(code, "acquire a context",
                  absl::StrCat(StreamText(stream),
                               MeansCurrent(stream) ? ", which means the current one" : ""));
}

// Not by cuStreamGetCtx, which answers the same, but of stream 0 invalidates the capture of a
// blocking stream of the context (cudasim/test/capture_facts_test.cc).
AcquireResult AcquireFromSpecialStream(const Driver& driver, CUstream stream) {
  const CurrentContext asked;
  if (asked.IsSeen()) return AcquiredContext(asked.Seen().Ref(), Source::kCurrent);
  CUcontext context = nullptr;
  const CUresult code = driver.CtxGetCurrent(&context);
  if (code != CUDA_SUCCESS) return NoContextOf(code, stream);
  if (context == nullptr) return NoContextOf(CUDA_ERROR_INVALID_CONTEXT, stream);
  ContextRef current;
  const CUresult life = Identify(asked, context, &current);
  if (life != CUDA_SUCCESS) return NoContextOf(life, stream);
  See(current, kNotAsked);
  return AcquiredContext(current, Source::kCurrent);
}

std::string MemoryText(CUdeviceptr pointer) {
  return absl::StrCat("pointer ", internal::PointerText(pointer));
}

absl::Status NothingOn(Device device, const Current& current) {
  return absl::FailedPreconditionError(
      absl::StrCat("acquire a context on device ", device.get(), ": ", current.Text(),
                   "; the primary context of device ", device.get(),
                   " is not active, and creating it was not asked for. Make a context of device ",
                   device.get(), " current, or ask with IfInactive::kCreate"));
}

// Memory that belongs to a device instead of a context.
AcquireResult AcquireForDeviceMemory(const Driver& driver, CUdeviceptr pointer) {
  int ordinal = 0;
  const CUresult code =
      driver.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  if (code != CUDA_SUCCESS) return ToStatus(code, "find the device of memory", MemoryText(pointer));
  const absl::StatusOr<Device> device = Device::At(Ordinal{ordinal});
  if (!device.ok()) return device.status();
  AcquireResult acquired = AcquireOn(*device);
  if (acquired.ok()) return acquired;
  return absl::Status(acquired.status().code(),
                      absl::StrCat(MemoryText(pointer), " is memory of device ", ordinal,
                                   " that no context owns; ", acquired.status().message()));
}

}  // namespace

const char* Name(AcquiredContext::Source source) noexcept {
  switch (source) {
    case Source::kStream:
      return "the stream";
    case Source::kPointer:
      return "the pointer";
    case Source::kCurrent:
      return "the current context";
    case Source::kPrimary:
      return "the primary context";
    case Source::kCreated:
      return "the primary context, created";
  }
  return "nowhere";
}

AcquireResult AcquireFromStream(CUstream stream) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  if (MeansCurrent(stream)) return AcquireFromSpecialStream(*driver, stream);
  if (driver->StreamGetCtx == nullptr) return driver->Require(&Driver::StreamGetCtx).status();
  CUcontext context = nullptr;
  const CUresult code = driver->StreamGetCtx(stream, &context);
  if (code != CUDA_SUCCESS) return NoContextOf(code, stream);
  const ContextRef incarnation = ContextRef::Borrow(context);
  if (!incarnation.ok()) return NoContextOf(incarnation.result(), stream);
  return AcquiredContext(incarnation, Source::kStream);
}

AcquireResult AcquireFromPointer(CUdeviceptr pointer) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  CUcontext context = nullptr;
  const CUresult code =
      driver->PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
  if (code == CUDA_ERROR_INVALID_VALUE) {
    return ToStatus(code, "acquire a context",
                    absl::StrCat(MemoryText(pointer),
                                 ", which is not memory that CUDA knows (plain host memory, or "
                                 "freed)"));
  }
  if (code != CUDA_SUCCESS) return ToStatus(code, "acquire a context", MemoryText(pointer));
  if (context == nullptr) return AcquireForDeviceMemory(*driver, pointer);
  const ContextRef incarnation = ContextRef::Borrow(context);
  if (incarnation.ok()) return AcquiredContext(incarnation, Source::kPointer);
  return ToStatus(incarnation.result(), "acquire a context", MemoryText(pointer));
}

AcquireResult AcquireFromPointer(const void* pointer) {
  return AcquireFromPointer(static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer)));
}

namespace internal {

AcquireResult AcquireCurrent(const CurrentContext& asked, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const Current current, LookAtCurrent(*driver, asked));
  if (current.context == nullptr) {
    return ToStatus(CUDA_ERROR_INVALID_CONTEXT, "acquire the current context",
                    absl::StrCat("device ", device.get()));
  }
  if (!current.IsOn(device)) {
    return absl::FailedPreconditionError(
        absl::StrCat("acquire the current context, device ", device.get(), ": ", current.Text()));
  }
  if (current.incarnation.ok()) return AcquiredContext(current.incarnation, Source::kCurrent);
  return ToStatus(current.life, "acquire the current context", ContextText(current.context));
}

AcquireResult AcquireOn(const CurrentContext& asked, Device device, IfInactive if_inactive) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  CUGUEST_ASSIGN_OR_RETURN(const Current current, LookAtCurrent(*driver, asked));
  if (current.IsOn(device) && current.incarnation.ok()) {
    return AcquiredContext(current.incarnation, Source::kCurrent);
  }
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext::State state, PrimaryContext::Query(device));
  if (!state.active && if_inactive == IfInactive::kRefuse) return NothingOn(device, current);
  CUGUEST_ASSIGN_OR_RETURN(PrimaryContext primary, PrimaryContext::Retain(device));
  return AcquiredContext(std::move(primary), state.active ? Source::kPrimary : Source::kCreated);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
