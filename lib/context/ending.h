// SPDX-License-Identifier: Apache-2.0
//
// What the last holder of a shared context does.

#ifndef CUGUEST_LIB_CONTEXT_ENDING_H_
#define CUGUEST_LIB_CONTEXT_ENDING_H_

#include "cuguest/driver.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Destroys the incarnation `id` of the context, from whatever thread and whatever is current
// there: the thread's stack keeps its entries, also those that are this very context,
// dead from then on. CUDA_ERROR_CONTEXT_IS_DESTROYED, and nothing done, if it was destroyed or
// reset before; success if the process is ending.
CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept;

// Releases one of the driver's references to a primary context.
CUresult ReleasePrimary(CUdevice device) noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_ENDING_H_
