// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/stream/stream.h"

#include <algorithm>
#include <atomic>

#include "driver/api.h"
#include "driver/context/context.h"
#include "driver/context/dev_resource.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/entry.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

using StreamTable = HandleTable<CUstream, Stream>;

StreamTable& Streams() {
  static auto& table = *new StreamTable(1);
  return table;
}

// A created stream. Only a green context's answers when the context is gone (measured on
// an H100, driver 580.159.04).
CUresult FindCreated(CUstream handle, Stream* stream) {
  switch (Streams().Find(handle, stream)) {
    case Handled::kAlive:
      return CUDA_SUCCESS;
    case Handled::kOrphan:
      if (stream->incarnation.context->is_green()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
      PanicHandle(handle,
                  "the stream's context was destroyed or reset; a real driver crashes here more "
                  "often than not (measured on an H100, driver 580.159.04)");
    case Handled::kGone:
      PanicHandle(handle,
                  "the stream was destroyed; a real driver crashes here (measured on an H100, "
                  "driver 580.159.04)");
    case Handled::kNever:
      break;
  }
  PanicHandle(handle, "this never was a stream; a real driver reads the memory it points at");
}

bool IsSpecial(CUstream handle) {
  return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

bool IsPerThread(CUstream handle) {
  return handle == CU_STREAM_PER_THREAD || (handle == nullptr && ThisCall().per_thread);
}

// Ids of the special streams: their own range; one per context, and one per
// context and thread.
constexpr std::uint64_t kSpecial = std::uint64_t{1} << 62;
std::uint64_t SpecialId(CUstream handle, const Incarnation& incarnation) {
  if (!IsPerThread(handle)) return kSpecial | incarnation.id;
  thread_local const std::uint64_t thread = NextStreamId();
  return kSpecial | (thread << 24) | incarnation.id;
}

// In a callback the driver does not even say that nothing is current: measured of
// cuStreamIsCapturing and cuStreamGetCaptureInfo on an H200, driver 580.159.04.
CUresult FindSpecial(CUstream handle, Stream* stream) {
  if (CallbackStream() != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  const CUresult code = CurrentPlace(&stream->incarnation);
  if (code != CUDA_SUCCESS) return code;
  const bool green = stream->incarnation.context->is_green();
  if (green && IsPerThread(handle)) return CUDA_ERROR_INVALID_HANDLE;
  stream->id = SpecialId(handle, stream->incarnation);
  stream->flags = green ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  stream->is_legacy = !green && !IsPerThread(handle);
  return CUDA_SUCCESS;
}

CUresult FindAny(CUstream handle, Stream* stream) {
  return IsSpecial(handle) ? FindSpecial(handle, stream) : FindCreated(handle, stream);
}

}  // namespace

std::uint64_t NextStreamId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool IsSpecialStream(std::uint64_t id) { return (id & kSpecial) != 0; }

CUresult FindStream(CUstream handle, Stream* stream) {
  const CUresult code = FindAny(handle, stream);
  return code != CUDA_SUCCESS ? code : AskCaptures(*stream);
}

CUresult FindReadyStream(CUstream handle, Stream* stream) {
  const CUresult code = FindStream(handle, stream);
  return code != CUDA_SUCCESS ? code : StickyError();
}

CUresult CreateStream(const Incarnation& incarnation, unsigned flags, int priority,
                      CUstream* handle) {
  if (StickyError() != CUDA_SUCCESS) return StickyError();
  Stream stream;
  stream.incarnation = incarnation;
  stream.flags = incarnation.context->is_green() ? unsigned{CU_STREAM_NON_BLOCKING} : flags;
  stream.priority = std::clamp(priority, kGreatestPriority, 0);
  stream.id = NextStreamId();
  return Streams().Add(stream, handle);
}

size_t CountStreams() { return Streams().CountAlive(); }

CUresult StreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Incarnation incarnation;
  const CUresult code = CurrentPlace(&incarnation);
  return code != CUDA_SUCCESS ? code : CreateStream(incarnation, flags, priority, handle);
}

CUresult StreamCreate(CUstream* handle, unsigned flags) {
  return StreamCreateWithPriority(handle, flags, 0);
}

// Returns at once; what was submitted is done all the same.
CUresult StreamDestroy(CUstream handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (IsSpecial(handle)) return code != CUDA_SUCCESS ? code : CUDA_ERROR_INVALID_HANDLE;
  if (code != CUDA_SUCCESS) return code;
  Captures::Drop(stream);
  Streams().Remove(handle);
  return CUDA_SUCCESS;
}

CUresult StreamSynchronize(CUstream handle) {
  if (CallbackStream() != nullptr && *CallbackStream() == handle) {
    PanicHandle(handle,
                "the stream's own callback waits for it; a real driver hangs here (measured on an "
                "H100, driver 580.159.04)");
  }
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Schedule::Wait(stream);
  return StickyError();
}

CUresult StreamQuery(CUstream handle) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  return Schedule::IsDone(stream) ? StickyError() : CUDA_ERROR_NOT_READY;
}

CUresult StreamGetCtx(CUstream handle, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  stream.incarnation.context->ShowAsContext();
  *context = stream.incarnation.context->handle();
  return CUDA_SUCCESS;
}

CUresult StreamGetCtxGreen(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (context == nullptr && green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Context* place = stream.incarnation.context;
  if (green != nullptr) *green = place->green_handle();
  if (context != nullptr) *context = place->owner()->handle();
  return CUDA_SUCCESS;
}

CUresult StreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code == CUDA_SUCCESS) *green = stream.incarnation.context->green_handle();
  return code;
}

CUresult StreamGetFlags(CUstream handle, unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code == CUDA_SUCCESS) *flags = stream.flags;
  return code;
}

CUresult StreamGetPriority(CUstream handle, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code == CUDA_SUCCESS) *priority = stream.priority;
  return code;
}

CUresult StreamGetId(CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code == CUDA_SUCCESS) *id = stream.id;
  return code;
}

CUresult StreamGetDevice(CUstream handle, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code == CUDA_SUCCESS) *device = stream.incarnation.context->device();
  return code;
}

// Documented: multiprocessors alone.
CUresult StreamGetDevResource(CUstream handle, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  return code != CUDA_SUCCESS ? code : GetResource(*stream.incarnation.context, resource, type);
}

}  // namespace cudasim::driver
