// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. What the bridge, the cache and code ask of a current context.

#ifndef CUGUEST_INTERNAL_PRIMARY_H_
#define CUGUEST_INTERNAL_PRIMARY_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether `context`, which is current and alive, is its device's primary context. See
// Note [Which context is primary] in lib/stack/thread_stack.h.
CUGUEST_API CUresult AskIfPrimary(const ContextRef& context, bool* is_primary) noexcept;

// Whether the current context is a green one. Asked of a stream of our own: the question would end
// the capture of another's.
CUGUEST_API CUresult AskIfGreen(bool* is_green) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_PRIMARY_H_
