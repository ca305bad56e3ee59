// SPDX-License-Identifier: Apache-2.0

#include "cuguest/stream.h"

#include "absl/strings/str_cat.h"
#include "cuguest/acquire.h"
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

using internal::StreamCall;
using internal::StreamStatus;

// What cuStreamSynchronize or cuStreamQuery says, where it invalidates no capture.
CUresult Ask(const Driver& driver, const StreamRef& stream,
             CUresult (CUDAAPI* Driver::*call)(CUstream)) {
  const StreamCall in(driver, stream);
  if (in.result() != CUDA_SUCCESS) return in.result();
  if (in.refusal() != CUDA_SUCCESS) return in.refusal();
  return internal::WithoutHarm([&] { return (driver.*call)(stream.get()); });
}

CUresult DestroyUnlessCapturing(const Driver& driver, const StreamRef& stream) {
  const StreamCall in(driver, stream);
  CUresult code = in.result();
  if (code == CUDA_SUCCESS) code = in.refusal();
  if (code == CUDA_SUCCESS) code = driver.StreamDestroy(stream.get());
  // The process is ending, and the driver has taken everything back.
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

}  // namespace

absl::StatusOr<StreamRef> StreamRef::Borrow(CUstream stream, internal::ZeroStream zero) {
  stream = internal::NamedBy(stream, zero);
  CUGUEST_ASSIGN_OR_RETURN(const AcquiredContext context, AcquireFromStream(stream));
  return StreamRef(stream, context.incarnation());
}

absl::StatusOr<Device> StreamRef::device() const {
  constexpr char kDoing[] = "find the device of a stream";
  if (context_.get() == nullptr) return StreamStatus(CUDA_ERROR_INVALID_HANDLE, kDoing, *this);
  const ContextGuard guard(context_);
  if (!guard.ok()) return StreamStatus(guard.result(), kDoing, *this);
  return Device::OfCurrentContext();
}

CaptureState StreamRef::capture_state() const noexcept {
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = internal::TryDriver(&code);
  if (driver == nullptr) return CaptureState::kUnknown;
  const StreamCall in(*driver, *this);
  if (in.result() != CUDA_SUCCESS) return CaptureState::kUnknown;
  switch (in.capture().kind) {
    case internal::Capture::Kind::kNone:
      return CaptureState::kNone;
    case internal::Capture::Kind::kLost:
      return CaptureState::kInvalidated;
    case internal::Capture::Kind::kActive:
    case internal::Capture::Kind::kBlocksStream:
      return CaptureState::kActive;
  }
  return CaptureState::kUnknown;
}

absl::Status StreamRef::Synchronize() const {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  return StreamStatus(Ask(*driver, *this, &Driver::StreamSynchronize), "wait for a stream", *this);
}

absl::StatusOr<bool> StreamRef::IsDone() const {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const CUresult code = Ask(*driver, *this, &Driver::StreamQuery);
  if (code == CUDA_SUCCESS) return true;
  if (code == CUDA_ERROR_NOT_READY) return false;
  return StreamStatus(code, "ask whether a stream is done", *this);
}

absl::StatusOr<Stream> Stream::Create(const ContextRef& context, unsigned flags, int priority) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const ContextGuard guard(context);
  if (!guard.ok()) return ToStatus(guard);
  CUstream stream = nullptr;
  const CUresult code = driver->StreamCreateWithPriority(&stream, flags, priority);
  if (code == CUDA_SUCCESS) return Stream(StreamRef::Borrow(stream, context));
  return ToStatus(code, "create a stream",
                  absl::StrCat(internal::ContextText(context.get()), ", flags 0x", absl::Hex(flags),
                               ", priority ", priority));
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

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  Destroy();
  ref_ = std::exchange(other.ref_, StreamRef());
  return *this;
}

Stream::~Stream() { Destroy(); }

// Destroys what its context has not taken along.
void Stream::Destroy() noexcept {
  if (get() == nullptr || context().Check() != CUDA_SUCCESS) return;
  // Not null: the check has used it.
  static_cast<void>(internal::ResolvedDriver().StreamDestroy(get()));
}

absl::Status Stream::Release() {
  if (get() == nullptr) return absl::OkStatus();
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const StreamRef ref = ref_;
  const CUresult code = DestroyUnlessCapturing(*driver, ref);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_CONTEXT_IS_DESTROYED) static_cast<void>(Leak());
  return StreamStatus(code, "destroy a stream", ref);
}

CUGUEST_END_NAMESPACE
