// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One reference to the primary context of each device that has a bit in a word.        tier: 2

#ifndef CUGUEST_LIB_ACQUIRE_KEPT_PRIMARIES_H_
#define CUGUEST_LIB_ACQUIRE_KEPT_PRIMARIES_H_

#include <cuda.h>

#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Of this copy, for IfInactive::kCreateAndKeep. Atomic.
extern unsigned long long g_kept_primaries;

// Keeps that of `device`, which is active, unless it is kept in `kept`.
Error KeepPrimary(unsigned long long* kept, Device device) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_ACQUIRE_KEPT_PRIMARIES_H_
