// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/acquire/acquire_call.h"

#include "cuguest/context_source.h"
#include "cuguest/internal/stream_kind.h"
#include "lib/share/primary_call.h"

CUGUEST_BEGIN_NAMESPACE

const char* Name(ContextSource source) noexcept {
  switch (source) {
    case ContextSource::kStream:
      return "the stream";
    case ContextSource::kPointer:
      return "the pointer";
    case ContextSource::kCurrent:
      return "the current context";
    case ContextSource::kPrimary:
      return "the primary context";
    case ContextSource::kCreated:
      return "the primary context, created";
  }
  return "nowhere";
}

CUGUEST_END_NAMESPACE
CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using Why = CallOutcome::Why;

constexpr char kAcquire[] = "acquire a context";
constexpr char kAcquireCurrent[] = "acquire the current context";

// What the calling thread has current: nothing, or a context, dead or alive, and its
// device.
struct Current {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUresult alive = CUDA_SUCCESS;
  ContextRef incarnation;  // empty if it is dead

  bool IsOn(CUdevice wanted) const { return context != nullptr && device == wanted; }
};

CallOutcome Found(const ContextRef& incarnation, ContextSource source, CUdevice device,
                  Acquired* acquired) {
  *acquired = {incarnation, source, device};
  return {};
}

// Which incarnation of the current context is alive there.
CUresult Identify(const CurrentContext& asked, ContextRef* incarnation) {
  if (asked.code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return asked.code;
  *incarnation = asked.code == CUDA_SUCCESS ? Incarnation{asked.context, asked.id}.Ref()
                                            : ContextRef::Borrow(asked.context);
  return incarnation->result();
}

// `asked`, or what is found now if there was no driver to ask then.
CurrentContext Resolved(const CurrentContext& asked) {
  return asked.code == kNotResolved ? CurrentContext() : asked;
}

void See(const ContextRef& incarnation, long long device) {
  t_this_thread.seen = {incarnation.id(), device};
}

// Of the context that was seen: kDeviceNotAsked if it was seen where its device was not asked for.
CUdevice SeenDevice() {
  const long long device = t_this_thread.seen.device;
  return device == SeenContext::kNoDeviceYet ? kDeviceNotAsked : static_cast<CUdevice>(device);
}

CallOutcome LookAtCurrent(const DriverTable& driver, const CurrentContext& before,
                          Current* current) {
  const CurrentContext asked = Resolved(before);
  const bool is_seen = asked.IsSeen();
  *current = {asked.context, is_seen ? SeenDevice() : kDeviceNotAsked, {}, {}};
  const bool is_any = asked.context != nullptr;
  CUresult code = is_any ? CUDA_SUCCESS : asked.code;
  if (is_any && current->device == kDeviceNotAsked) code = driver.CtxGetDevice(&current->device);
  if (is_any && code == CUDA_SUCCESS) {
    current->alive = Identify(asked, &current->incarnation);
    if (current->alive != CUDA_ERROR_CONTEXT_IS_DESTROYED) code = current->alive;
  }
  if (code != CUDA_SUCCESS) return Failure(code, Why::kAlone, "look at the current context");
  if (current->incarnation.ok()) See(current->incarnation, current->device);
  return {};
}

// Not by cuStreamGetCtx, which answers the same, but of stream 0 invalidates the capture of a
// blocking stream of the context (cudasim/test/capture_facts_test.cc).
CallOutcome AcquireFromSpecialStream(Acquired* acquired) {
  const CurrentContext asked = Resolved(CurrentContext());
  if (asked.IsSeen()) {
    return Found(asked.Seen().Ref(), ContextSource::kCurrent, SeenDevice(), acquired);
  }
  CUresult code = asked.context != nullptr ? CUDA_SUCCESS : asked.code;
  if (code == CUDA_SUCCESS && asked.context == nullptr) code = CUDA_ERROR_INVALID_CONTEXT;
  ContextRef current;
  if (code == CUDA_SUCCESS) code = Identify(asked, &current);
  if (code != CUDA_SUCCESS) return Failure(code, kAcquire);
  See(current, SeenContext::kNoDeviceYet);
  return Found(current, ContextSource::kCurrent, kDeviceNotAsked, acquired);
}

CallOutcome With(CallOutcome outcome, CUdevice device, const Current& current) {
  outcome.device = device;
  outcome.context = current.context;
  outcome.context_device = current.device;
  return outcome;
}

CallOutcome AcquireForContextMemory(CUcontext context, Acquired* acquired) {
  const ContextRef incarnation = ContextRef::Borrow(context);
  if (!incarnation.ok()) return Failure(incarnation.result(), kAcquire);
  return Found(incarnation, ContextSource::kPointer, kDeviceNotAsked, acquired);
}

// Memory that belongs to a device instead of a context.
CallOutcome AcquireForDeviceMemory(const DriverTable& driver, int ordinal, IfInactive if_inactive,
                                   Acquired* acquired) {
  const DriverTable* initialized = nullptr;
  CallOutcome outcome = GetInitializedDriver(&initialized);
  if (!outcome.ok()) return outcome;
  CUdevice device = 0;
  const CUresult code = driver.DeviceGet(&device, ordinal);
  if (code != CUDA_SUCCESS) return With(Failure(code, Why::kFindDevice), ordinal, {});
  outcome = AcquireOn(device, if_inactive, acquired);
  outcome.of_memory = true;
  outcome.device = device;
  return outcome;
}

// Whether `bytes` from `pointer` on, of which `first` was read, lie in one piece. Mappings of one
// device that lie side by side are one to the driver (cudasim/test/virtual_memory_facts_test.cc).
CallOutcome CheckExtent(const DriverTable& driver, const PointerAttributes& first,
                        CUdeviceptr pointer, std::size_t bytes, MemoryExtent* found) {
  *found = first.Extent();
  PointerAttributes last = first;
  while (found->size != 0 && found->base + found->size - pointer < bytes) {
    const CUdeviceptr end = found->base + found->size;
    if (!last.IsVirtual()) return Failure(CUDA_ERROR_INVALID_VALUE, Why::kOutside);
    const CUresult code = ReadAttributes(driver, end, &last);
    if (code != CUDA_SUCCESS) return Failure(code, kAcquire);
    const MemoryExtent next = last.Extent();
    if (!last.IsVirtual() || last.ordinal != first.ordinal || next.base != end || next.size == 0) {
      return Failure(CUDA_ERROR_INVALID_VALUE, Why::kOutside);
    }
    found->size += next.size;
  }
  return {};
}

}  // namespace

CallOutcome AcquireFromStream(CUstream stream, Acquired* acquired) noexcept {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetDriver(&driver);
  if (!found.ok()) return found;
  if (MeansCurrent(stream)) return AcquireFromSpecialStream(acquired);
  if (driver->StreamGetCtx == nullptr) return Failure(kCallRequiresNewerDriver, Why::kNoEntry);
  CUcontext context = nullptr;
  const CUresult code = driver->StreamGetCtx(stream, &context);
  if (code != CUDA_SUCCESS) return Failure(code, kAcquire);
  const ContextRef incarnation = ContextRef::Borrow(context);
  if (!incarnation.ok()) return Failure(incarnation.result(), kAcquire);
  return Found(incarnation, ContextSource::kStream, kDeviceNotAsked, acquired);
}

CallOutcome AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive,
                               Acquired* acquired) noexcept {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetDriver(&driver);
  if (!found.ok()) return found;
  if (pointer == 0) return Failure(CUDA_ERROR_INVALID_VALUE, Why::kUnknownMemory);
  CUcontext context = nullptr;
  CUresult code = driver->PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
  if (code == CUDA_ERROR_INVALID_VALUE) return Failure(code, Why::kUnknownMemory);
  if (code != CUDA_SUCCESS) return Failure(code, kAcquire);
  if (context != nullptr) return AcquireForContextMemory(context, acquired);
  int ordinal = 0;
  code = driver->PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  if (code != CUDA_SUCCESS) return Failure(code, "find the device of memory");
  return AcquireForDeviceMemory(*driver, ordinal, if_inactive, acquired);
}

CallOutcome AcquireFromBuffer(CUdeviceptr pointer, std::size_t bytes, IfInactive if_inactive,
                              Acquired* acquired, MemoryExtent* found) noexcept {
  CUdeviceptr end = 0;
  if (bytes == 0 || __builtin_add_overflow(pointer, bytes, &end)) {
    return Failure(CUDA_ERROR_INVALID_VALUE, Why::kNoRange);
  }
  const DriverTable* driver = nullptr;
  CallOutcome outcome = GetDriver(&driver);
  if (!outcome.ok()) return outcome;
  PointerAttributes read;
  const CUresult code = ReadAttributes(*driver, pointer, &read);
  if (code != CUDA_SUCCESS) return Failure(code, kAcquire);
  if (!read.IsKnown()) return Failure(CUDA_ERROR_INVALID_VALUE, Why::kUnknownMemory);
  outcome = CheckExtent(*driver, read, pointer, bytes, found);
  if (!outcome.ok()) return outcome;
  return read.context != nullptr
             ? AcquireForContextMemory(read.context, acquired)
             : AcquireForDeviceMemory(*driver, read.ordinal, if_inactive, acquired);
}

CallOutcome AcquireFromOwner(const ContextRef& context, CUdevice device, IfInactive if_inactive,
                             Acquired* acquired) noexcept {
  if (context.get() == nullptr) return AcquireOn(device, if_inactive, acquired);
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetDriver(&driver);
  if (!found.ok()) return found;
  const CUresult code = context.Check();
  if (code != CUDA_SUCCESS) return Failure(code, kAcquire);
  return Found(context, ContextSource::kPointer, device, acquired);
}

CallOutcome AcquireCurrent(const CurrentContext& asked, CUdevice device,
                           Acquired* acquired) noexcept {
  const DriverTable* driver = nullptr;
  Current current;
  CallOutcome outcome = GetDriver(&driver);
  if (outcome.ok()) outcome = LookAtCurrent(*driver, asked, &current);
  if (!outcome.ok()) return outcome;
  if (current.context == nullptr) {
    return With(Failure(CUDA_ERROR_INVALID_CONTEXT, kAcquireCurrent), device, current);
  }
  if (!current.IsOn(device)) {
    return With(Failure(CUDA_ERROR_INVALID_CONTEXT, Why::kOtherDevice), device, current);
  }
  if (!current.incarnation.ok()) {
    return With(Failure(current.alive, kAcquireCurrent), device, current);
  }
  return Found(current.incarnation, ContextSource::kCurrent, device, acquired);
}

CallOutcome AcquireOn(const CurrentContext& asked, CUdevice device, IfInactive if_inactive,
                      Acquired* acquired) noexcept {
  const DriverTable* driver = nullptr;
  Current current;
  PrimaryState state;
  CallOutcome outcome = GetInitializedDriver(&driver);
  if (outcome.ok()) outcome = LookAtCurrent(*driver, asked, &current);
  if (!outcome.ok()) return outcome;
  if (current.IsOn(device) && current.incarnation.ok()) {
    return Found(current.incarnation, ContextSource::kCurrent, device, acquired);
  }
  outcome = QueryPrimary(device, &state);
  if (!outcome.ok()) return outcome;
  if (!state.active && if_inactive == IfInactive::kRefuse) {
    return With(Failure(CUDA_ERROR_INVALID_CONTEXT, Why::kInactive), device, current);
  }
  ContextRef primary;
  outcome = RetainPrimary(device, &primary);
  if (!outcome.ok()) return outcome;
  return Found(primary, state.active ? ContextSource::kPrimary : ContextSource::kCreated, device,
               acquired);
}

CUresult Release(Acquired* acquired) noexcept {
  const bool holds = acquired->incarnation.ok() && acquired->HoldsPrimary();
  const CUresult code = holds ? ReleasePrimary(acquired->device) : CUDA_SUCCESS;
  if (!IsStillHeld(code)) *acquired = {};
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE
