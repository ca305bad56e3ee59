// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// References to primary contexts by CUresult, beneath primary_context.h.               tier: 2

#ifndef CUGUEST_LIB_SHARE_PRIMARY_CALL_H_
#define CUGUEST_LIB_SHARE_PRIMARY_CALL_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "lib/status/call_outcome.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct PrimaryState {
  bool active = false;
  unsigned flags = 0;
};

// As PrimaryContext::Query and Retain.
CallOutcome QueryPrimary(CUdevice device, PrimaryState* state) noexcept;
CallOutcome RetainPrimary(CUdevice device, ContextRef* incarnation) noexcept;

// Releases one of the driver's references; success if the process is ending.
CUresult ReleasePrimary(CUdevice device) noexcept;

// Whether a reference whose release gave `code` is there all the same: in a host function the
// driver refuses every such call, and another thread can make it. What else it says, nobody can
// mend.
inline bool IsStillHeld(CUresult code) noexcept { return code == CUDA_ERROR_NOT_PERMITTED; }

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_PRIMARY_CALL_H_
