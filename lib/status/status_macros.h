// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Returns on an error of the driver; status.h has the other macros.                    tier: 0

#ifndef CUGUEST_LIB_STATUS_STATUS_MACROS_H_
#define CUGUEST_LIB_STATUS_STATUS_MACROS_H_

#include <cuda.h>

#include "cuguest/status.h"

// CUGUEST_RETURN_IF_CUDA_ERROR(code, doing, object): returns ToStatus(code, doing, object) unless
// the CUresult `code` is CUDA_SUCCESS. The texts are made on failure only.
#define CUGUEST_RETURN_IF_CUDA_ERROR(code, ...)                               \
  do {                                                                        \
    if (const CUresult failed_with_ = (code); failed_with_ != CUDA_SUCCESS) { \
      return ::cuguest::ToStatus(failed_with_, __VA_ARGS__);                  \
    }                                                                         \
  } while (false)

#endif  // CUGUEST_LIB_STATUS_STATUS_MACROS_H_
