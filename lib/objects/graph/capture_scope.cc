// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/capture_scope.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/objects/memory/captured_memory.h"
#include "lib/objects/object_driver.h"
#include "lib/objects/stream/stream_call.h"
#include "lib/objects/stream/stream_use.h"
#include "lib/share/owed.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::MeansCurrent;
using internal::StreamCall;
using internal::StreamStatus;
using internal::StreamText;

absl::Status EmptyScope(const char* doing) {
  return absl::FailedPreconditionError(absl::StrCat(
      doing, ": the CaptureScope is empty: it was moved from, never begun, or has ended"));
}

absl::Status StreamHasEnded(const char* doing, const StreamRef& stream) {
  return internal::RefusalStatus(
      CUDA_ERROR_ILLEGAL_STATE, doing,
      StreamText(stream.get()) + ", which was destroyed, and the capture with it");
}

absl::Status EndedByOthers(const char* doing, const StreamRef& stream) {
  return internal::RefusalStatus(
      CUDA_ERROR_ILLEGAL_STATE, doing,
      StreamText(stream.get()) +
          ", whose capture somebody else has ended: what was captured is theirs");
}

// Why the driver gave no graph.
absl::Status EndStatus(CUresult code, const char* doing, const StreamRef& stream) {
  const auto because = [&](const char* why) {
    return ToStatus(code, doing, StreamText(stream.get()) + why);
  };
  switch (code) {
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      return because(
          ": a call that the capture forbids, on this thread or another, has invalidated it; make "
          "what the work needs (memory, handles, modules) before the capture, or in a "
          "CaptureModeGuard");
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      return because(
          ": another stream waited for an event of the capture, and was not waited for: record an "
          "event behind its work, and let this stream wait for that before the end");
    default:
      return StreamStatus(code, doing, stream);
  }
}

// Whether cuStreamEndCapture has ended the capture with that.
bool IsOver(CUresult code) {
  return code == CUDA_SUCCESS || code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
         code == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
         code == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// Which of the streams that a call can be made on has the capture `id`, valid or not. The driver
// does not tell the id of one that was invalidated.
bool IsOurs(const internal::Capture& capture, cuuint64_t id) {
  return capture.is_active() ? capture.id == id
                             : capture.refusal == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

}  // namespace

absl::StatusOr<CaptureScope> CaptureScope::Begin(const StreamRef& stream,
                                                 CUstreamCaptureMode mode) {
  constexpr char kDoing[] = "begin a capture";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto begin, driver->Require(&ObjectDriver::StreamBeginCapture));
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return absl::InvalidArgumentError(absl::StrCat(kDoing, ": mode ", static_cast<int>(mode),
                                                   " is none of GLOBAL, THREAD_LOCAL and RELAXED"));
  }
  const bool is_empty = stream.context().get() == nullptr;
  if (!is_empty && MeansCurrent(stream.get())) {
    return absl::InvalidArgumentError(absl::StrCat(
        kDoing, " in ", StreamText(stream.get()),
        ": capture in a stream that was created, as by Stream::Create(); the graph can be launched "
        "in any"));
  }
  internal::StreamUse use;
  const StreamCall in(*driver, stream);
  CUresult code = in.refusal();
  if (code == CUDA_SUCCESS && !use.Begin(stream)) code = CUDA_ERROR_OUT_OF_MEMORY;
  if (code == CUDA_SUCCESS) code = begin(stream.get(), mode);
  if (code != CUDA_SUCCESS) return StreamStatus(code, kDoing, stream);
  State state;
  state.stream = stream;
  state.any_thread = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  code = driver->StreamGetCaptureInfo(stream.get(), &status, &state.id);
  if (code == CUDA_SUCCESS) return CaptureScope(state, std::move(use));
  CUgraph nothing = nullptr;
  if (driver->StreamEndCapture(stream.get(), &nothing) == CUDA_SUCCESS) {
    static_cast<void>(driver->GraphDestroy(nothing));
  }
  return StreamStatus(code, kDoing, stream);
}

CaptureScope::~CaptureScope() {
  internal::EndOrOwe(*this, "a CaptureScope", &CaptureScope::TryEnd, &CaptureScope::Empty);
}

// Success also where there is no such capture any more.
CUresult CaptureScope::TryEnd() noexcept {
  if (stream().get() == nullptr) return CUDA_SUCCESS;
  const internal::StreamHold hold(use_);
  if (!hold.ok()) return CUDA_SUCCESS;  // its stream is gone
  CUresult code = stream().context().Check();
  if (code != CUDA_SUCCESS) return code;
  const ObjectDriver& driver = internal::ResolvedObjectDriver();
  const StreamCall in(driver, stream());
  if (in.result() == CUDA_SUCCESS && !IsOurs(in.capture(), state_.id)) return CUDA_SUCCESS;
  CUgraph graph = nullptr;
  code = driver.StreamEndCapture(stream().get(), &graph);
  if (code == CUDA_SUCCESS) code = driver.GraphDestroy(graph);
  return IsOver(code) ? CUDA_SUCCESS : code;
}

// Returns the use of its stream, which ends after each hold.
internal::StreamUse CaptureScope::Empty() noexcept {
  state_ = State();
  return std::move(use_);
}

absl::Status CaptureScope::CheckActive(const internal::StreamHold& hold, const char* doing) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (stream().get() == nullptr) return EmptyScope(doing);
  if (!hold.ok()) return StreamHasEnded(doing, stream());
  const StreamCall in(*driver, stream());
  if (in.result() != CUDA_SUCCESS) return StreamStatus(in.result(), doing, stream());
  if (!IsOurs(in.capture(), state_.id)) return EndedByOthers(doing, stream());
  return in.capture().is_active() ? absl::OkStatus() : StreamStatus(in.refusal(), doing, stream());
}

absl::StatusOr<internal::MemoryRange> CaptureScope::AllocateRange(const internal::ElementType& type,
                                                                  std::size_t count) {
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t bytes, internal::ByteCount("allocate", type, count));
  const std::string doing = absl::StrCat("allocate ", bytes, " bytes in a capture");
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemAllocAsync).status());
  const internal::StreamHold hold(use_);
  CUGUEST_RETURN_IF_ERROR(CheckActive(hold, doing.c_str()));
  if (bytes == 0) return internal::MemoryRange();
  memory_.reserve(memory_.size() + 1);  // before there is something to lose
  CUGUEST_ASSIGN_OR_RETURN(const internal::MemoryRange range,
                           internal::AllocateInCapture(*driver, stream(), bytes, doing));
  return memory_.emplace_back(range);
}

absl::Status CaptureScope::FreeAt(CUdeviceptr pointer) {
  if (pointer == 0) return absl::OkStatus();
  const std::string doing = absl::StrCat("free ", internal::PointerText(pointer), " in a capture");
  const internal::StreamHold hold(use_);
  CUGUEST_RETURN_IF_ERROR(CheckActive(hold, doing.c_str()));
  const auto found =
      std::find_if(memory_.begin(), memory_.end(),
                   [=](const internal::MemoryRange& range) { return range.pointer == pointer; });
  if (found == memory_.end()) {
    return absl::InvalidArgumentError(doing +
                                      ": this scope has not allocated it, or it was freed already");
  }
  CUGUEST_RETURN_IF_CUDA_ERROR(
      internal::ResolvedObjectDriver().MemFreeAsync(pointer, stream().get()), doing,
      "End() frees it");
  memory_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<Graph> CaptureScope::End() {
  constexpr char kDoing[] = "end a capture";
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (stream().get() == nullptr) return EmptyScope(kDoing);
  if (!state_.any_thread && !state_.thread.IsThis()) {
    return internal::RefusalStatus(
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, kDoing,
        StreamText(stream().get()) +
            ", which another thread captures, and goes on to: end the capture there, or "
            "begin it in mode RELAXED");
  }
  const StreamRef captured = stream();
  internal::StreamUse ended;
  const internal::StreamHold hold(use_);
  if (!hold.ok()) {
    ended = Empty();
    return StreamHasEnded(kDoing, captured);
  }
  const StreamCall in(*driver, captured);
  const bool is_ours = in.result() == CUDA_SUCCESS && IsOurs(in.capture(), state_.id);
  const bool is_gone = in.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (is_gone || (in.result() == CUDA_SUCCESS && !is_ours)) ended = Empty();
  if (in.result() != CUDA_SUCCESS) return StreamStatus(in.result(), kDoing, captured);
  if (!is_ours) return EndedByOthers(kDoing, captured);
  Graph owner(nullptr, captured.context());  // before there is something to own
  while (in.capture().is_active() && !memory_.empty()) {
    CUGUEST_RETURN_IF_CUDA_ERROR(driver->MemFreeAsync(memory_.back().pointer, captured.get()),
                                 kDoing, "free what it has allocated; the capture goes on");
    memory_.pop_back();
  }
  CUgraph graph = nullptr;
  const CUresult code = driver->StreamEndCapture(captured.get(), &graph);
  if (IsOver(code)) ended = Empty();
  if (code != CUDA_SUCCESS) return EndStatus(code, kDoing, captured);
  owner.graph_ = graph;
  return owner;
}

CUGUEST_END_NAMESPACE
