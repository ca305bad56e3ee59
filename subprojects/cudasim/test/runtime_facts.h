// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime_*_facts_test.cc share. They say what the CUDA runtime does, as measured
// with the shared and the static runtime of CUDA 13.0 on an H200, driver 580.159.04; the
// simulated runtime must do the same.

#ifndef CUDASIM_TEST_RUNTIME_FACTS_H_
#define CUDASIM_TEST_RUNTIME_FACTS_H_

#include "test/facts.h"
#include "test/support/runtime.h"

namespace cudasim_facts {

// The handle of device 0's primary context, for ever.
inline CUcontext PrimaryHandle() {
  static const CUcontext handle = [] {
    CUcontext primary = nullptr;
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    return primary;
  }();
  return handle;
}

// Nothing current, the primary contexts inactive, no reference of the runtime left, no last
// error: as in a process that has not used the runtime, and measured to be no different
// from one.
class Unused {
 public:
  Unused() { Restore(); }
  ~Unused() { Restore(); }
  Unused(const Unused&) = delete;
  Unused& operator=(const Unused&) = delete;

  static void Restore() {
    SetStack({PrimaryHandle()});
    RT_OK(cudaDeviceReset());
    SetStack({});
    cudaGetLastError();
    BOOST_CHECK(!IsActive(0));
  }
};

// As Unused, but the driver retains the primary.
class Retained : Unused {
 public:
  Retained() {
    CUcontext primary = nullptr;
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  }
  ~Retained() {
    SetStack({});
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
  }
};

// Releases that succeed until the primary is inactive: how many each holder has is not told apart.
inline int ReleaseAll() {
  int count = 0;
  while (IsActive(0) && count < 10) {
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    ++count;
  }
  return count;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_RUNTIME_FACTS_H_
