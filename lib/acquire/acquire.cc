// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/acquire.h"

#include <cstdint>
#include <utility>

#include "cuguest/internal/scope.h"
#include "cuguest/internal/stream_kind.h"
#include "lib/acquire/kept_primaries.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/core/failure.h"
#include "lib/guard/inner_guard.h"
#include "lib/share/ending.h"
#include "lib/share/owed.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_NAMESPACE

const char* Name(Acquired::Source source) noexcept {
  switch (source) {
    case Acquired::Source::kStream:
      return "the stream";
    case Acquired::Source::kPointer:
      return "the pointer";
    case Acquired::Source::kCurrent:
      return "the current context";
    case Acquired::Source::kPrimary:
      return "the primary context";
    case Acquired::Source::kCreated:
      return "the primary context, created";
  }
  return "nowhere";
}

CUGUEST_END_NAMESPACE
CUGUEST_BEGIN_INTERNAL_NAMESPACE

namespace {

using Reason = Error::Reason;
using Source = Acquired::Source;
using Subject = Error::Subject;

constexpr char kAcquire[] = "acquire a context";
constexpr char kAcquireCurrent[] = "acquire the current context";
constexpr char kHold[] = "hold";

// By the call that takes the context, where the driver has it: it saves entering the context. After
// the check, as ContextRef::IsAlive: that call crashes on what is destroyed.
CUresult AskDevice(const ContextRef& context, CUdevice* device) {
  const DriverTable& driver = ResolvedDriver();
  if (driver.CtxGetDeviceOf != nullptr) {
    const CUresult code = context.Check();
    return code == CUDA_SUCCESS ? driver.CtxGetDeviceOf(device, context.get()) : code;
  }
  const InnerGuard guard(context);
  const CUresult code = guard.result();
  return code == CUDA_SUCCESS ? driver.CtxGetDevice(device) : code;
}

Acquired Found(const ContextRef& context, Source source, CUdevice device = kDeviceNotAsked) {
  return Acquired(context, source, Device::Borrow(device));
}

// Out of line, as there are many of them.
[[gnu::cold, gnu::noinline]] Acquired Refused(const Error& error) { return Acquired(error); }
[[gnu::cold, gnu::noinline]] Acquired Refused(Reason reason, CUresult code, Subject subject,
                                              const void* handle) {
  return Refused(OfHandle(Failure(reason, code, kAcquire), subject, handle));
}

const void* AsPointer(CUdeviceptr pointer) {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(pointer));
}
[[gnu::cold]] Acquired RefusedPointer(CUresult code, CUdeviceptr pointer) {
  return Refused(Reason::kDriver, code, Subject::kPointer, AsPointer(pointer));
}
[[gnu::cold]] Acquired UnknownMemory(CUdeviceptr pointer) {
  return Refused(Reason::kUnknownMemory, CUDA_ERROR_INVALID_VALUE, Subject::kPointer,
                 AsPointer(pointer));
}
[[gnu::cold]] Error OfRange(const Error& error, CUdeviceptr pointer, std::size_t bytes) {
  Error of = OfHandle(error, Subject::kRange, AsPointer(pointer));
  of.bytes = bytes;
  return of;
}

// What the calling thread has current: nothing, or a context, dead or alive, and its
// device.
struct Current {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUresult alive = CUDA_SUCCESS;
  ContextRef incarnation;  // empty if it is dead

  bool IsOn(CUdevice wanted) const { return context != nullptr && device == wanted; }
};

// Which incarnation of the current context is alive there.
CUresult Identify(const CurrentContext& asked, ContextRef* incarnation) {
  if (asked.code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return asked.code;
  *incarnation = asked.code == CUDA_SUCCESS ? Incarnation{asked.context, asked.id}.Ref()
                                            : ContextRef::Borrow(asked.context);
  return incarnation->result();
}

// `asked`, or what is found now if there was no driver to ask then, or none that was initialised.
CurrentContext Resolved(const CurrentContext& asked) {
  const bool was_early = asked.code == kNotResolved || asked.code == CUDA_ERROR_NOT_INITIALIZED;
  return was_early ? CurrentContext() : asked;
}

void See(const ContextRef& incarnation, long long device) {
  t_this_thread.seen = {incarnation.id(), device};
}

// Of the context that was seen: kDeviceNotAsked if it was seen where its device was not asked for.
CUdevice SeenDevice() {
  const long long device = t_this_thread.seen.device;
  return device == SeenContext::kNoDeviceYet ? kDeviceNotAsked : static_cast<CUdevice>(device);
}

Error LookAtCurrent(const DriverTable& driver, const CurrentContext& before, Current* current) {
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
  if (code != CUDA_SUCCESS) return Failure(code, "look at the current context");
  if (current->incarnation.ok()) See(current->incarnation, current->device);
  return {};
}

[[gnu::cold]] Error With(Error error, CUdevice device, const Current& current) {
  error = OfDevice(error, Subject::kDevice, device);
  error.current = current.context;
  error.current_device = current.device;
  return error;
}

// What is current, on whatever device.
Acquired AcquireTheCurrent(const CurrentContext& asked) {
  if (asked.IsSeen()) return Found(asked.Seen().Ref(), Source::kCurrent, SeenDevice());
  CUresult code = asked.context != nullptr ? CUDA_SUCCESS : asked.code;
  if (code == CUDA_SUCCESS && asked.context == nullptr) code = CUDA_ERROR_INVALID_CONTEXT;
  ContextRef current;
  if (code == CUDA_SUCCESS) code = Identify(asked, &current);
  if (code != CUDA_SUCCESS) return Refused(Failure(code, kAcquireCurrent));
  See(current, SeenContext::kNoDeviceYet);
  return Found(current, Source::kCurrent);
}

// Not by cuStreamGetCtx, which answers the same, but of stream 0 invalidates the capture of a
// blocking stream of the context (cudasim/test/capture_facts_test.cc).
Acquired AcquireFromSpecialStream(const CurrentContext& asked, CUstream stream) {
  Acquired acquired = AcquireTheCurrent(asked);
  if (acquired.ok()) return acquired;
  return Refused(Reason::kDriver, acquired.error().code, Subject::kStream, stream);
}

// Which incarnation of its context is alive.
CUresult Identify(const DriverTable& driver, Incarnation* found) {
  if (Rarely(found->context == nullptr)) return CUDA_ERROR_INVALID_CONTEXT;
  return ReadId(driver, found->context, &found->id);
}

Acquired AcquireForContextMemory(const DriverTable& driver, CUcontext context,
                                 CUdeviceptr pointer) {
  Incarnation found = {context, 0};
  const CUresult code = Identify(driver, &found);
  return Mostly(code == CUDA_SUCCESS) ? Found(found.Ref(), Source::kPointer)
                                      : RefusedPointer(code, pointer);
}

// One more reference to `context`, if it is the primary context of `device`; where it is not, or is
// over, nothing is created, unless its last holder releases it exactly now.
Error RetainAgain(Device device, const ContextRef& context, PrimaryContext* primary) {
  const auto of = [&](CUresult code) { return OfContext(Failure(code, kHold), context.get()); };
  const CUresult alive = context.Check();
  if (alive != CUDA_SUCCESS) return of(alive);
  if (!CanBePrimary(context.get(), device.get())) return of(CUDA_ERROR_NOT_SUPPORTED);
  *primary = PrimaryContext::RetainIfActive(device);
  if (!primary->ok()) {
    // There is none, so that it is not `context`.
    const bool is_none = primary->error().reason == Reason::kNobodyHolds;
    return is_none ? of(CUDA_ERROR_NOT_SUPPORTED) : primary->error();
  }
  if (primary->context() == context) return {};
  const bool was_reset = primary->get() == context.get();
  return of(was_reset ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_NOT_SUPPORTED);
}

// Memory that belongs to a device instead of a context.
Acquired AcquireForDeviceMemory(const DriverTable& driver, int ordinal, IfInactive if_inactive,
                                CUdeviceptr pointer, CurrentContext* asked) {
  const DriverTable* initialized = nullptr;
  const Error found = GetInitializedDriver(&initialized);
  if (!found.ok()) return Refused(found);
  CUdevice device = 0;
  const CUresult code = driver.DeviceGet(&device, ordinal);
  if (code != CUDA_SUCCESS) {
    return Refused(OfDevice(Failure(Reason::kNoDevice, code, kAcquire), Subject::kDevice, ordinal));
  }
  *asked = Resolved(CurrentContext());
  Acquired acquired = AcquireOn(*asked, Device::Borrow(device), if_inactive);
  if (acquired.ok()) return acquired;
  Error error = OfHandle(acquired.error(), Subject::kDeviceOfMemory, AsPointer(pointer));
  error.device = device;
  return Refused(error);
}

// Whether `bytes` from `pointer` on, of which `first` was read, lie in one piece. Mappings of one
// device that lie side by side are one to the driver (cudasim/test/virtual_memory_facts_test.cc).
Error CheckExtent(const DriverTable& driver, const PointerAttributes& first, CUdeviceptr pointer,
                  std::size_t bytes) {
  MemoryExtent found = first.Extent();
  const auto outside = [&] {
    Error error =
        OfRange(Failure(Reason::kOutside, CUDA_ERROR_INVALID_VALUE, kAcquire), pointer, bytes);
    error.found_at = found.base;
    error.found_bytes = found.size;
    return error;
  };
  PointerAttributes last = first;
  while (found.size != 0 && found.base + found.size - pointer < bytes) {
    const CUdeviceptr end = found.base + found.size;
    if (!last.IsVirtual()) return outside();
    const CUresult code = ReadAttributes(driver, end, &last);
    if (code != CUDA_SUCCESS) {
      return OfHandle(Failure(code, kAcquire), Subject::kPointer, AsPointer(end));
    }
    const MemoryExtent next = last.Extent();
    const bool goes_on = last.IsVirtual() && last.ordinal == first.ordinal && next.base == end;
    if (!goes_on || next.size == 0) return outside();
    found.size += next.size;
  }
  return {};
}

// The primary context of the first device that has an active one; nothing if none has.
Acquired AcquireFirstActive(const DriverTable& driver) {
  int count = 0;
  CUresult code = driver.DeviceGetCount(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    code = driver.DeviceGet(&device, ordinal);
    if (code != CUDA_SUCCESS) break;
    PrimaryContext primary = PrimaryContext::RetainIfActive(Device::Borrow(device));
    const bool is_inactive = primary.error().reason == Reason::kNobodyHolds;
    if (!is_inactive) return Acquired(std::move(primary), Source::kPrimary);
  }
  if (code == CUDA_SUCCESS) code = CUDA_ERROR_INVALID_CONTEXT;
  return Refused(Failure(code, "acquire any context"));
}

}  // namespace

Acquired AcquireFromOwner(const ContextRef& context, Device device, bool is_empty,
                          IfInactive if_inactive) noexcept {
  if (is_empty) {
    return Refused(
        Failure(Reason::kEmpty, CUDA_ERROR_INVALID_VALUE, "acquire the context of a buffer"));
  }
  if (context.get() == nullptr) return cuguest::AcquireOn(device, if_inactive);
  const DriverTable* driver = nullptr;
  const Error found = GetDriver(&driver);
  if (!found.ok()) return Refused(found);
  const CUresult code = context.Check();
  if (code == CUDA_SUCCESS) return Acquired(context, Source::kPointer, device);
  return Refused(Reason::kDriver, code, Subject::kOwner, context.get());
}

Acquired AcquireCurrent(const CurrentContext& asked, Device device) noexcept {
  const DriverTable* driver = nullptr;
  Current current;
  Error error = GetDriver(&driver);
  if (error.ok()) error = LookAtCurrent(*driver, asked, &current);
  if (!error.ok()) return Refused(error);
  if (current.IsOn(device.get()) && current.incarnation.ok()) {
    return Acquired(current.incarnation, Source::kCurrent, device);
  }
  if (current.context == nullptr) {
    error = Failure(CUDA_ERROR_INVALID_CONTEXT, kAcquireCurrent);
  } else if (!current.IsOn(device.get())) {
    error = Failure(Reason::kOtherDevice, CUDA_ERROR_INVALID_CONTEXT, kAcquireCurrent);
  } else {
    return Refused(OfContext(Failure(current.alive, kAcquireCurrent), current.context));
  }
  return Refused(With(error, device.get(), current));
}

Acquired AcquireOn(const CurrentContext& asked, Device device, IfInactive if_inactive) noexcept {
  const DriverTable* driver = nullptr;
  Current current;
  Error error = GetInitializedDriver(&driver);
  if (error.ok()) error = LookAtCurrent(*driver, asked, &current);
  if (!error.ok()) return Refused(error);
  if (current.IsOn(device.get()) && current.incarnation.ok()) {
    return Acquired(current.incarnation, Source::kCurrent, device);
  }
  const PrimaryContext::State state = PrimaryContext::Query(device);
  if (!state.ok()) return Refused(state.error());
  if (!state.active && if_inactive == IfInactive::kRefuse) {
    return Refused(With(Failure(Reason::kInactive, CUDA_ERROR_INVALID_CONTEXT, kAcquire),
                        device.get(), current));
  }
  PrimaryContext primary = PrimaryContext::Retain(device);
  if (primary.ok() && !state.active && if_inactive == IfInactive::kCreateAndKeep) {
    error = KeepPrimary(&g_kept_primaries, device);
    if (!error.ok()) return Refused(error);
  }
  return Acquired(std::move(primary), state.active ? Source::kPrimary : Source::kCreated);
}

Acquired AcquireFromStream(CUstream stream, CurrentContext* asked) noexcept {
  CUresult code = CUDA_SUCCESS;
  const DriverTable* const driver = TryDriver(&code);
  if (Rarely(driver == nullptr)) return Refused(NoDriver(code));
  if (MeansCurrent(stream)) {
    *asked = Resolved(CurrentContext());
    return AcquireFromSpecialStream(*asked, stream);
  }
  if (Rarely(driver->StreamGetCtx == nullptr)) {
    return Refused(Reason::kTooOld, kCallRequiresNewerDriver, Subject::kStream, stream);
  }
  Incarnation found = {nullptr, 0};
  code = driver->StreamGetCtx(stream, &found.context);
  if (Mostly(code == CUDA_SUCCESS)) code = Identify(*driver, &found);
  if (Mostly(code == CUDA_SUCCESS)) return Found(found.Ref(), Source::kStream);
  return Refused(Reason::kDriver, code, Subject::kStream, stream);
}

Acquired AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive,
                            CurrentContext* asked) noexcept {
  CUresult code = CUDA_SUCCESS;
  const DriverTable* const driver = TryDriver(&code);
  if (Rarely(driver == nullptr)) return Refused(NoDriver(code));
  if (Rarely(pointer == 0)) return UnknownMemory(pointer);
  CUcontext context = nullptr;
  code = driver->PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
  if (Rarely(code == CUDA_ERROR_INVALID_VALUE)) return UnknownMemory(pointer);
  if (Mostly(code == CUDA_SUCCESS && context != nullptr)) {
    return AcquireForContextMemory(*driver, context, pointer);
  }
  int ordinal = 0;
  if (code == CUDA_SUCCESS) {
    code = driver->PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  }
  if (code == CUDA_SUCCESS) {
    return AcquireForDeviceMemory(*driver, ordinal, if_inactive, pointer, asked);
  }
  return RefusedPointer(code, pointer);
}

CUGUEST_END_INTERNAL_NAMESPACE
CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Failure;
using Reason = Error::Reason;
using Subject = Error::Subject;

// Source: CUDA Programming Guide, "Interoperability between Runtime and Driver APIs".
CUdeviceptr AddressOf(const void* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace

Acquired AcquireFromStream(CUstream stream) noexcept {
  internal::CurrentContext asked = internal::CurrentContext::NotAsked();
  return internal::AcquireFromStream(stream, &asked);
}

Acquired AcquireFromStream(CUstream stream, Device device, IfInactive if_inactive) noexcept {
  return internal::MeansCurrent(stream) ? AcquireOn(device, if_inactive)
                                        : AcquireFromStream(stream);
}

Acquired AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive) noexcept {
  internal::CurrentContext asked = internal::CurrentContext::NotAsked();
  return internal::AcquireFromPointer(pointer, if_inactive, &asked);
}

Acquired AcquireAny() noexcept {
  const DriverTable* driver = nullptr;
  const Error found = internal::GetInitializedDriver(&driver);
  if (!found.ok()) return internal::Refused(found);
  const internal::CurrentContext asked = internal::Resolved(internal::CurrentContext());
  const bool is_none = asked.code == CUDA_SUCCESS && asked.context == nullptr;
  return is_none ? internal::AcquireFirstActive(*driver) : internal::AcquireTheCurrent(asked);
}

Acquired AcquireFromPointer(const void* pointer, IfInactive if_inactive) noexcept {
  return AcquireFromPointer(AddressOf(pointer), if_inactive);
}

Acquired AcquireFromBuffer(CUdeviceptr pointer, std::size_t bytes,
                           IfInactive if_inactive) noexcept {
  if (bytes == 0 || bytes > ~pointer) {
    return internal::Refused(internal::OfRange(
        Failure(Reason::kNoRange, CUDA_ERROR_INVALID_VALUE, internal::kAcquire), pointer, bytes));
  }
  const DriverTable* driver = nullptr;
  Error error = internal::GetDriver(&driver);
  if (!error.ok()) return internal::Refused(error);
  internal::PointerAttributes read;
  const CUresult code = internal::ReadAttributes(*driver, pointer, &read);
  if (code != CUDA_SUCCESS) {
    return internal::RefusedPointer(code, pointer);
  }
  if (!read.IsKnown()) return internal::UnknownMemory(pointer);
  error = internal::CheckExtent(*driver, read, pointer, bytes);
  if (!error.ok()) return internal::Refused(error);
  if (read.context != nullptr) {
    return internal::AcquireForContextMemory(*driver, read.context, pointer);
  }
  internal::CurrentContext asked = internal::CurrentContext::NotAsked();
  return internal::AcquireForDeviceMemory(*driver, read.ordinal, if_inactive, pointer, &asked);
}

Acquired AcquireFromBuffer(const void* pointer, std::size_t bytes,
                           IfInactive if_inactive) noexcept {
  return AcquireFromBuffer(AddressOf(pointer), bytes, if_inactive);
}

Acquired::Acquired(PrimaryContext primary, Source source) noexcept
    : incarnation_(primary.context()),
      source_(source),
      device_(primary.device().get()),
      holds_primary_(primary.ok()) {
  if (!ok()) SetError(primary.error());
  static_cast<void>(primary.Leak());
}

Acquired::Acquired(const Acquired& other) noexcept
    : incarnation_(other.incarnation_), source_(other.source_), device_(other.device_) {
  if (!ok()) SetError(other.error_);
  if (!other.holds_primary_) return;
  PrimaryContext primary;
  const Error error = internal::RetainAgain(Device::Borrow(device_), incarnation_, &primary);
  if (error.ok()) {
    holds_primary_ = true;
    static_cast<void>(primary.Leak());
  } else {
    SetEmpty();
    SetError(error);
  }
}

Error Acquired::Hold() noexcept {
  if (!ok()) return error();
  if (holds_primary_) return {};
  Device device = Device::Borrow(0);
  const CUresult code = GetDevice(&device);
  if (code != CUDA_SUCCESS) {
    return internal::OfContext(Failure(code, internal::kHold), incarnation_.get());
  }
  PrimaryContext primary;
  const Error error = internal::RetainAgain(device, incarnation_, &primary);
  if (!error.ok()) return error;
  device_ = device.get();
  holds_primary_ = true;
  static_cast<void>(primary.Leak());
  return {};
}

Error Acquired::error() const noexcept {
  if (ok()) return {};
  if (!error_.ok()) return error_;
  return Failure(Reason::kEmpty, CUDA_ERROR_INVALID_CONTEXT, "hold an acquired context");
}

CUresult Acquired::GetDevice(Device* device) const noexcept {
  if (!ok()) return error().code;
  CUdevice asked = device_;
  const CUresult code =
      asked == internal::kDeviceNotAsked ? internal::AskDevice(incarnation_, &asked) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) *device = Device::Borrow(asked);
  return code;
}

void Acquired::Take(Acquired* other) noexcept {
  incarnation_ = other->incarnation_;
  source_ = other->source_;
  device_ = other->device_;
  holds_primary_ = other->holds_primary_;
  if (!ok()) SetError(other->error_);
  other->SetEmpty();
}

void Acquired::End() noexcept { internal::ReleasePrimaryOrOwe(device_, "an Acquired"); }

Error Acquired::Release() noexcept {
  const CUresult code = holds_primary_ ? internal::ReleasePrimary(device_) : CUDA_SUCCESS;
  if (!internal::IsStillHeld(code)) SetEmpty();
  return internal::OfDevice(Failure(code, "release"), Error::Subject::kPrimary, device_);
}

CUGUEST_END_NAMESPACE
