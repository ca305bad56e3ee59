// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the core makes an Error.                                                         tier: 1

#ifndef CUGUEST_LIB_CORE_FAILURE_H_
#define CUGUEST_LIB_CORE_FAILURE_H_

#include <cuda.h>

#include "cuguest/error.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The first drivers with the signatures of cuCtxCreate that take an execution affinity, and
// parameters for CUDA in Graphics.
constexpr int kAffinityVersion = 11040;
constexpr int kCigVersion = 12050;

Error Failure(CUresult code, const char* doing) noexcept;
Error Failure(Error::Reason reason, CUresult code, const char* doing) noexcept;

// What it failed at.
Error OfHandle(const Error& error, Error::Subject subject, const void* handle) noexcept;
Error OfContext(const Error& error, CUcontext context) noexcept;
// With what a guard or a reference adds, as a phrase; "": nothing.
Error OfAdvice(const Error& error, const char* advice) noexcept;
Error OfDevice(const Error& error, Error::Subject subject, CUdevice device) noexcept;

// The process's driver; the second one after cuInit.
Error GetDriver(const DriverTable** driver) noexcept;
Error GetInitializedDriver(const DriverTable** driver) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_FAILURE_H_
