// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operation of several driver calls comes to, by CUresult: the core's own form of an
// absl::Status, which call_status.h makes of it.                                       tier: 2

#ifndef CUGUEST_LIB_STATUS_CALL_OUTCOME_H_
#define CUGUEST_LIB_STATUS_CALL_OUTCOME_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct [[nodiscard]] CallOutcome {
  enum class Why : unsigned char {
    kCall,            // `doing` failed, to what the caller named
    kAlone,           // `doing` failed, to nothing in particular
    kPrimary,         // `doing` failed, to the primary context of `device`
    kNoDriver,        // there is no usable driver
    kNotInitialized,  // cuInit failed
    kNoEntry,         // the driver is too old
    kUnknownMemory,   // CUDA does not know the memory
    kNoRange,         // no bytes, or more than there are addresses
    kOutside,         // a range that no allocation holds
    kFindDevice,      // `device`, which memory belongs to, cannot be found
    kOtherDevice,     // `context`, which is current, is on `context_device`
    kInactive,        // no context of `device` is current, and its primary context is inactive
    kNull,            // no context was given
    kNoContext,       // no context can be at this address
    kClosing,         // the last holder is destroying the context
    kNoMemory,
  };

  CUresult code = CUDA_SUCCESS;
  Why why = Why::kCall;
  bool of_memory = false;  // acquiring for memory of `device` that no context owns
  const char* doing = "";  // static storage
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdevice context_device = 0;

  bool ok() const noexcept { return code == CUDA_SUCCESS; }
};

inline CallOutcome Failure(CUresult code, const char* doing, CUcontext context = nullptr) noexcept {
  CallOutcome outcome;
  outcome.code = code;
  outcome.doing = doing;
  outcome.context = context;
  return outcome;
}

inline CallOutcome Failure(CUresult code, CallOutcome::Why why, const char* doing = "") noexcept {
  CallOutcome outcome;
  outcome.code = code;
  outcome.why = why;
  outcome.doing = doing;
  return outcome;
}

// The process's driver; the second one after cuInit.
inline CallOutcome GetDriver(const DriverTable** driver) noexcept {
  CUresult code = CUDA_SUCCESS;
  *driver = TryDriver(&code);
  return *driver != nullptr ? CallOutcome() : Failure(code, CallOutcome::Why::kNoDriver);
}
inline CallOutcome GetInitializedDriver(const DriverTable** driver) noexcept {
  const CallOutcome outcome = GetDriver(driver);
  if (!outcome.ok()) return outcome;
  const CUresult code = InitializeDriver(**driver);
  return code == CUDA_SUCCESS ? outcome : Failure(code, CallOutcome::Why::kNotInitialized);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STATUS_CALL_OUTCOME_H_
