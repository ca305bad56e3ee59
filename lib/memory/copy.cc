// SPDX-License-Identifier: Apache-2.0

#include "cuguest/copy.h"

#include <array>
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

CUGUEST_BEGIN_NAMESPACE
namespace internal {
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

// What has to be done, with the words for it when it fails.
//
// Each form of a copy takes a device address only for what the driver knows, so that memory
// that was freed is refused, where cuMemcpy would read it as the host's.
struct CopyTask {
  const CopyEnd& to;
  const CopyEnd& from;
  std::size_t bytes;

  std::string Text() const {
    return absl::StrCat("copy ", bytes, " bytes from ", EndText(from), " to ", EndText(to));
  }
  std::array<const MemoryRange*, 2> ranges() const { return {to.range, from.range}; }
  const MemoryRange& home() const {
    return to.range == nullptr || (HasOwner(from.range) && !HasOwner(to.range)) ? *from.range
                                                                                : *to.range;
  }

  CUresult Do(const Driver& driver) const {
    if (to.range == nullptr) return driver.MemcpyDtoH(ToHost(to), from.address, bytes);
    if (from.range == nullptr) return driver.MemcpyHtoD(to.address, ToHost(from), bytes);
    return driver.MemcpyDtoD(to.address, from.address, bytes);
  }
  CUresult Do(const Driver& driver, CUstream stream) const {
    if (to.range == nullptr) return driver.MemcpyDtoHAsync(ToHost(to), from.address, bytes, stream);
    if (from.range == nullptr) {
      return driver.MemcpyHtoDAsync(to.address, ToHost(from), bytes, stream);
    }
    return driver.MemcpyDtoDAsync(to.address, from.address, bytes, stream);
  }

 private:
  static void* ToHost(const CopyEnd& end) { return reinterpret_cast<void*>(end.address); }
};

struct FillTask {
  const MemoryRange& to;
  const FillValue& value;

  std::string Text() const {
    return absl::StrCat("fill ", to.bytes, " bytes at device ", PointerText(to.pointer));
  }
  std::array<const MemoryRange*, 1> ranges() const { return {&to}; }
  const MemoryRange& home() const { return to; }

  CUresult Do(const Driver& driver) const {
    switch (value.size) {
      case 1:
        return driver.MemsetD8(to.pointer, static_cast<unsigned char>(value.bits), to.bytes);
      case 2:
        return driver.MemsetD16(to.pointer, static_cast<unsigned short>(value.bits), to.bytes / 2);
      default:
        return driver.MemsetD32(to.pointer, value.bits, to.bytes / 4);
    }
  }
  CUresult Do(const Driver& driver, CUstream stream) const {
    switch (value.size) {
      case 1:
        return driver.MemsetD8Async(to.pointer, static_cast<unsigned char>(value.bits), to.bytes,
                                    stream);
      case 2:
        return driver.MemsetD16Async(to.pointer, static_cast<unsigned short>(value.bits),
                                     to.bytes / 2, stream);
      default:
        return driver.MemsetD32Async(to.pointer, value.bits, to.bytes / 4, stream);
    }
  }
};

// That what was viewed is still there, as far as its context tells.
template <typename Task>
absl::Status CheckLives(const Task& task) {
  for (const MemoryRange* range : task.ranges()) {
    if (!HasOwner(range)) continue;
    const CUresult code = range->context.Check();
    if (code == CUDA_SUCCESS) continue;
    return ToStatus(code, task.Text(),
                    absl::StrCat("memory of ", ContextText(range->context.get())));
  }
  return absl::OkStatus();
}

absl::StatusOr<AcquiredContext> PlaceIn(const MemoryRange& home) {
  if (!HasOwner(&home)) return AcquireOn(home.device);
  return AcquiredContext(home.context, AcquiredContext::Source::kPointer);
}

// Of the current context's stream 0. A driver that cannot say whether something captures
// there is not tried.
template <typename Task>
absl::Status RefuseInCapture(const Task& task) {
  if (CaptureStateOf(CU_STREAM_LEGACY) == CaptureState::kNone) return absl::OkStatus();
  return ToStatus(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, task.Text(),
                  "stream 0, and a blocking stream of its context captures: use the Async form on "
                  "another stream");
}

// On stream 0 of the context that is current, until it is done.
template <typename Task>
absl::Status DoHere(const Driver& driver, const Task& task) {
  CUGUEST_RETURN_IF_ERROR(RefuseInCapture(task));
  RelaxedScope relaxed;  // for the captures of other contexts and threads
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = task.Do(driver);
  if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(CU_STREAM_LEGACY);
  return code == CUDA_SUCCESS ? absl::OkStatus() : ToStatus(code, task.Text());
}

template <typename Task>
absl::Status Run(const Task& task) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  CUGUEST_RETURN_IF_ERROR(CheckLives(task));
  CUGUEST_ASSIGN_OR_RETURN(const AcquiredContext place, PlaceIn(task.home()));
  const ContextGuard guard(place.incarnation());
  if (!guard.ok()) return ToStatus(guard.result(), task.Text(), guard.advice());
  return DoHere(*driver, task);
}

template <typename Task>
absl::Status Run(const Task& task, const StreamRef& stream) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  if (stream.context().get() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(task.Text(), ": the StreamRef is empty"));
  }
  CUGUEST_RETURN_IF_ERROR(CheckLives(task));
  const ContextGuard guard(stream.context());
  if (!guard.ok()) return ToStatus(guard.result(), task.Text(), guard.advice());
  const bool is_legacy = stream.get() == nullptr || stream.get() == CU_STREAM_LEGACY;
  CUGUEST_RETURN_IF_ERROR(is_legacy ? RefuseInCapture(task) : absl::OkStatus());
  const CUresult code = task.Do(*driver, stream.get());
  return code == CUDA_SUCCESS ? absl::OkStatus() : ToStatus(code, task.Text());
}

}  // namespace

absl::Status CopyElements(const CopyEnd& to, const CopyEnd& from, std::size_t element_size) {
  const absl::Status ends = CheckEnds(to, from);
  if (!ends.ok() || to.count == 0) return ends;
  return Run(CopyTask{to, from, to.count * element_size});
}

absl::Status CopyElements(const CopyEnd& to, const CopyEnd& from, std::size_t element_size,
                          const StreamRef& stream) {
  const absl::Status ends = CheckEnds(to, from);
  if (!ends.ok() || to.count == 0) return ends;
  return Run(CopyTask{to, from, to.count * element_size}, stream);
}

absl::Status FillElements(const MemoryRange& to, const FillValue& value) {
  return to.bytes == 0 ? absl::OkStatus() : Run(FillTask{to, value});
}

absl::Status FillElements(const MemoryRange& to, const FillValue& value, const StreamRef& stream) {
  return to.bytes == 0 ? absl::OkStatus() : Run(FillTask{to, value}, stream);
}

}  // namespace internal
CUGUEST_END_NAMESPACE
