// SPDX-License-Identifier: Apache-2.0

#include "lib/stream/stream_call.h"

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/context/special_stream.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

const char* Advice(CUresult code, const StreamRef& stream) {
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

}  // namespace

CUresult CheckLife(const ContextRef& context) noexcept {
  return context.get() == nullptr ? CUDA_ERROR_INVALID_HANDLE : context.Check();
}

StreamCall::StreamCall(const Driver& driver, const StreamRef& stream) noexcept
    : result_(Enter(stream)) {
  if (result_ == CUDA_SUCCESS) result_ = Look(driver, stream.get());
}

CUresult StreamCall::Enter(const StreamRef& stream) noexcept {
  if (stream.context().get() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!MeansCurrent(stream.get())) return stream.context().Check();
  return guard_.emplace(stream.context()).result();
}

CUresult StreamCall::Look(const Driver& driver, CUstream stream) noexcept {
  if (driver.StreamGetCaptureInfo == nullptr) return CUDA_SUCCESS;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code = driver.StreamGetCaptureInfo(stream, &status, &capture_.id);
  if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    capture_.kind = Capture::Kind::kBlocksStream;
    return CUDA_SUCCESS;
  }
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) capture_.kind = Capture::Kind::kActive;
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) capture_.kind = Capture::Kind::kLost;
  return code;
}

CUresult StreamCall::refusal() const {
  switch (capture_.kind) {
    case Capture::Kind::kNone:
      return CUDA_SUCCESS;
    case Capture::Kind::kActive:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    case Capture::Kind::kLost:
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case Capture::Kind::kBlocksStream:
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_ERROR_UNKNOWN;
}

absl::Status StreamStatus(CUresult code, const char* doing, const StreamRef& stream) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const bool empty = stream.context().get() == nullptr;
  return ToStatus(code, doing,
                  empty ? "an empty stream: moved from, released or never set"
                        : absl::StrCat(StreamText(stream.get()), Advice(code, stream)));
}

}  // namespace internal
CUGUEST_END_NAMESPACE
