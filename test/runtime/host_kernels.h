// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulation does not execute kernels; these host functions run in place of bridge_scale of
// kernels.cu, and for saxpy of kernels/, there. As on a GPU, they end in CUDA_ERROR_ILLEGAL_ADDRESS
// where they do not reach their memory.

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

inline bool Reaches(const float* values, unsigned count) {
  return count == 0 || cudasim::Sim::KernelReaches(values, count * sizeof(float));
}

// values *= factor
inline CUresult Scale(const cudasim::SimLaunch& launch) {
  auto* const values = Parameter<float*>(launch, 0);
  const auto count = Parameter<unsigned>(launch, 1);
  if (!Reaches(values, count)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (unsigned i = 0; i < count; ++i) values[i] *= Parameter<float>(launch, 2);
  return CUDA_SUCCESS;
}

// y = a x + y
inline CUresult Saxpy(const cudasim::SimLaunch& launch) {
  const auto count = Parameter<unsigned>(launch, 0);
  const auto* const x = Parameter<const float*>(launch, 2);
  auto* const y = Parameter<float*>(launch, 3);
  if (!Reaches(x, count) || !Reaches(y, count)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (unsigned i = 0; i < count; ++i) y[i] += Parameter<float>(launch, 1) * x[i];
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
