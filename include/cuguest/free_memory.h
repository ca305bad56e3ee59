// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// How much memory a device has free, asked without leaving a context behind: the driver tells it
/// in a context of the device only, and a plain cuMemGetInfo or cudaMemGetInfo therefore creates
/// one, or is of another device.
///
///   std::size_t free = 0;
///   const Error error = GetFreeMemory(device, &free);
///   if (error.code == CUDA_ERROR_INVALID_CONTEXT) UseTheDefaultSize();   // nobody uses the device
///   CUGUEST_RETURN_IF_ERROR(error);

#ifndef CUGUEST_FREE_MEMORY_H_
#define CUGUEST_FREE_MEMORY_H_

#include <cuda.h>

#include <cstddef>

#include "cuguest/acquire.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Writes the bytes that `device` has free, and those that it has in all, as cuMemGetInfo counts
/// them: of every process. Either pointer may be null. It is asked in the current context if that
/// is on `device`, else in its primary context; with kCreate that is created if need be, and
/// released again: what it takes (hundreds of MB) is missing from `free`.
/// Stack:   as it was.
/// Count:   as it was.
/// Threads: any; not from a stream callback: CUDA_ERROR_NOT_PERMITTED. Invalidates no capture.
/// Errors:  those of AcquireOn(): kInactive, CUDA_ERROR_INVALID_CONTEXT, where there is no context
///          and kCreate was not given; of a sticky error its code. Nothing is written then.
/// Cost:    that of AcquireOn(), and four driver calls if the context is current; else six, and one
///          to release the primary.
/// Needs:   of an adopted driver cuMemGetInfo; without it CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER.
/// Source:  CUDA Driver API, cuMemGetInfo; docs/guarantees.md.
CUGUEST_API Error GetFreeMemory(Device device, std::size_t* free, std::size_t* total = nullptr,
                                IfInactive if_inactive = IfInactive::kRefuse) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_FREE_MEMORY_H_
