// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
//
// Not for embedders. The handles of streams that nobody creates.

#ifndef CUGUEST_INTERNAL_STREAM_KIND_H_
#define CUGUEST_INTERNAL_STREAM_KIND_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether the handle means a stream of whatever context is current.
CUGUEST_HIDE inline bool MeansCurrent(CUstream stream) noexcept {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

// Whether the handle means stream 0, which waits for the blocking streams of its context.
CUGUEST_HIDE inline bool IsLegacy(CUstream stream) noexcept {
  return stream == nullptr || stream == CU_STREAM_LEGACY;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_STREAM_KIND_H_
