// SPDX-License-Identifier: Apache-2.0
//
// What the handles of special streams mean.                                            tier: 2

#ifndef CUGUEST_LIB_CONTEXT_STREAM_KIND_H_
#define CUGUEST_LIB_CONTEXT_STREAM_KIND_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether the handle means a stream of whatever context is current.
inline bool MeansCurrent(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

// Whether the handle means stream 0, which waits for the blocking streams of its context.
inline bool IsLegacy(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_STREAM_KIND_H_
