// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the core makes an Error.                                                         tier: 1

#ifndef CUGUEST_LIB_CORE_FAILURE_H_
#define CUGUEST_LIB_CORE_FAILURE_H_

#include <cuda.h>

#include <atomic>

#include "cuguest/error.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The first drivers with the signatures of cuCtxCreate that take an execution affinity, and
// parameters for CUDA in Graphics.
constexpr int kAffinityVersion = 11040;
constexpr int kCigVersion = 12050;

// The first is for right after the call that gave `code`.
Error Failure(CUresult code, const char* doing) noexcept;
Error Failure(Error::Reason reason, CUresult code, const char* doing) noexcept;

// Is told of each Failure() of the driver's while a DriverLog is open (objects/driver_log.h), so
// that what the driver has said of it is its own; else null.
extern std::atomic<void (*)(CUresult code, const char* doing)> g_note_failure;

// What it failed at.
Error OfHandle(const Error& error, Error::Subject subject, const void* handle) noexcept;
Error OfContext(const Error& error, CUcontext context) noexcept;
Error OfDevice(const Error& error, Error::Subject subject, CUdevice device) noexcept;

// That there is no driver, for the reason that `code` is.
Error NoDriver(CUresult code) noexcept;

// The process's driver; the second one after cuInit.
Error GetDriver(const DriverTable** driver) noexcept;
Error GetInitializedDriver(const DriverTable** driver) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_FAILURE_H_
