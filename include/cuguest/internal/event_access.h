// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/event_access.h                                               tier: 3
// -----------------------------------------------------------------------------
//
// Not for embedders. What destructors do with an Event: without a text, which needs memory.

#ifndef CUGUEST_INTERNAL_EVENT_ACCESS_H_
#define CUGUEST_INTERNAL_EVENT_ACCESS_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/stream.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct EventAccess {
  // As Event::Record(); whether it was recorded.
  CUGUEST_HIDE static bool Record(Event& event, const StreamRef& stream) noexcept {
    return event.TryRecord(stream).code == CUDA_SUCCESS;
  }
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_EVENT_ACCESS_H_
