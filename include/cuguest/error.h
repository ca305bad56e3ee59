// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// The name and meaning of each `CUresult`, without a driver or Abseil. For statuses see status.h.

#ifndef CUGUEST_ERROR_H_
#define CUGUEST_ERROR_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// ErrorName(), ErrorText()
///
/// The name ("CUDA_ERROR_OUT_OF_MEMORY") and one sentence that says what it means and what to do.
/// Never null; a code newer than cuguest gives "CUDA_ERROR_UNRECOGNIZED". Calls no driver.
[[nodiscard]] CUGUEST_API const char* ErrorName(CUresult code) noexcept;
[[nodiscard]] CUGUEST_API const char* ErrorText(CUresult code) noexcept;

/// True for the errors after which every context of the process on that device is lost: allocation,
/// context creation and cuDevicePrimaryCtxRetain all return them from then on, while the stack can
/// still be pushed, popped and restored.
[[nodiscard]] CUGUEST_API bool IsSticky(CUresult code) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_ERROR_H_
