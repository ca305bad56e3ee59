// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/event.h"

#include <chrono>

#include "lib/sim/api.h"
#include "lib/sim/device.h"
#include "lib/sim/handle_table.h"
#include "lib/sim/panic.h"
#include "lib/sim/stack.h"
#include "lib/sim/stream.h"

namespace cuguest_sim {
namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  Life life;
  unsigned flags = 0;
  bool recorded = false;
  Clock::time_point when;
};

using EventTable = HandleTable<CUevent, Event>;

EventTable& Events() {
  static auto& table = *new EventTable(2);
  return table;
}

// The codes for an event whose context is gone were measured on an H100, driver
// 580.159.04.
CUresult FindEvent(CUevent handle, Event* event) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (Events().Find(handle, event)) {
    case Handled::kAlive:
      return CUDA_SUCCESS;
    case Handled::kOrphan:
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    case Handled::kGone:
      PanicHandle(handle,
                  "the event was destroyed; a real driver crashes here (measured on an H100, "
                  "driver 580.159.04)");
    case Handled::kNever:
      break;
  }
  PanicHandle(handle, "this never was an event; a real driver reads the memory it points at");
}

// The same, for calls that crash once the event's primary context is alive again.
CUresult FindEventToChange(CUevent handle, Event* event) {
  const CUresult code = FindEvent(handle, event);
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED && IsRevived(event->life)) {
    PanicHandle(handle,
                "the event died when its primary context was reset or released; a real driver "
                "crashes here (measured on an H100, driver 580.159.04)");
  }
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

// In a revived primary context the answer is another one than for other calls.
CUresult FindTimed(CUevent handle, Event* event) {
  const CUresult code = FindEvent(handle, event);
  if (code == CUDA_SUCCESS) return HasTime(*event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  const bool orphan = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return orphan && IsRevived(event->life) ? CUDA_ERROR_INVALID_CONTEXT : code;
}

}  // namespace

size_t CountEvents() { return Events().CountAlive(); }

CUresult EventCreate(CUevent* handle, unsigned flags) {
  Event event;
  const CUresult code = CurrentReady(&event.life);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || !AreEventFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  event.flags = flags;
  return Events().Add(event, handle);
}

CUresult EventDestroy(CUevent handle) {
  Event event;
  const CUresult code = FindEventToChange(handle, &event);
  if (code == CUDA_SUCCESS) Events().Remove(handle);
  return code;
}

CUresult EventRecord(CUevent handle, CUstream stream_handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Event event;
  code = FindEventToChange(handle, &event);
  if (code != CUDA_SUCCESS) return code;
  if (event.life.id != stream.life.id) return CUDA_ERROR_INVALID_HANDLE;
  event.recorded = true;
  event.when = Clock::now();
  Events().Set(handle, event);
  return CUDA_SUCCESS;
}

CUresult EventQuery(CUevent handle) {
  Event event;
  const CUresult code = FindEvent(handle, &event);
  return code != CUDA_SUCCESS ? code : StickyError();
}

CUresult EventSynchronize(CUevent handle) {
  Event event;
  const CUresult code = FindEvent(handle, &event);
  return code != CUDA_SUCCESS ? code : StickyError();
}

CUresult EventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  Event from;
  Event to;
  CUresult code = FindTimed(start, &from);
  if (code == CUDA_SUCCESS) code = FindTimed(end, &to);
  if (code != CUDA_SUCCESS) return code;
  if (milliseconds == nullptr || from.life.id != to.life.id) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = std::chrono::duration<float, std::milli>(to.when - from.when).count();
  return CUDA_SUCCESS;
}

// May cross contexts and devices.
CUresult StreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Event event;
  return FindEvent(handle, &event);
}

}  // namespace cuguest_sim
