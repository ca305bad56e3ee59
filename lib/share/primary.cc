// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from PrimaryContext, so that who uses that alone does not have the registry in it.

#include "cuguest/internal/primary.h"

#include "lib/core/driver_access.h"
#include "lib/share/registry.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult AskIfPrimary(const ContextRef& context, bool* is_primary) noexcept {
  *is_primary = false;
  if (Registry::IsMadeInProcess(context)) return CUDA_SUCCESS;
  return AskIfPrimary(ResolvedDriver(), context.get(), is_primary);
}

CUGUEST_END_INTERNAL_NAMESPACE
