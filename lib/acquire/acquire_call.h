// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which context to work in, by CUresult, beneath acquire.h.                            tier: 2

#ifndef CUGUEST_LIB_ACQUIRE_ACQUIRE_CALL_H_
#define CUGUEST_LIB_ACQUIRE_ACQUIRE_CALL_H_

#include <cuda.h>

#include <cstddef>

#include "cuguest/context_ref.h"
#include "cuguest/context_source.h"
#include "cuguest/internal/current_context.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/status/call_outcome.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What was found. Owns nothing by itself: give it to Release() once.
struct Acquired {
  ContextRef incarnation;
  ContextSource source = ContextSource::kCurrent;
  // Of the context: kDeviceNotAsked if finding the context did not need it. The primary context of
  // this device has one reference if HoldsPrimary().
  CUdevice device = kDeviceNotAsked;

  bool HoldsPrimary() const noexcept {
    return source == ContextSource::kPrimary || source == ContextSource::kCreated;
  }
};

// As the functions of acquire.h. `asked` is what is current, asked a moment ago.
//
// Of failures without a code of the driver, `code` is CUDA_ERROR_INVALID_CONTEXT (kInactive,
// kOtherDevice) or kCallRequiresNewerDriver (kNoEntry).
CallOutcome AcquireFromStream(CUstream stream, Acquired* acquired) noexcept;
CallOutcome AcquireFromPointer(CUdeviceptr pointer, IfInactive if_inactive,
                               Acquired* acquired) noexcept;
// `found` is written for kOutside: what there is around `pointer`.
CallOutcome AcquireFromBuffer(CUdeviceptr pointer, std::size_t bytes, IfInactive if_inactive,
                              Acquired* acquired, MemoryExtent* found) noexcept;
// Of an object that knows its context, or, if no context owns it, its device.
CallOutcome AcquireFromOwner(const ContextRef& context, CUdevice device, IfInactive if_inactive,
                             Acquired* acquired) noexcept;
CallOutcome AcquireCurrent(const CurrentContext& asked, CUdevice device,
                           Acquired* acquired) noexcept;
CallOutcome AcquireOn(const CurrentContext& asked, CUdevice device, IfInactive if_inactive,
                      Acquired* acquired) noexcept;

// The same without `asked`: one driver call where the thread has seen what is current.
inline CallOutcome AcquireOn(CUdevice device, IfInactive if_inactive, Acquired* acquired) noexcept {
  const CurrentContext asked;
  if (!asked.IsSeenOn(device)) return AcquireOn(asked, device, if_inactive, acquired);
  *acquired = {asked.Seen().Ref(), ContextSource::kCurrent, device};
  return {};
}

// Gives back the reference that `acquired` holds, if any; it names no context then, unless
// IsStillHeld().
CUresult Release(Acquired* acquired) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_ACQUIRE_ACQUIRE_CALL_H_
