// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/internal/this_thread.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/core/settle_end.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/object_driver.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/objects/stream/stream_use.h"
#include "lib/share/context_hold.h"
#include "lib/share/owed.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::CallInRelaxedScope;
using internal::Capture;
using internal::CheckAlive;
using internal::ContextText;
using internal::StreamCall;
using internal::StreamStatus;
using internal::StreamText;

const char* StreamAdvice(CUresult code, const StreamRef& stream) {
  switch (code) {
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      return ", which captures: end the capture first, or do this before it begins";
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      return ", whose capture is invalidated: end the capture first";
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return ", while a blocking stream of its context captures: use a stream made with "
             "CU_STREAM_NON_BLOCKING, or wait until the capture has ended";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return ", which went with its context";
    case CUDA_ERROR_INVALID_HANDLE:
      return stream.get() == CU_STREAM_PER_THREAD ? ", which green contexts do not have" : "";
    default:
      return "";
  }
}

const char* EventAdvice(CUresult code) {
  switch (code) {
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return ", which went with its context";
    case CUDA_ERROR_CAPTURED_EVENT:
      return ", which was last recorded in a capture: until it is recorded outside of one, only "
             "streams other than 0 can wait for it";
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
      return ", which was recorded outside of the capture that the stream is in, or by other code: "
             "record it in a stream of that capture, or let the stream wait before the capture "
             "begins";
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
      return ", which was recorded in another capture than the stream is in, or in one that is "
             "over: record it in a stream of this one";
    case CUDA_ERROR_INVALID_VALUE:
      return ", recorded in a capture that is over or lost: record it again";
    default:
      return "";
  }
}

std::string EventText(CUevent event) {
  if (event == nullptr) return "an empty event: moved from, released or never made";
  return absl::StrCat("event 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(event)));
}

absl::Status EventStatus(CUresult code, const char* doing, CUevent event) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return ToStatus(code, doing, absl::StrCat(EventText(event), EventAdvice(code)));
}

// Why a handle opens no event in a context that is current and alive.
const char* ImportAdvice(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
      return ": this process exported it, and uses the event itself";
    case CUDA_ERROR_MAP_FAILED:
      return ": the exporter has destroyed it, or has ended, or the bytes are no handle";
    default:
      return "";
  }
}

constexpr bool IsForProcesses(unsigned flags) { return (flags & CU_EVENT_INTERPROCESS) != 0; }

// An event, and a stream of another context, where they have to be of one.
absl::Status OfAnotherContext(const char* doing, const Event& event, const StreamRef& stream,
                              const char* advice) {
  return ToStatus(
      CUDA_ERROR_INVALID_HANDLE, doing,
      absl::StrCat(EventText(event.get()), " of ", ContextText(event.context().get()), " and ",
                   StreamText(stream.get()), " of ", ContextText(stream.context().get()), advice));
}

// CheckAlive() of the event's context, unless the stream's is known to be alive and the same.
CUresult CheckEvent(const Event& event, const StreamRef& stream) {
  if (event.get() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return event.context() == stream.context() ? CUDA_SUCCESS : event.context().Check();
}

// What cuStreamSynchronize or cuStreamQuery says, where it invalidates no capture.
CUresult Ask(const ObjectDriver& driver, const StreamRef& stream,
             CUresult (CUDAAPI* ObjectDriver::*call)(CUstream)) {
  const StreamCall in(driver, stream);
  if (in.refusal() != CUDA_SUCCESS) return in.refusal();
  return CallInRelaxedScope([&] { return (driver.*call)(stream.get()); });
}

// Destroys what its context has not taken along.
CUresult EndIfThere(StreamRef& stream) noexcept {
  if (stream.get() == nullptr) return CUDA_SUCCESS;
  return internal::WhileAlive(stream.context(), [&] { return internal::EndStream(stream); });
}

// The same of an event and its context.
using OwnEvent = std::pair<CUevent, ContextRef>;
CUresult EndEvent(OwnEvent& event) noexcept {
  if (event.first == nullptr) return CUDA_SUCCESS;
  return internal::WhileAlive(
      event.second, [&] { return internal::ResolvedObjectDriver().EventDestroy(event.first); });
}

}  // namespace

namespace internal {

CUresult CheckAlive(const ContextRef& context) noexcept {
  return context.get() == nullptr ? CUDA_ERROR_INVALID_HANDLE : context.Check();
}

StreamCall::StreamCall(const ObjectDriver& driver, const StreamRef& stream) noexcept {
  const ContextRef& context = stream.context();
  const bool is_entered = context.get() != nullptr && MeansCurrent(stream.get());
  result_ = is_entered ? guard_.emplace(context, GuardMode::kElide, Location::Here()).result()
                       : CheckAlive(context);
  if (result_ != CUDA_SUCCESS || driver.StreamGetCaptureInfo == nullptr) return;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  result_ = driver.StreamGetCaptureInfo(stream.get(), &status, &capture_.id);
  if (result_ == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    capture_.refusal = std::exchange(result_, CUDA_SUCCESS);
  } else if (result_ == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) {
    capture_.refusal = IsActive(status) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                        : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
}

absl::Status StreamStatus(CUresult code, const char* doing, const StreamRef& stream) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const bool empty = stream.context().get() == nullptr;
  return ToStatus(code, doing,
                  empty ? "an empty stream: moved from, released or never set"
                        : absl::StrCat(StreamText(stream.get()), StreamAdvice(code, stream)));
}

}  // namespace internal

absl::StatusOr<StreamRef> StreamRef::Borrow(CUstream stream, internal::ZeroStream zero) {
  stream = internal::NamedBy(stream, zero);
  CUGUEST_ASSIGN_OR_RETURN(const Acquired acquired, AcquireFromStream(stream));
  return StreamRef(stream, acquired.context());
}

absl::StatusOr<Device> StreamRef::device() const {
  constexpr char kDoing[] = "find the device of a stream";
  if (context_.get() == nullptr) return StreamStatus(CUDA_ERROR_INVALID_HANDLE, kDoing, *this);
  const Acquired found(context_, Acquired::Source::kStream,
                       Device::Borrow(internal::kDeviceNotAsked));
  Device device = Device::Borrow(internal::kDeviceNotAsked);
  const CUresult code = found.GetDevice(&device);
  if (code != CUDA_SUCCESS) return StreamStatus(code, kDoing, *this);
  return device;
}

std::optional<CUstreamCaptureStatus> StreamRef::capture_status() const noexcept {
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* driver = internal::TryObjectDriver(&code);
  if (driver == nullptr) return std::nullopt;
  const StreamCall in(*driver, *this);
  if (in.result() != CUDA_SUCCESS) return std::nullopt;
  if (in.refusal() == CUDA_SUCCESS) return CU_STREAM_CAPTURE_STATUS_NONE;
  return in.refusal() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
             ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

absl::Status StreamRef::Synchronize() const {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  return StreamStatus(Ask(*driver, *this, &ObjectDriver::StreamSynchronize), "wait for a stream",
                      *this);
}

absl::StatusOr<bool> StreamRef::IsDone() const {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const CUresult code = Ask(*driver, *this, &ObjectDriver::StreamQuery);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) return code == CUDA_SUCCESS;
  return StreamStatus(code, "ask whether a stream is done", *this);
}

absl::StatusOr<Stream> Stream::Create(const ContextRef& context, unsigned flags, int priority) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  internal::EndOwed();
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  CUstream stream = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->StreamCreateWithPriority(&stream, flags, priority),
                               "create a stream",
                               absl::StrCat(ContextText(context.get()), ", flags 0x",
                                            absl::Hex(flags), ", priority ", priority));
  return Stream(StreamRef::Borrow(stream, context));
}

absl::StatusOr<Stream> Stream::Adopt(CUstream stream, const ContextRef& context) {
  if (context.get() != nullptr && !internal::MeansCurrent(stream)) {
    return Stream(StreamRef::Borrow(stream, context));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("adopt ", internal::StreamText(stream),
                   context.get() == nullptr ? ": no context is given"
                                            : ": it belongs to a context, and nobody owns it"));
}

Stream::~Stream() { Destroy(); }

void Stream::Destroy() noexcept { internal::EndOrOwe(ref_, "a Stream", &EndIfThere); }

absl::Status Stream::Release() {
  if (get() == nullptr) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const StreamRef ref = ref_;
  const internal::ContextHold hold(ref.context());
  CUresult code = hold.result();
  if (code == CUDA_SUCCESS) code = StreamCall(*driver, ref).refusal();
  if (code == CUDA_SUCCESS) code = internal::EndStream(ref);
  code = internal::SettleEnd(code, [this] { static_cast<void>(Leak()); });
  return StreamStatus(code, "destroy a stream", ref);
}

absl::StatusOr<Event> Event::Create(const ContextRef& context, unsigned flags) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  constexpr char kDoing[] = "create an event";
  const std::string object =
      absl::StrCat(ContextText(context.get()), ", flags 0x", absl::Hex(flags));
  constexpr unsigned kFlags =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  const bool has_others = (flags & ~kFlags) != 0;
  if (has_others || (IsForProcesses(flags) && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kDoing, ", ", object,
        has_others ? ": only CU_EVENT_DISABLE_TIMING, CU_EVENT_BLOCKING_SYNC and "
                     "CU_EVENT_INTERPROCESS can be asked for"
                   : ": an event for other processes has no time: add CU_EVENT_DISABLE_TIMING"));
  }
  CUevent event = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->EventCreate(&event, flags), kDoing, object);
  return Event(State{event, context, Recorded::kNever, IsForProcesses(flags), 0});
}

absl::StatusOr<Event> Event::Adopt(CUevent event, const ContextRef& context, unsigned flags) {
  if (event == nullptr || context.get() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "adopt ", EventText(event), context.get() == nullptr ? ": no context is given" : ""));
  }
  return Event(State{event, context, Recorded::kByOthers, IsForProcesses(flags), 0});
}

absl::StatusOr<CUipcEventHandle> Event::Export() const {
  constexpr char kDoing[] = "export an event";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto call, driver->Require(&ObjectDriver::IpcGetEventHandle));
  if (get() == nullptr) return EventStatus(CUDA_ERROR_INVALID_HANDLE, kDoing, get());
  const ContextGuard guard(context());
  if (!guard.ok()) return EventStatus(guard.result(), kDoing, get());
  CUipcEventHandle handle = {};
  const CUresult code = CallInRelaxedScope([&] { return call(&handle, get()); });
  if (code == CUDA_SUCCESS) return handle;
  const char* const why =
      code != CUDA_ERROR_INVALID_HANDLE
          ? EventAdvice(code)
          : ": it was created without CU_EVENT_INTERPROCESS, or imported from another process";
  return ToStatus(code, kDoing, absl::StrCat(EventText(get()), why));
}

absl::StatusOr<Event> Event::Import(const ContextRef& context, const CUipcEventHandle& handle) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto call, driver->Require(&ObjectDriver::IpcOpenEventHandle));
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  CUevent event = nullptr;
  const CUresult code = CallInRelaxedScope([&] { return call(&event, handle); });
  CUGUEST_RETURN_IF_CUDA_ERROR(code, "import an event of another process",
                               absl::StrCat(ContextText(context.get()), ImportAdvice(code)));
  return Event(State{event, context, Recorded::kByOthers, true, 0});
}

Event::~Event() {
  OwnEvent event = {get(), context()};
  internal::EndOrOwe(event, "an Event", &EndEvent);
}

absl::Status Event::Release() {
  const CUevent event = get();
  return EventStatus(Destroy(), "destroy an event", event);
}

CUresult Event::Destroy() noexcept {
  OwnEvent event = {get(), context()};
  return internal::SettleEnd(EndEvent(event), [this] { static_cast<void>(Leak()); });
}

absl::Status Event::Record(const StreamRef& stream) {
  CUGUEST_RETURN_IF_ERROR(ObjectDriver::Get().status());
  constexpr char kDoing[] = "record an event";
  const auto [code, failed] = TryRecord(stream);
  if (failed == Attempt::Part::kEvent) return EventStatus(code, kDoing, get());
  const bool is_of_another = failed == Attempt::Part::kBoth && code == CUDA_ERROR_INVALID_HANDLE &&
                             context() != stream.context();
  if (!is_of_another) return StreamStatus(code, kDoing, stream);
  return OfAnotherContext(kDoing, *this, stream,
                          ": an event is recorded in its own context. Make one there; streams of "
                          "any context can wait for it");
}

Event::Attempt Event::TryRecord(const StreamRef& stream) noexcept {
  const CUresult alive = CheckEvent(*this, stream);
  if (alive != CUDA_SUCCESS) return {alive, Attempt::Part::kEvent};
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* driver = internal::TryObjectDriver(&code);
  if (driver == nullptr) return {code, Attempt::Part::kEvent};
  const StreamCall in(*driver, stream);
  const bool active = in.capture().is_active() && !state_.is_for_processes;
  if (!active && in.refusal() != CUDA_SUCCESS) return {in.refusal(), Attempt::Part::kStream};
  code = driver->EventRecord(get(), stream.get());
  if (code == CUDA_SUCCESS) {
    state_.recorded = active ? Recorded::kInCapture : Recorded::kOutside;
    state_.capture = in.capture().id;
  }
  return {code, Attempt::Part::kBoth};
}

// Why the driver cannot be asked of the event: it was last recorded in a capture. Of one that other
// code may have recorded cuEventElapsedTime tells, which alone invalidates no capture
// (cudasim/test/capture_facts_test.cc).
CUresult Event::RefusalToAsk(const ObjectDriver& driver) const noexcept {
  if (state_.recorded == Recorded::kInCapture) return CUDA_ERROR_CAPTURED_EVENT;
  if (state_.recorded != Recorded::kByOthers || state_.is_for_processes) return CUDA_SUCCESS;
  float milliseconds = 0;
  const CUresult code = driver.EventElapsedTime(&milliseconds, get(), get());
  const bool is_captured = code == CUDA_ERROR_CAPTURED_EVENT || code == CUDA_ERROR_INVALID_VALUE;
  return is_captured ? code : CUDA_SUCCESS;
}

// What `call` says of the event, where it invalidates no capture.
CUresult Event::Ask(const ObjectDriver& driver, CUresult(CUDAAPI* call)(CUevent)) const noexcept {
  const CUresult alive = CheckAlive(context());
  if (alive != CUDA_SUCCESS) return alive;
  const CUresult refusal = RefusalToAsk(driver);
  if (refusal != CUDA_SUCCESS) return refusal;
  return CallInRelaxedScope([&] { return call(get()); });
}

absl::StatusOr<bool> Event::IsDone() const {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  const CUresult code = Ask(*driver, driver->EventQuery);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) return code == CUDA_SUCCESS;
  return EventStatus(code, "ask whether an event has happened", get());
}

absl::Status Event::Synchronize() const {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  return EventStatus(Ask(*driver, driver->EventSynchronize), "wait for an event", get());
}

absl::StatusOr<float> Event::ElapsedMilliseconds(const Event& start, const Event& end) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  constexpr char kDoing[] = "measure the time between two events";
  CUresult alive = CheckAlive(start.context());
  if (alive != CUDA_SUCCESS) return EventStatus(alive, kDoing, start.get());
  if (end.context() != start.context()) alive = CheckAlive(end.context());
  if (alive != CUDA_SUCCESS) return EventStatus(alive, kDoing, end.get());
  float milliseconds = 0;
  const CUresult code = driver->EventElapsedTime(&milliseconds, start.get(), end.get());
  if (code == CUDA_SUCCESS) return milliseconds;
  const char* why = "";
  if (code == CUDA_ERROR_INVALID_HANDLE) {
    why = start.context() == end.context()
              ? ": one was never recorded, or made with CU_EVENT_DISABLE_TIMING"
              : ": they are of different contexts";
  }
  return ToStatus(code, kDoing,
                  absl::StrCat(EventText(start.get()), " and ", EventText(end.get()), why));
}

// What the driver answers to a wait in a capture ends the capture, unless it is success.
CUresult Event::RefusalToWait(const ObjectDriver& driver, CUstream stream,
                              const Capture& capture) const noexcept {
  if (capture.refusal == CUDA_SUCCESS) {
    return internal::IsLegacy(stream) ? RefusalToAsk(driver) : CUDA_SUCCESS;
  }
  if (!capture.is_active() || state_.is_for_processes) return capture.refusal;
  const bool captured = state_.recorded == Recorded::kInCapture;
  const bool is_known = state_.recorded == Recorded::kNever || captured;
  if (!is_known) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  return captured && state_.capture != capture.id ? CUDA_ERROR_STREAM_CAPTURE_MERGE : CUDA_SUCCESS;
}

absl::Status StreamRef::WaitFor(const Event& event) const {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  constexpr char kDoing[] = "let a stream wait for an event";
  const CUresult alive = CheckEvent(event, *this);
  if (alive != CUDA_SUCCESS) return EventStatus(alive, kDoing, event.get());
  const StreamCall in(*driver, *this);
  if (in.result() != CUDA_SUCCESS) return StreamStatus(in.result(), kDoing, *this);
  if (event.state_.is_for_processes && event.context() != context()) {
    return OfAnotherContext(kDoing, event, *this,
                            ": only streams of its context can wait for an event of "
                            "CU_EVENT_INTERPROCESS");
  }
  CUresult code = event.RefusalToWait(*driver, get(), in.capture());
  if (code == CUDA_SUCCESS) {
    code = driver->StreamWaitEvent(get(), event.get(), 0);
  } else if (code == in.refusal()) {
    return StreamStatus(code, kDoing, *this);
  }
  return EventStatus(code, kDoing, event.get());
}

CUGUEST_END_NAMESPACE
