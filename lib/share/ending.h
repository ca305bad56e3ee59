// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the holder of a reference does at its end; of a shared context, the last holder. tier: 2

#ifndef CUGUEST_LIB_SHARE_ENDING_H_
#define CUGUEST_LIB_SHARE_ENDING_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Releases one of the driver's references to a primary context; success if the process is ending.
CUresult ReleasePrimary(CUdevice device) noexcept;

// The code of an end that can be had later: in a host function the driver refuses every such call,
// and another thread can make it.
constexpr CUresult kStillHeld = CUDA_ERROR_NOT_PERMITTED;

// Whether a reference whose release gave `code` is there all the same. What else the driver says,
// nobody can mend.
inline bool IsStillHeld(CUresult code) noexcept { return code == kStillHeld; }

// Destroys the incarnation `id` of the context, from whatever thread and whatever is current
// there: the thread's stack keeps its entries, also those that are this very context,
// dead from then on. Another code, and nothing done, if it is not destroyed:
// CUDA_ERROR_CONTEXT_IS_DESTROYED if it was destroyed or reset before. Success if the process is
// ending.
CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_ENDING_H_
