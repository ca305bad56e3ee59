// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Out of line: an operation has many of these, and takes none of them mostly.

#include "lib/core/failure.h"

#include <cstdint>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::atomic<void (*)(CUresult code, const char* doing)> g_note_failure{nullptr};

Error Failure(CUresult code, const char* doing) noexcept {
  if (const auto note = g_note_failure.load(std::memory_order_relaxed)) note(code, doing);
  return Failure(Error::Reason::kDriver, code, doing);
}

Error Failure(Error::Reason reason, CUresult code, const char* doing) noexcept {
  Error error;
  error.code = code;
  error.reason = reason;
  error.doing = doing;
  return error;
}

Error MakeError(CUresult code, const char* doing, const char* advice) noexcept {
  const Error error = Failure(Error::Reason::kDriver, code, doing);
  return *advice == '\0' ? error : OfHandle(error, Error::Subject::kAdvice, advice);
}

Error OfHandle(const Error& error, Error::Subject subject, const void* handle) noexcept {
  Error of = error;
  of.subject = subject;
  of.handle = reinterpret_cast<std::uintptr_t>(handle);
  return of;
}

Error OfContext(const Error& error, CUcontext context) noexcept {
  return OfHandle(error, Error::Subject::kContext, context);
}

Error OfDevice(const Error& error, Error::Subject subject, CUdevice device) noexcept {
  Error of = error;
  of.subject = subject;
  of.device = device;
  return of;
}

Error NoDriver(CUresult code) noexcept {
  return Failure(Error::Reason::kNoDriver, code, "load the CUDA driver");
}

Error GetDriver(const DriverTable** driver) noexcept {
  CUresult code = CUDA_SUCCESS;
  *driver = TryDriver(&code);
  if (*driver != nullptr) return {};
  return NoDriver(code);
}

Error GetInitializedDriver(const DriverTable** driver) noexcept {
  const Error error = GetDriver(driver);
  if (!error.ok()) return error;
  const CUresult code = InitializeDriver(**driver);
  if (code == CUDA_SUCCESS) return {};
  return Failure(Error::Reason::kNotInitialized, code, "initialise the CUDA driver");
}

CUGUEST_END_INTERNAL_NAMESPACE
