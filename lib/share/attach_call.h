// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared contexts by CUresult, beneath shared_context.h.                               tier: 2

#ifndef CUGUEST_LIB_SHARE_ATTACH_CALL_H_
#define CUGUEST_LIB_SHARE_ATTACH_CALL_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/internal/toolkit.h"
#include "lib/share/registry.h"
#include "lib/status/call_outcome.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// One reference to a context, in the process's registry. Owns nothing by itself: give it to
// Detach() once.
struct Attachment {
  ContextRef incarnation;
  Reference reference;  // to no slot: attached to nothing
};

// What a context is created with.
struct ContextParameters {
  unsigned flags = 0;
  unsigned execution_affinity = 0;     // SMs; 0: none is asked for
  const CUctxCigParam* cig = nullptr;  // nullptr: not for CUDA in Graphics
};

// The first drivers with the signatures of cuCtxCreate that take these.
constexpr int kAffinityVersion = 11040;
constexpr int kCigVersion = 12050;

// As SharedContext::Create, Attach and Detach. On failure `attachment` is unchanged, but for Detach
// and ones that were attached to nothing.
//
// Of failures without a code of the driver, `code` is CUDA_ERROR_INVALID_VALUE (kNull, kNoContext),
// CUDA_ERROR_CONTEXT_IS_DESTROYED (kClosing), CUDA_ERROR_OUT_OF_MEMORY (kNoMemory),
// kCallRequiresNewerDriver (kNoEntry), or CUDA_ERROR_INVALID_CONTEXT (Detach of what is attached to
// nothing). Of an affinity and CIG, only one may be given.
CallOutcome CreateShared(CUdevice device, const ContextParameters& parameters,
                         Attachment* attachment) noexcept;
CallOutcome Attach(CUcontext context, Attachment* attachment) noexcept;
CallOutcome Attach(const ContextRef& context, Attachment* attachment) noexcept;
CallOutcome Detach(Attachment* attachment) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_ATTACH_CALL_H_
