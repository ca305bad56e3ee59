// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Another vendor's streams may capture; nobody says whether. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_CAPTURE_H_
#define CUGUEST_LIB_NO_CUDA_CAPTURE_H_

#include <optional>

#include "cuguest/capture.h"

CUGUEST_BEGIN_NAMESPACE

inline CaptureModeGuard::CaptureModeGuard(CUstreamCaptureMode /*mode*/,
                                          Location /*where*/) noexcept {}

inline const char* CaptureModeGuard::advice() const noexcept { return ""; }

inline std::optional<CUstreamCaptureStatus> CaptureStatusOf(CUstream /*stream*/) noexcept {
  return std::nullopt;
}

inline bool HousekeepingIsSafe(CUstream /*stream*/) noexcept { return false; }

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_CAPTURE_H_
