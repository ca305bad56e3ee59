// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// How much memory a device has free, asked without leaving a context behind: the driver tells it
/// in a context of the device only, and a plain cuMemGetInfo or cudaMemGetInfo therefore creates
/// one, or is of another device.
///
///   const ErrorOr<FreeMemory> memory = GetFreeMemory(device);
///   if (!memory.ok()) return memory.error();   // kInactive: nobody uses the device
///   return UseHalfOf(memory->free);

#ifndef CUGUEST_FREE_MEMORY_H_
#define CUGUEST_FREE_MEMORY_H_

#include <cuda.h>

#include <cstddef>

#include "cuguest/acquire.h"
#include "cuguest/device.h"
#include "cuguest/error_or.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// The bytes that a device has free, and those that it has in all.
struct FreeMemory {
  std::size_t free;
  std::size_t total;
};

/// The bytes that `device` has free, and in all, as cuMemGetInfo counts them: of every process. It
/// is asked in the current context if that is on `device`, else in its primary context; with
/// kCreate that is created if need be, and released again: what it takes (hundreds of MB) is
/// missing from `free`.
/// Stack:   as it was.
/// Count:   as it was.
/// Threads: any; not from a stream callback: CUDA_ERROR_NOT_PERMITTED. Invalidates no capture.
/// Errors:  those of AcquireOn(): kInactive, CUDA_ERROR_INVALID_CONTEXT, where there is no context
///          and kCreate was not given; of a sticky error its code.
/// Cost:    that of AcquireOn(), and four driver calls if the context is current; else six, and one
///          to release the primary.
/// Needs:   of an adopted driver cuMemGetInfo; without it CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER.
/// Source:  CUDA Driver API, cuMemGetInfo; docs/guarantees.md.
[[nodiscard]] CUGUEST_API ErrorOr<FreeMemory> GetFreeMemory(
    Device device, IfInactive if_inactive = IfInactive::kRefuse) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_FREE_MEMORY_H_
