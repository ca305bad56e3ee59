// SPDX-License-Identifier: Apache-2.0
//
// A CaptureModeGuard for what is forbidden only by captures.

#ifndef CUGUEST_LIB_MEMORY_RELAXED_SCOPE_H_
#define CUGUEST_LIB_MEMORY_RELAXED_SCOPE_H_

#include "cuguest/capture.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

class RelaxedScope {
 public:
  // A driver that has no such mode has no captures that could be seen from here.
  [[nodiscard]] CUresult result() const noexcept {
    return guard_.result() == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : guard_.result();
  }

 private:
  CaptureModeGuard guard_;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MEMORY_RELAXED_SCOPE_H_
