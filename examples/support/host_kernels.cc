// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/example.h"

#include <cuda.h>

#include <cstddef>
#include <cstring>

#include "cudasim/sim.h"

namespace support {
namespace {

using cudasim::Sim;
using cudasim::SimLaunch;

template <typename T>
T Parameter(const SimLaunch& launch, std::size_t index) {
  return *static_cast<const T*>(launch.parameters[index]);
}

// Threads of the launch, up to the kernel's bound.
unsigned Count(const SimLaunch& launch) {
  const unsigned threads = launch.grid[0] * launch.block[0];
  const unsigned bound = Parameter<unsigned>(launch, 0);
  return threads < bound ? threads : bound;
}

// Of compile_and_link_ptx.cc.
CUresult Answer(const SimLaunch& launch) {
  *Parameter<int*>(launch, 0) = 42;
  return CUDA_SUCCESS;
}

// Of three_jobs.cc.
CUresult Scale(const SimLaunch& launch) {
  const auto factor = Parameter<float>(launch, 1);
  auto* values = Parameter<float*>(launch, 2);
  for (std::size_t i = 0; i < Parameter<std::size_t>(launch, 0); ++i) values[i] *= factor;
  return CUDA_SUCCESS;
}

CUresult Saxpy(const SimLaunch& launch) {
  const auto a = Parameter<float>(launch, 1);
  const auto* x = Parameter<const float*>(launch, 2);
  auto* y = Parameter<float*>(launch, 3);
  for (unsigned i = 0; i < Count(launch); ++i) y[i] = a * x[i] + y[i];
  return CUDA_SUCCESS;
}

CUresult VectorAdd(const SimLaunch& launch) {
  const auto* x = Parameter<const float*>(launch, 1);
  const auto* y = Parameter<const float*>(launch, 2);
  auto* sum = Parameter<float*>(launch, 3);
  for (unsigned i = 0; i < Count(launch); ++i) sum[i] = x[i] + y[i];
  return CUDA_SUCCESS;
}

CUresult Triple(const SimLaunch& launch) {
  auto* values = Parameter<float*>(launch, 0);
  for (unsigned i = 0; i < Parameter<unsigned>(launch, 1); ++i) values[i] *= 3.0F;
  return CUDA_SUCCESS;
}

// Of generate_code_at_run_time.cc, as its server lays out their parameters.
CUresult Stretch(const SimLaunch& launch) {
  const auto* x = Parameter<const float*>(launch, 1);
  auto* results = Parameter<float*>(launch, 2);
  for (unsigned i = 0; i < Count(launch); ++i) results[i] = Parameter<float>(launch, 3) * x[i];
  return CUDA_SUCCESS;
}

CUresult Weigh(const SimLaunch& launch) {
  const auto* x = Parameter<const float*>(launch, 1);
  auto* results = Parameter<float*>(launch, 2);
  const double sum = Parameter<double>(launch, 4) + Parameter<double>(launch, 5);
  const double factor = sum * Parameter<int>(launch, 3);
  for (unsigned i = 0; i < Count(launch); ++i) results[i] = static_cast<float>(factor * x[i]);
  return CUDA_SUCCESS;
}

// The kernels of kernels/layout.cu: every parameter but the last one is written to where that
// points.
CUresult WriteParameters(const SimLaunch& launch) {
  const std::size_t last = launch.parameter_count - 1;
  auto* to = Parameter<unsigned char*>(launch, last);
  for (std::size_t i = 0; i < last; ++i) {
    std::memcpy(to, launch.parameters[i], launch.parameter_sizes[i]);
    to += launch.parameter_sizes[i];
  }
  return CUDA_SUCCESS;
}

CUresult CountUp(const SimLaunch& launch) {
  const auto value = Parameter<unsigned>(launch, 1);
  auto* counts = Parameter<unsigned*>(launch, 2);
  for (unsigned i = 0; i < Count(launch); ++i) counts[i] += value;
  return CUDA_SUCCESS;
}

CUresult GetMark(const SimLaunch& launch) {
  void* mark = nullptr;
  if (!Sim::FindVariable("launch_mark", &mark)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  *Parameter<unsigned*>(launch, 0) = *static_cast<const unsigned*>(mark);
  return CUDA_SUCCESS;
}

CUresult MyKernel(const SimLaunch& launch) {
  auto* data = Parameter<float*>(launch, 0);
  for (std::size_t i = 0; i < Parameter<std::size_t>(launch, 1); ++i) data[i] *= 2;
  return CUDA_SUCCESS;
}

}  // namespace

void RegisterHostKernels() {
  if (!Sim::IsActive()) return;
  Sim::RegisterKernel("answer", &Answer);
  Sim::RegisterKernel("count_up", &CountUp);
  Sim::RegisterKernel("get_mark", &GetMark);
  Sim::RegisterKernel("layout_mixed", &WriteParameters);
  Sim::RegisterKernel("layout_struct", &WriteParameters);
  Sim::RegisterKernel("my_kernel", &MyKernel);
  Sim::RegisterKernel("saxpy", &Saxpy);
  Sim::RegisterKernel("scale", &Scale);
  Sim::RegisterKernel("stretch", &Stretch);
  Sim::RegisterKernel("triple", &Triple);
  Sim::RegisterKernel("vector_add", &VectorAdd);
  Sim::RegisterKernel("weigh", &Weigh);
}

}  // namespace support
