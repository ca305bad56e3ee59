// SPDX-License-Identifier: Apache-2.0
//
// Whether a call may be made that a capture forbids.                                   tier: 2

#ifndef CUGUEST_LIB_CONTEXT_CAPTURE_CHECK_H_
#define CUGUEST_LIB_CONTEXT_CAPTURE_CHECK_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// CUDA_SUCCESS if `stream` does not capture, `refusal` if it does, as CaptureStateOf() sees it, and
// the driver's code where it does not say.
CUresult CheckNotCapturing(CUstream stream, CUresult refusal) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_CAPTURE_CHECK_H_
