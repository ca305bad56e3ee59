// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Events. Of those of two processes what ipc_facts_test asks was measured on an H100, driver
// 580.159.04; that a process cannot open its own handle follows cuIpcOpenMemHandle.

#include "driver/stream/event.h"

#include <chrono>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/primary.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"
#include "driver/stream/shared_event.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

struct Event {
  Incarnation incarnation;
  unsigned flags = 0;
  bool recorded = false;
  std::shared_ptr<SharedEvent> shared;  // what counts instead of `record`, if it is shared
  TaskPointer record;                   // null if it was done at once
  Task::Clock::time_point recorded_at;
  CapturedPoint captured;  // where it was last recorded, if in a capture

  // What is to be waited for; null: nothing.
  TaskPointer Pending() const {
    if (shared == nullptr) return HasHappened() ? nullptr : record;
    return Schedule::Await(
        incarnation, [shared = shared, last = shared->last()] { return shared->ProgressOf(last); });
  }
  bool HasHappened() const {
    if (shared != nullptr) return shared->ProgressOf(shared->last()) == Progress::kDone;
    return record == nullptr || record->IsDone();
  }
  Task::Clock::time_point when() const { return record != nullptr ? record->when() : recorded_at; }
};

using EventTable = HandleTable<CUevent, Event>;

EventTable& Events() {
  static auto& table = *new EventTable(2);
  return table;
}

// For its destruction.
CUresult FindAnyEvent(CUevent handle, Event* event) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (Events().Find(handle, event)) {
    case Handled::kAlive:
      return CUDA_SUCCESS;
    case Handled::kOrphan:
      PanicHandle(
          handle,
          "the event's context was destroyed or reset; a real driver reads freed memory, "
          "and crashes here once it was used again (measured on an H100 and an H200, driver "
          "580.159.04)");
    case Handled::kGone:
      PanicHandle(handle,
                  "the event was destroyed; a real driver crashes here (measured on an H100, "
                  "driver 580.159.04)");
    case Handled::kNever:
      break;
  }
  PanicHandle(handle, "this never was an event; a real driver reads the memory it points at");
}

void PanicIfAbandoned(CUevent handle, const SharedEvent& event) {
  if (event.is_destroyed()) {
    PanicHandle(handle,
                "the process that created the event destroyed it; what happens here on a real "
                "driver is undefined");
  }
  if (event.ProgressOf(event.last()) == Progress::kAbandoned) {
    PanicHandle(handle,
                "the process that recorded the event ended before the record was done; it may "
                "never be on a real driver");
  }
}

CUresult FindEvent(CUevent handle, Event* event) {
  const CUresult code = FindAnyEvent(handle, event);
  if (code == CUDA_SUCCESS && event->shared != nullptr) PanicIfAbandoned(handle, *event->shared);
  return code;
}

bool AreEventFlags(unsigned flags) {
  constexpr unsigned kFlags =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
  return (flags & ~kFlags) == 0 && (!shared || (flags & CU_EVENT_DISABLE_TIMING) != 0);
}

bool HasTime(const Event& event) {
  return event.recorded && (event.flags & CU_EVENT_DISABLE_TIMING) == 0;
}

CUresult FindTimed(CUevent handle, Event* event) {
  CUresult code = FindEvent(handle, event);
  if (code == CUDA_SUCCESS) code = Captures::CheckEvent(event->captured, /*lose=*/false);
  if (code != CUDA_SUCCESS) return code;
  return HasTime(*event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The last record of the event, if it is not done.
TaskPointer RecordOf(CUevent handle) {
  Event event;
  return Events().Find(handle, &event) == Handled::kAlive ? event.Pending() : nullptr;
}

void PanicIfShared(CUevent handle, const Event& event, const Incarnation& place) {
  if ((event.flags & CU_EVENT_INTERPROCESS) == 0 || event.incarnation.id == OwnerOf(place).id)
    return;
  PanicHandle(handle,
              "an event of CU_EVENT_INTERPROCESS is waited for in another context; a real driver "
              "crashes here (measured on an H100, driver 580.159.04)");
}

// For what happens outside of the capture: a node that waits at each launch.
CUresult WaitForExternal(const Stream& stream, CUevent handle) {
  if (Captures::StatusOf(stream) == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_ILLEGAL_STATE;
  Work work;
  const CUresult code = MakeWaitWork(handle, stream.incarnation, &work);
  return code == CUDA_SUCCESS ? Submit(nullptr, stream, work) : code;
}

// A job that does nothing, at its time.
Job Marker(const Incarnation& incarnation) {
  Job job;
  job.incarnation = incarnation;
  return job;
}

// In a capture only an event that was never recorded may come from outside.
CUresult WaitForUncaptured(const Stream& stream, const Event& event) {
  const bool captures = Captures::StatusOf(stream) != CU_STREAM_CAPTURE_STATUS_NONE;
  const TaskPointer pending = captures ? nullptr : event.Pending();
  if (pending != nullptr) Schedule::Submit(stream, Marker(stream.incarnation), {pending});
  if (!captures || !event.recorded) return CUDA_SUCCESS;
  Captures::Lose(stream);
  return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

// An event is recorded where its owner is.
bool CanRecord(const Event& event, const Incarnation& place) {
  return event.incarnation.id == OwnerOf(place).id;
}

// The event is from now on what is done when the task is; null: it is done.
void SetRecord(CUevent handle, Event event, const TaskPointer& task) {
  event.captured = {};
  event.recorded = true;
  event.record = task;
  event.recorded_at = Task::Clock::now();
  Events().Set(handle, event);
}

// `submit` submits a job where the event is recorded, and returns null if it is done.
template <typename Submit>
void Record(CUevent handle, const Event& event, const Incarnation& place, const Submit& submit) {
  Job job = Marker(place);
  if (event.shared != nullptr) {
    job.run = [shared = event.shared, record = event.shared->Begin()] { shared->End(record); };
  }
  SetRecord(handle, event, submit(job));
}

Work EventWork(CUgraphNodeType type, const Incarnation& incarnation) {
  Work work;
  work.type = type;
  work.incarnation = incarnation;
  work.is_valid = [] { return true; };
  work.run = [](CUstream) {};
  return work;
}

// For the calls that ask whether, or wait until, an event has happened.
CUresult FindAsked(CUevent handle, Event* event) {
  CUresult code = FindEvent(handle, event);
  if (code == CUDA_SUCCESS) code = Captures::CheckEvent(event->captured, /*lose=*/true);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  return code != CUDA_SUCCESS ? code : StickyError();
}

// For the calls that take all the streams of a context at once.
CUresult FindInContext(Context* context, CUevent handle, Incarnation* incarnation, Event* event) {
  *incarnation = IncarnationOf(context);
  if (!incarnation->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return FindEvent(handle, event);
}

CUresult RecordIn(Context* context, CUevent handle) {
  Incarnation incarnation;
  Event event;
  CUresult code = FindInContext(context, handle, &incarnation, &event);
  if (code != CUDA_SUCCESS) return code;
  if (event.incarnation.id != OwnerOf(incarnation).id) return CUDA_ERROR_INVALID_HANDLE;
  code = AskCaptures(incarnation);
  if (code == CUDA_SUCCESS) code = StickyError();
  if (code != CUDA_SUCCESS) return code;
  Record(handle, event, incarnation,
         [&](const Job& job) { return Schedule::SubmitBehind(incarnation, job); });
  return CUDA_SUCCESS;
}

// May cross contexts, like cuStreamWaitEvent.
CUresult WaitIn(Context* context, CUevent handle) {
  Incarnation incarnation;
  Event event;
  CUresult code = FindInContext(context, handle, &incarnation, &event);
  if (code == CUDA_SUCCESS) code = AskCaptures(incarnation);
  if (code == CUDA_SUCCESS) code = StickyError();
  if (code != CUDA_SUCCESS) return code;
  PanicIfShared(handle, event, incarnation);
  code = Captures::CheckEvent(event.captured, /*lose=*/true);
  const TaskPointer pending = code == CUDA_SUCCESS ? event.Pending() : nullptr;
  if (pending != nullptr) Schedule::SubmitAhead(incarnation, Marker(incarnation), pending);
  return code;
}

CUresult FindContext(CUcontext handle, Context** context) {
  return handle != nullptr ? Context::FindNamed(handle, context) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

size_t CountEvents() { return Events().CountAlive(); }

CUresult CheckUntimed(CUevent handle) {
  Event event;
  const CUresult code = FindEvent(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  const bool timed = (event.flags & CU_EVENT_DISABLE_TIMING) == 0;
  return timed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult MakeRecordWork(CUevent handle, const Incarnation& incarnation, Work* work) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event event;
  const CUresult code = FindEvent(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  // Not modelled: a graph's record of an event of two processes.
  if (event.shared != nullptr) return NotModelled();
  *work = EventWork(CU_GRAPH_NODE_TYPE_EVENT_RECORD, incarnation);
  work->describe = [=](CUgraphNodeParams* params) { params->eventRecord = {handle}; };
  work->submitted = [=](const TaskPointer& task) {
    Event now;
    if (Events().Find(handle, &now) == Handled::kAlive) SetRecord(handle, now, task);
  };
  return CUDA_SUCCESS;
}

CUresult MakeWaitWork(CUevent handle, const Incarnation& incarnation, Work* work) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event event;
  const CUresult code = FindEvent(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  *work = EventWork(CU_GRAPH_NODE_TYPE_WAIT_EVENT, incarnation);
  work->describe = [=](CUgraphNodeParams* params) { params->eventWait = {handle}; };
  work->awaits = [=] { return RecordOf(handle); };
  return CUDA_SUCCESS;
}

bool AreOfOneContext(CUevent one, CUevent other) {
  Event first;
  Event second;
  const bool are_alive = Events().Find(one, &first) == Handled::kAlive &&
                         Events().Find(other, &second) == Handled::kAlive;
  return !are_alive || first.incarnation.id == second.incarnation.id;
}

CUresult EventCreate(CUevent* handle, unsigned flags) {
  Event event;
  const CUresult code = CurrentReady(&event.incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || !AreEventFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  event.flags = flags;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    event.shared = SharedEvent::Create();
    if (event.shared == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return Events().Add(event, handle);
}

CUresult EventDestroy(CUevent handle) {
  Event event;
  const CUresult code = FindAnyEvent(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  if (event.shared != nullptr && !event.shared->is_imported()) event.shared->Destroy();
  Events().Remove(handle);
  return CUDA_SUCCESS;
}

CUresult IpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  if (handle == nullptr || event_handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event event;
  const CUresult code = FindEvent(event_handle, &event);
  if (code != CUDA_SUCCESS) return code;
  Incarnation current;
  if (CurrentReady(&current) == CUDA_SUCCESS && current.id != event.incarnation.id) {
    PanicHandle(event_handle, "another context than its own is current; a real driver crashes");
  }
  if ((event.flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_HANDLE;
  *handle = event.shared->handle();
  return CUDA_SUCCESS;
}

CUresult IpcOpenEventHandle(CUevent* event_handle, CUipcEventHandle handle) {
  Event event;
  CUresult code = CurrentReady(&event.incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (event_handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  code = SharedEvent::Open(handle, &event.shared);
  if (code != CUDA_SUCCESS) return code;
  event.flags = CU_EVENT_DISABLE_TIMING;
  return Events().Add(event, event_handle);
}

namespace {

CUresult FindToRecord(CUevent handle, CUstream stream_handle, Event* event, Stream* stream) {
  CUresult code = FindReadyStream(stream_handle, stream);
  if (code == CUDA_SUCCESS) code = FindEvent(handle, event);
  if (code != CUDA_SUCCESS) return code;
  return CanRecord(*event, stream->incarnation) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// For what looks at the event outside of the capture: a node that records it at each launch.
CUresult RecordExternal(CUevent handle, CUstream stream_handle) {
  Event event;
  Stream stream;
  CUresult code = FindToRecord(handle, stream_handle, &event, &stream);
  if (code != CUDA_SUCCESS) return code;
  if (Captures::StatusOf(stream) == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_ILLEGAL_STATE;
  if (event.shared != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Work work;
  code = MakeRecordWork(handle, stream.incarnation, &work);
  return code == CUDA_SUCCESS ? Submit(nullptr, stream, work) : code;
}

}  // namespace

CUresult EventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
  switch (flags) {
    case CU_EVENT_RECORD_DEFAULT:
      return EventRecord(handle, stream);
    case CU_EVENT_RECORD_EXTERNAL:
      return RecordExternal(handle, stream);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult EventRecord(CUevent handle, CUstream stream_handle) {
  Event event;
  Stream stream;
  const CUresult code = FindToRecord(handle, stream_handle, &event, &stream);
  if (code != CUDA_SUCCESS) return code;
  const CapturedPoint point = Captures::PointOf(stream);
  if (point.capture_id != 0) {
    if (event.shared != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    event.captured = point;
    Events().Set(handle, event);
    return CUDA_SUCCESS;
  }
  Record(handle, event, stream.incarnation, [&](const Job& job) {
    const bool is_done = Schedule::IsIdle() && !job.run;
    return is_done ? nullptr : Schedule::Submit(stream, job);
  });
  return CUDA_SUCCESS;
}

CUresult CtxRecordEvent(CUcontext handle, CUevent event) {
  Context* context = nullptr;
  const CUresult code = FindContext(handle, &context);
  return code != CUDA_SUCCESS ? code : RecordIn(context, event);
}

CUresult CtxWaitEvent(CUcontext handle, CUevent event) {
  Context* context = nullptr;
  const CUresult code = FindContext(handle, &context);
  return code != CUDA_SUCCESS ? code : WaitIn(context, event);
}

CUresult GreenCtxRecordEvent(CUgreenCtx green, CUevent handle) {
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  return code != CUDA_SUCCESS ? code : RecordIn(context, handle);
}

CUresult GreenCtxWaitEvent(CUgreenCtx green, CUevent handle) {
  Context* context = nullptr;
  const CUresult code = FindGreenContext(green, &context);
  return code != CUDA_SUCCESS ? code : WaitIn(context, handle);
}

CUresult EventQuery(CUevent handle) {
  Event event;
  const CUresult code = FindAsked(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  return event.HasHappened() ? StickyError() : CUDA_ERROR_NOT_READY;
}

CUresult EventSynchronize(CUevent handle) {
  Event event;
  const CUresult code = FindAsked(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  Schedule::Wait(event.Pending());
  return StickyError();
}

CUresult EventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  Event from;
  Event to;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult code = FindTimed(start, &from);
  if (code == CUDA_SUCCESS) code = FindTimed(end, &to);
  if (code != CUDA_SUCCESS) return code;
  if (from.incarnation.id != to.incarnation.id) return CUDA_ERROR_INVALID_HANDLE;
  if (!from.HasHappened() || !to.HasHappened()) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(to.when() - from.when()).count();
  return CUDA_SUCCESS;
}

// May cross contexts and devices.
CUresult StreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (handle == nullptr) {
    Captures::Lose(stream);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Event event;
  code = FindEvent(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  PanicIfShared(handle, event, stream.incarnation);
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    const bool is_lost =
        Captures::CheckEvent(event.captured, /*lose=*/false) == CUDA_ERROR_INVALID_VALUE;
    if (!is_lost) return WaitForExternal(stream, handle);
    Captures::Lose(stream);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (event.shared != nullptr && Captures::StatusOf(stream) != CU_STREAM_CAPTURE_STATUS_NONE) {
    Captures::Lose(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const bool captured = event.captured.capture_id != 0;
  return captured ? Captures::Join(stream, event.captured) : WaitForUncaptured(stream, event);
}

}  // namespace cudasim::driver
