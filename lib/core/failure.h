// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the core makes an Error.                                                         tier: 1

#ifndef CUGUEST_LIB_CORE_FAILURE_H_
#define CUGUEST_LIB_CORE_FAILURE_H_

#include <cuda.h>

#include <cstdint>

#include "cuguest/error.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The first drivers with the signatures of cuCtxCreate that take an execution affinity, and
// parameters for CUDA in Graphics.
constexpr int kAffinityVersion = 11040;
constexpr int kCigVersion = 12050;

inline Error Failure(CUresult code, const char* doing) noexcept {
  Error error;
  error.code = code;
  error.doing = doing;
  return error;
}

inline Error Failure(Error::Reason reason, CUresult code, const char* doing) noexcept {
  Error error = Failure(code, doing);
  error.reason = reason;
  return error;
}

// What it failed at.
inline Error OfHandle(Error error, Error::Subject subject, const void* handle) noexcept {
  error.subject = subject;
  error.handle = reinterpret_cast<std::uintptr_t>(handle);
  return error;
}
inline Error OfContext(const Error& error, CUcontext context) noexcept {
  return OfHandle(error, Error::Subject::kContext, context);
}
inline Error OfDevice(Error error, Error::Subject subject, CUdevice device) noexcept {
  error.subject = subject;
  error.device = device;
  return error;
}

// The process's driver; the second one after cuInit.
inline Error GetDriver(const DriverTable** driver) noexcept {
  CUresult code = CUDA_SUCCESS;
  *driver = TryDriver(&code);
  if (*driver != nullptr) return {};
  return Failure(Error::Reason::kNoDriver, code, "load the CUDA driver");
}
inline Error GetInitializedDriver(const DriverTable** driver) noexcept {
  const Error error = GetDriver(driver);
  if (!error.ok()) return error;
  const CUresult code = InitializeDriver(**driver);
  if (code == CUDA_SUCCESS) return {};
  return Failure(Error::Reason::kNotInitialized, code, "initialise the CUDA driver");
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_FAILURE_H_
