// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests that call the driver itself share.

#ifndef CUGUEST_TEST_SUPPORT_DRIVER_CALLS_H_
#define CUGUEST_TEST_SUPPORT_DRIVER_CALLS_H_

#include <cuda.h>

#include <cstring>
#include <thread>
#include <vector>

#include "test/support/raw_driver.h"
#include "test/support/test.h"

#define OK(call) BOOST_CHECK_EQUAL((call), CUDA_SUCCESS)
#define IS(call, error) BOOST_CHECK_EQUAL((call), CUDA_ERROR_##error)

namespace cuguest_test {

using Entries = std::vector<CUcontext>;

inline CUcontext CurrentContext() {
  CUcontext context = nullptr;
  OK(RAW(cuCtxGetCurrent)(&context));
  return context;
}

template <typename Function>
void OnAnotherThread(const Function& function) {
  std::thread(function).join();
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_DRIVER_CALLS_H_
