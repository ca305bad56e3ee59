// SPDX-License-Identifier: Apache-2.0
//
// The stream handles that are no objects.

#ifndef CUGUEST_LIB_CONTEXT_SPECIAL_STREAM_H_
#define CUGUEST_LIB_CONTEXT_SPECIAL_STREAM_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Whether the handle means a stream of whatever context is current.
inline bool MeansCurrent(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

// Whether the handle means stream 0, which waits for the blocking streams of its context.
inline bool IsLegacy(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_SPECIAL_STREAM_H_
