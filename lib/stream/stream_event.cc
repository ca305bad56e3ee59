// SPDX-License-Identifier: Apache-2.0

#include "cuguest/stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/context/special_stream.h"
#include "lib/core/driver_access.h"
#include "lib/core/status_macros.h"
#include "lib/stream/stream_call.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Capture;
using internal::CheckLife;
using internal::ContextText;
using internal::StreamCall;
using internal::StreamStatus;
using internal::StreamText;

const char* Advice(CUresult code) {
  switch (code) {
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return ", which went with its context";
    case CUDA_ERROR_CAPTURED_EVENT:
      return ", which was last recorded in a capture: until it is recorded outside of one, only "
             "streams other than 0 can wait for it";
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
      return ", which was recorded outside of the capture that the stream is in: record it in a "
             "stream of that capture, or let the stream wait before the capture begins";
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
  return ToStatus(code, doing, absl::StrCat(EventText(event), Advice(code)));
}

// CheckLife() of the event's context, unless the stream's is known to be alive and the same.
CUresult CheckEvent(const Event& event, const StreamRef& stream) {
  if (event.get() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return event.context() == stream.context() ? CUDA_SUCCESS : event.context().Check();
}

absl::Status RecordStatus(CUresult code, const Event& event, const StreamRef& stream) {
  constexpr char kDoing[] = "record an event";
  if (code != CUDA_ERROR_INVALID_HANDLE || event.context() == stream.context()) {
    return StreamStatus(code, kDoing, stream);
  }
  return ToStatus(
      code, kDoing,
      absl::StrCat(EventText(event.get()), " of ", ContextText(event.context().get()), " in ",
                   StreamText(stream.get()), " of ", ContextText(stream.context().get()),
                   ": an event is recorded in its own context. Make one there; streams of "
                   "any context can wait for it"));
}

absl::Status ElapsedStatus(CUresult code, const char* doing, const Event& start, const Event& end) {
  const char* why = "";
  if (code == CUDA_ERROR_INVALID_HANDLE) {
    why = start.context() == end.context()
              ? ": one was never recorded, or made with CU_EVENT_DISABLE_TIMING"
              : ": they are of different contexts";
  }
  return ToStatus(code, doing,
                  absl::StrCat(EventText(start.get()), " and ", EventText(end.get()), why));
}

}  // namespace

absl::StatusOr<Event> Event::Create(const ContextRef& context, unsigned flags) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  CUevent event = nullptr;
  const CUresult code = driver->EventCreate(&event, flags);
  if (code == CUDA_SUCCESS) return Event(State{event, context, Recorded::kNever, 0});
  return ToStatus(code, "create an event",
                  absl::StrCat(ContextText(context.get()), ", flags 0x", absl::Hex(flags)));
}

Event& Event::operator=(Event&& other) noexcept {
  if (this == &other) return *this;
  static_cast<void>(Destroy());
  state_ = std::exchange(other.state_, State());
  return *this;
}

Event::~Event() { static_cast<void>(Destroy()); }

absl::Status Event::Release() {
  const CUevent event = get();
  return EventStatus(Destroy(), "destroy an event", event);
}

// Without a text, for the destructor: it must not need memory.
CUresult Event::Destroy() noexcept {
  if (get() == nullptr) return CUDA_SUCCESS;
  // It asks the driver, which is there, then.
  CUresult code = context().Check();
  if (code == CUDA_SUCCESS) {
    code = internal::g_driver.load(std::memory_order_acquire)->EventDestroy(get());
  }
  // The process is ending, and the driver has taken everything back.
  if (code == CUDA_ERROR_DEINITIALIZED) code = CUDA_SUCCESS;
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_CONTEXT_IS_DESTROYED) static_cast<void>(Leak());
  return code;
}

absl::Status Event::Record(const StreamRef& stream) {
  CUGUEST_RETURN_IF_ERROR(Driver::Get().status());
  constexpr char kDoing[] = "record an event";
  const Attempt attempt = TryRecord(stream);
  switch (attempt.failed) {
    case Attempt::Part::kEvent:
      return EventStatus(attempt.code, kDoing, get());
    case Attempt::Part::kStream:
      return StreamStatus(attempt.code, kDoing, stream);
    case Attempt::Part::kBoth:
      return RecordStatus(attempt.code, *this, stream);
  }
  return absl::OkStatus();
}

Event::Attempt Event::TryRecord(const StreamRef& stream) noexcept {
  const CUresult life = CheckEvent(*this, stream);
  if (life != CUDA_SUCCESS) return {life, Attempt::Part::kEvent};
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = internal::TryDriver(&code);
  if (driver == nullptr) return {code, Attempt::Part::kEvent};
  const StreamCall in(*driver, stream);
  if (in.result() != CUDA_SUCCESS) return {in.result(), Attempt::Part::kStream};
  const bool active = in.capture().kind == Capture::Kind::kActive;
  if (!active && in.refusal() != CUDA_SUCCESS) return {in.refusal(), Attempt::Part::kStream};
  code = driver->EventRecord(get(), stream.get());
  if (code == CUDA_SUCCESS) {
    state_.recorded = active ? Recorded::kInCapture : Recorded::kOutside;
    state_.capture = in.capture().id;
  }
  return {code, Attempt::Part::kBoth};
}

// What `call` says of the event, where it invalidates no capture.
CUresult Event::Ask(CUresult(CUDAAPI* call)(CUevent)) const noexcept {
  const CUresult life = CheckLife(context());
  if (life != CUDA_SUCCESS) return life;
  if (state_.recorded == Recorded::kInCapture) return CUDA_ERROR_CAPTURED_EVENT;
  return internal::WithoutHarm([&] { return call(get()); });
}

absl::StatusOr<bool> Event::IsDone() const {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const CUresult code = Ask(driver->EventQuery);
  if (code == CUDA_SUCCESS) return true;
  if (code == CUDA_ERROR_NOT_READY) return false;
  return EventStatus(code, "ask whether an event has happened", get());
}

absl::Status Event::Synchronize() const {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  return EventStatus(Ask(driver->EventSynchronize), "wait for an event", get());
}

absl::StatusOr<float> Event::ElapsedMilliseconds(const Event& start, const Event& end) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  constexpr char kDoing[] = "measure the time between two events";
  CUresult life = CheckLife(start.context());
  if (life != CUDA_SUCCESS) return EventStatus(life, kDoing, start.get());
  if (end.context() != start.context()) life = CheckLife(end.context());
  if (life != CUDA_SUCCESS) return EventStatus(life, kDoing, end.get());
  float milliseconds = 0;
  const CUresult code = driver->EventElapsedTime(&milliseconds, start.get(), end.get());
  if (code == CUDA_SUCCESS) return milliseconds;
  return ElapsedStatus(code, kDoing, start, end);
}

// What the driver answers to a wait in a capture ends the capture, unless it is success.
CUresult Event::RefusalToWait(CUstream stream, const Capture& capture) const noexcept {
  const bool captured = state_.recorded == Recorded::kInCapture;
  switch (capture.kind) {
    case Capture::Kind::kNone:
      return captured && internal::IsLegacy(stream) ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
    case Capture::Kind::kActive:
      if (state_.recorded == Recorded::kOutside) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
      return captured && state_.capture != capture.id ? CUDA_ERROR_STREAM_CAPTURE_MERGE
                                                      : CUDA_SUCCESS;
    case Capture::Kind::kLost:
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case Capture::Kind::kBlocksStream:
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_ERROR_UNKNOWN;
}

absl::Status StreamRef::WaitFor(const Event& event) const {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  constexpr char kDoing[] = "let a stream wait for an event";
  const CUresult life = CheckEvent(event, *this);
  if (life != CUDA_SUCCESS) return EventStatus(life, kDoing, event.get());
  const StreamCall in(*driver, *this);
  if (in.result() != CUDA_SUCCESS) return StreamStatus(in.result(), kDoing, *this);
  CUresult code = event.RefusalToWait(get(), in.capture());
  if (code == CUDA_SUCCESS) {
    code = driver->StreamWaitEvent(get(), event.get(), 0);
  } else if (code == in.refusal()) {
    return StreamStatus(code, kDoing, *this);
  }
  return EventStatus(code, kDoing, event.get());
}

CUGUEST_END_NAMESPACE
