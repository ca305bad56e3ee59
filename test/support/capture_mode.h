// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calling thread's capture mode.

#ifndef CUGUEST_TEST_SUPPORT_CAPTURE_MODE_H_
#define CUGUEST_TEST_SUPPORT_CAPTURE_MODE_H_

#include "test/support/driver_calls.h"

namespace cuguest_test {

// What it was.
inline CUstreamCaptureMode SetMode(CUstreamCaptureMode mode) {
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  return mode;
}
// It is left as it is.
inline CUstreamCaptureMode ThreadMode() {
  const CUstreamCaptureMode mode = SetMode(CU_STREAM_CAPTURE_MODE_RELAXED);
  SetMode(mode);
  return mode;
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_CAPTURE_MODE_H_
