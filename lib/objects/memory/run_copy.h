// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How copies and fills find their context, see Note [Where a copy runs] in docs/notes.md. tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_RUN_COPY_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_RUN_COPY_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "cuguest/status.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/objects/memory/how_to_reach.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

inline std::string EndText(const CopyEnd& end) {
  return absl::StrCat(end.range == nullptr ? "host " : "device ", PointerText(end.address));
}

inline bool HasOwner(const MemoryRange* range) {
  return range != nullptr && range->context.get() != nullptr;
}

// The end that counts as the memory: the one that is written if it is device memory, unless only
// the other has a context. Between two devices it is the one that has none: its device reaches
// the other end, whose device may not reach it (cudasim/test/reach_facts_test.cc).
inline const MemoryRange& HomeOf(const CopyEnd& to, const CopyEnd& from) {
  if (to.range == nullptr || from.range == nullptr) {
    return to.range == nullptr ? *from.range : *to.range;
  }
  if (HasOwner(to.range) == HasOwner(from.range)) return *to.range;
  const bool prefers_owner = to.range->device == from.range->device;
  return HasOwner(to.range) == prefers_owner ? *to.range : *from.range;
}

inline std::string OwnerText(const ContextRef& owner) {
  return absl::StrCat("memory of ", ContextText(owner.get()));
}

// That both ends are still there, as far as their contexts tell. What `place` owns is asked about
// when that is entered.
template <typename Task>
absl::Status CheckLives(const Task& task, const ContextRef& place) {
  for (const MemoryRange* range : task.ranges()) {
    if (!HasOwner(range) || range->context == place) continue;
    const ContextRef& owner = range->context;
    CUGUEST_RETURN_IF_CUDA_ERROR(owner.Check(), task.Text(), OwnerText(owner));
  }
  return absl::OkStatus();
}

inline CUresult WaitForStream0(const ObjectDriver& driver) {
  return driver.StreamSynchronize(CU_STREAM_LEGACY);
}

template <typename Task>
std::string WhyNotEntered(const Task& task, const ContextRef& place, const ContextGuard& guard) {
  for (const MemoryRange* range : task.ranges()) {
    if (HasOwner(range) && range->context == place) return OwnerText(place);
  }
  return guard.advice();
}

// Where nothing is on the home's device: the context of the other end, which may reach it. nullptr
// if that has none.
template <typename Task>
const ContextRef* OtherPlace(const Task& task) {
  for (const MemoryRange* range : task.ranges()) {
    if (HasOwner(range)) return &range->context;
  }
  return nullptr;
}

// Whether a device has to be given access to another one's memory: to that of a pool and a mapping,
// and to fill any.
inline bool NeedsAccess(const MemoryDescription& memory, bool is_fill) noexcept {
  using Kind = MemoryDescription::Kind;
  return !memory.is_on_host && (memory.kind == Kind::kPool || memory.kind == Kind::kVirtual ||
                                (memory.kind == Kind::kDevice && is_fill));
}

// What the driver may have refused: memory of another device than the current context's. Empty:
// something else.
template <typename Task>
std::string WhyNotDone(const ObjectDriver& driver, const Task& task, CUresult code) {
  CUdevice here = 0;
  if (code != CUDA_ERROR_INVALID_VALUE || driver.CtxGetDevice(&here) != CUDA_SUCCESS) return "";
  for (const MemoryRange* range : task.ranges()) {
    if (range == nullptr || range->pointer == 0 || range->device.get() == here) continue;
    const absl::StatusOr<MemoryDescription> memory = Describe(range->pointer);
    if (!memory.ok() || !NeedsAccess(*memory, task.is_fill())) continue;
    return absl::StrCat("in a context of device ", here, ", which needs access to ",
                        Name(memory->kind), " of device ", range->device.get(),
                        ": use a context or a stream of device ", range->device.get(),
                        ", or give access with ", HowToReach(memory->kind));
  }
  return "";
}

// Of the current context's stream 0. A driver that cannot say whether something captures
// there is not tried.
template <typename Task>
absl::Status RefuseInCapture(const Task& task) {
  constexpr CUresult kRefusal = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const CUresult code = CheckNotCapturing(CU_STREAM_LEGACY, kRefusal);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, task.Text(),
                               code == kRefusal
                                   ? "stream 0, and a blocking stream of its context captures: use "
                                     "the Async form on another stream"
                                   : "whether something captures");
  return absl::OkStatus();
}

// Without a stream: on stream 0, until it is done.
//
// A task has the memory that it belongs to (home), the memory of its ends (nullptr: the host's, or
// none), what it does once inside a context, and without a stream waits for, whether that is a
// fill, and the words for it.
template <typename Task>
absl::Status RunCopy(const Task& task, const StreamRef* stream) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  if (stream != nullptr && stream->context().get() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(task.Text(), ": the StreamRef is empty"));
  }
  Acquired acquired;
  const ContextRef* place = stream != nullptr ? &stream->context() : &task.home().context;
  CUGUEST_RETURN_IF_ERROR(CheckLives(task, *place));
  if (place->get() == nullptr) {
    acquired = AcquireOn(task.home().device);
    place = acquired.ok() ? &acquired.context() : OtherPlace(task);
    if (place == nullptr) return ToStatus(acquired);
  }
  const ContextGuard guard(*place);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), task.Text(), WhyNotEntered(task, *place, guard));
  if (stream == nullptr || IsLegacy(stream->get())) {
    CUGUEST_RETURN_IF_ERROR(RefuseInCapture(task));
  }
  if (stream != nullptr) {
    const CUresult code = task.Do(*driver, stream);
    CUGUEST_RETURN_IF_CUDA_ERROR(code, task.Text(), WhyNotDone(*driver, task, code));
    return absl::OkStatus();
  }
  const RelaxedScope relaxed;  // for the captures of other contexts and threads
  CUresult code = relaxed.result();
  if (code == CUDA_SUCCESS) code = task.Do(*driver, nullptr);
  if (code == CUDA_SUCCESS) code = task.Wait(*driver);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, task.Text(), WhyNotDone(*driver, task, code));
  return absl::OkStatus();
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_RUN_COPY_H_
