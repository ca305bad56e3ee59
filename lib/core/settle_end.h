// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The end of what an owner has in a context.                                           tier: 0

#ifndef CUGUEST_LIB_CORE_SETTLE_END_H_
#define CUGUEST_LIB_CORE_SETTLE_END_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// `code` is what came of destroying it, or what its context has answered; `let_go` makes the owner
// forget it where nothing is left. Without a text: destructors, too, must do without memory.
template <typename LetGo>
CUresult SettleEnd(CUresult code, const LetGo& let_go) noexcept {
  // The process is ending, and the driver has taken everything back.
  if (code == CUDA_ERROR_DEINITIALIZED) code = CUDA_SUCCESS;
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_CONTEXT_IS_DESTROYED) let_go();
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_SETTLE_END_H_
