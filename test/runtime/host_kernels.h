// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulation does not execute kernels; these host functions run in place of bridge_scale of
// kernels.cu, and for saxpy of kernels/, there.

#ifndef CUGUEST_TEST_RUNTIME_HOST_KERNELS_H_
#define CUGUEST_TEST_RUNTIME_HOST_KERNELS_H_

#include <cuda.h>

#include <cstddef>

#include "cudasim/sim.h"

namespace cuguest_runtime_test {

template <typename T>
T Parameter(const cudasim::SimLaunch& launch, std::size_t index) {
  return *static_cast<const T*>(launch.parameters[index]);
}

// values *= factor
inline CUresult Scale(const cudasim::SimLaunch& launch) {
  auto* const values = Parameter<float*>(launch, 0);
  for (unsigned i = 0; i < Parameter<unsigned>(launch, 1); ++i) {
    values[i] *= Parameter<float>(launch, 2);
  }
  return CUDA_SUCCESS;
}

// y = a x + y
inline CUresult Saxpy(const cudasim::SimLaunch& launch) {
  const auto* const x = Parameter<const float*>(launch, 2);
  auto* const y = Parameter<float*>(launch, 3);
  for (unsigned i = 0; i < Parameter<unsigned>(launch, 0); ++i) {
    y[i] += Parameter<float>(launch, 1) * x[i];
  }
  return CUDA_SUCCESS;
}

// Does nothing on a real driver. A fixture of the suites that launch.
struct HostKernels {
  HostKernels() {
    cudasim::Sim::RegisterKernel("bridge_scale", &Scale);
    cudasim::Sim::RegisterKernel("saxpy", &Saxpy);
  }
};

}  // namespace cuguest_runtime_test

#endif  // CUGUEST_TEST_RUNTIME_HOST_KERNELS_H_
