// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For test programs that are linked with the CUDA runtime. With a static one they run on a
// real driver only: it looks for the driver's private tables, which the simulation does not
// have.

#ifndef CUDASIM_TEST_SUPPORT_RUNTIME_H_
#define CUDASIM_TEST_SUPPORT_RUNTIME_H_

#include <cuda_runtime_api.h>

#include "runner.h"

#ifdef CUDASIM_TEST_STATIC_RUNTIME
namespace cudasim_test {
inline const bool needs_real_driver =
    NeedRealDriver("a static CUDA runtime does not run on the simulated driver");
}  // namespace cudasim_test
#endif

namespace cudasim_test {
// The simulated one is of the driver's version, but not older than 12.0.
inline const bool needs_driver_for_runtime =
    NeedDriver(12000, "a CUDA runtime of 12.0 or newer refuses an older one");
}  // namespace cudasim_test

#define RT_OK(call) BOOST_CHECK_EQUAL((call), cudaSuccess)
// RT_IS(cudaMalloc(nullptr, 1), InvalidValue)
#define RT_IS(call, error) BOOST_CHECK_EQUAL((call), cudaError##error)

#endif  // CUDASIM_TEST_SUPPORT_RUNTIME_H_
