// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing is bound to a thread. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INTERNAL_THIS_THREAD_H_
#define CUGUEST_LIB_NO_CUDA_INTERNAL_THIS_THREAD_H_

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

constexpr CUdevice kDeviceNotAsked = -1;

struct BoundThread {
  CUGUEST_HIDE BoundThread() noexcept {}
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INTERNAL_THIS_THREAD_H_
