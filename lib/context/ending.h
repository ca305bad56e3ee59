// SPDX-License-Identifier: Apache-2.0
//
// What the last one out of a shared context does.

#ifndef CUGUEST_LIB_CONTEXT_ENDING_H_
#define CUGUEST_LIB_CONTEXT_ENDING_H_

#include "cuguest/driver.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Destroys the context whose life is `id`, from whatever thread and whatever is current
// there: the thread's stack keeps its entries, also those that are this very context,
// dead from then on. CUDA_ERROR_CONTEXT_IS_DESTROYED, and nothing done, if its life was
// over before; success if the process is ending.
CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept;

// Gives one unit of the driver's count on a primary context back.
CUresult ReleasePrimary(CUdevice device) noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_ENDING_H_
