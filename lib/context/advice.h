// SPDX-License-Identifier: Apache-2.0
//
// What a guard can add to the driver's words, because it knows what it was asked.

#ifndef CUGUEST_LIB_CONTEXT_ADVICE_H_
#define CUGUEST_LIB_CONTEXT_ADVICE_H_

#include <cuda.h>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// A phrase with static storage; empty where there is nothing to add.
const char* Advice(CUresult code) noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_ADVICE_H_
