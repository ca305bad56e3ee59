// SPDX-License-Identifier: Apache-2.0

#include "cuguest/copy.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/context/relaxed_scope.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

std::string EndText(const CopyEnd& end) {
  return absl::StrCat(end.range == nullptr ? "host " : "device ", PointerText(end.address));
}

absl::Status CheckEnds(const CopyEnd& to, const CopyEnd& from) {
  if (to.count != from.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", from.count, " elements from ", EndText(from), " to ", to.count,
                     " at ", EndText(to), ": take a Subview of the longer end"));
  }
  for (const CopyEnd* end : {&to, &from}) {
    if (end->count == 0 || end->address != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", end->count, " elements: the host's end is null"));
  }
  return absl::OkStatus();
}

bool HasOwner(const MemoryRange* range) {
  return range != nullptr && range->context.get() != nullptr;
}

// `call`, or in a stream `async_call`.
template <typename DriverCall, typename AsyncCall, typename... Values>
CUresult Call(DriverCall call, AsyncCall async_call, const StreamRef* stream, Values... values) {
  return stream == nullptr ? call(values...) : async_call(values..., stream->get());
}

// What has to be done, with the words for it when it fails.
//
// Each form of a copy takes a device address only for what the driver knows, so that memory
// that was freed is refused, where cuMemcpy would read it as the host's.
struct Task {
  CopyEnd to;
  CopyEnd from;            // of a fill: nothing
  const FillValue* value;  // of a fill

  std::size_t bytes() const { return to.count * to.size; }
  std::string Text() const {
    return value != nullptr
               ? absl::StrCat("fill ", bytes(), " bytes at ", EndText(to))
               : absl::StrCat("copy ", bytes(), " bytes from ", EndText(from), " to ", EndText(to));
  }
  const MemoryRange& home() const {
    return to.range == nullptr || (HasOwner(from.range) && !HasOwner(to.range)) ? *from.range
                                                                                : *to.range;
  }
  CUresult Do(const Driver& driver, const StreamRef* stream) const {
    return value != nullptr ? Fill(driver, stream) : Copy(driver, stream);
  }

 private:
  static void* ToHost(const CopyEnd& end) { return reinterpret_cast<void*>(end.address); }

  CUresult Copy(const Driver& driver, const StreamRef* stream) const {
    if (to.range == nullptr) {
      return Call(driver.MemcpyDtoH, driver.MemcpyDtoHAsync, stream, ToHost(to), from.address,
                  bytes());
    }
    if (from.range == nullptr) {
      return Call(driver.MemcpyHtoD, driver.MemcpyHtoDAsync, stream, to.address, ToHost(from),
                  bytes());
    }
    return Call(driver.MemcpyDtoD, driver.MemcpyDtoDAsync, stream, to.address, from.address,
                bytes());
  }

  CUresult Fill(const Driver& driver, const StreamRef* stream) const {
    const std::size_t count = bytes() / value->size;
    switch (value->size) {
      case 1:
        return Call(driver.MemsetD8, driver.MemsetD8Async, stream, to.address,
                    static_cast<unsigned char>(value->bits), count);
      case 2:
        return Call(driver.MemsetD16, driver.MemsetD16Async, stream, to.address,
                    static_cast<unsigned short>(value->bits), count);
      default:
        return Call(driver.MemsetD32, driver.MemsetD32Async, stream, to.address, value->bits,
                    count);
    }
  }
};

// That what was viewed is still there, as far as its context tells.
absl::Status CheckLives(const Task& task) {
  for (const MemoryRange* range : {task.to.range, task.from.range}) {
    if (!HasOwner(range)) continue;
    CUGUEST_RETURN_IF_CUDA_ERROR(range->context.Check(), task.Text(),
                                 absl::StrCat("memory of ", ContextText(range->context.get())));
  }
  return absl::OkStatus();
}

// Of the current context's stream 0. A driver that cannot say whether something captures
// there is not tried.
absl::Status RefuseInCapture(const Task& task) {
  if (CaptureStateOf(CU_STREAM_LEGACY) == CaptureState::kNone) return absl::OkStatus();
  return ToStatus(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, task.Text(),
                  "stream 0, and a blocking stream of its context captures: use the Async form on "
                  "another stream");
}

// Without a stream: on stream 0, until it is done.
absl::Status Run(const Task& task, const StreamRef* stream) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  if (stream != nullptr && stream->context().get() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(task.Text(), ": the StreamRef is empty"));
  }
  CUGUEST_RETURN_IF_ERROR(CheckLives(task));
  AcquireResult acquired;
  const ContextRef* place = stream != nullptr ? &stream->context() : &task.home().context;
  if (place->get() == nullptr) {
    acquired = AcquireOn(task.home().device);
    if (!acquired.ok()) return acquired.status();
    place = &acquired->incarnation();
  }
  const ContextGuard guard(*place);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), task.Text(), guard.advice());
  if (stream == nullptr || IsLegacy(stream->get())) {
    CUGUEST_RETURN_IF_ERROR(RefuseInCapture(task));
  }
  if (stream != nullptr) {
    CUGUEST_RETURN_IF_CUDA_ERROR(task.Do(*driver, stream), task.Text());
    return absl::OkStatus();
  }
  const RelaxedScope relaxed;  // for the captures of other contexts and threads
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = task.Do(*driver, nullptr);
  if (code == CUDA_SUCCESS) code = driver->StreamSynchronize(CU_STREAM_LEGACY);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, task.Text());
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyElements(const CopyEnd& to, const CopyEnd& from, const StreamRef* stream) {
  CUGUEST_RETURN_IF_ERROR(CheckEnds(to, from));
  if (to.count == 0) return absl::OkStatus();
  return Run({to, from, nullptr}, stream);
}

absl::Status FillElements(const CopyEnd& to, const FillValue& value, const StreamRef* stream) {
  return to.count == 0 ? absl::OkStatus() : Run({to, {}, &value}, stream);
}

CUGUEST_END_INTERNAL_NAMESPACE
