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
#include "cuguest/status.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

inline std::string EndText(const CopyEnd& end) {
  return absl::StrCat(end.range == nullptr ? "host " : "device ", PointerText(end.address));
}

inline bool HasOwner(const MemoryRange* range) {
  return range != nullptr && range->context.get() != nullptr;
}

inline const ContextRef* OwnerOf(const CopyEnd& end) {
  return HasOwner(end.range) ? &end.range->context : nullptr;
}

// The end that counts as the memory: the one that is written if it is device memory, unless only
// the other has a context.
inline const MemoryRange& HomeOf(const CopyEnd& to, const CopyEnd& from) {
  return to.range == nullptr || (HasOwner(from.range) && !HasOwner(to.range)) ? *from.range
                                                                              : *to.range;
}

inline std::string OwnerText(const ContextRef& owner) {
  return absl::StrCat("memory of ", ContextText(owner.get()));
}

// That both ends are still there, as far as their contexts tell. What `place` owns is asked about
// when that is entered.
template <typename Task>
absl::Status CheckLives(const Task& task, const ContextRef& place) {
  for (const ContextRef* owner : task.owners()) {
    if (owner == nullptr || *owner == place) continue;
    CUGUEST_RETURN_IF_CUDA_ERROR(owner->Check(), task.Text(), OwnerText(*owner));
  }
  return absl::OkStatus();
}

inline CUresult WaitForStream0(const ObjectDriver& driver) {
  return driver.StreamSynchronize(CU_STREAM_LEGACY);
}

template <typename Task>
std::string WhyNotEntered(const Task& task, const ContextRef& place, const ContextGuard& guard) {
  for (const ContextRef* owner : task.owners()) {
    if (owner != nullptr && *owner == place) return OwnerText(place);
  }
  return guard.advice();
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
// A task has the memory that it belongs to (home), the contexts that own its ends, what it does
// once inside one, and without a stream waits for, and the words for it.
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
    CUGUEST_RETURN_IF_ERROR(acquired);
    place = &acquired.context();
  }
  const ContextGuard guard(*place);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), task.Text(), WhyNotEntered(task, *place, guard));
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
  if (code == CUDA_SUCCESS) code = task.Wait(*driver);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, task.Text());
  return absl::OkStatus();
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_RUN_COPY_H_
