// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels: the host functions that run in their place, and the one that this thread runs.

#ifndef CUDASIM_DRIVER_LAUNCH_LAUNCH_H_
#define CUDASIM_DRIVER_LAUNCH_LAUNCH_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "driver/code/module.h"
#include "driver/context/context.h"
#include "driver/graph/graph.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

// Runs `kernel` for every launch of a function of that name.
void RegisterKernel(const char* name, cudasim::SimKernel kernel);

// See Sim in cudasim/sim.h.
void SkipUnknownKernels(bool skip);
std::uint64_t SkippedLaunchesOf(const char* name);
// By the name of the kernel.
std::map<std::string, std::uint64_t> SkippedLaunches();

// The function to launch on the stream; a kernel becomes one in the stream's context.
// INVALID_HANDLE for null, or one of another context.
CUresult FindInContextOf(const Stream& stream, CUfunction* handle, Function* function);

// The work of a graph's kernel node: of the function, in its own context, or else of the kernel,
// in the context that is given or current. Panics for a function where no context is current.
CUresult MakeKernelWork(const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                        const std::vector<CUlaunchAttribute>& attributes, Work* work);

struct RunningKernel {
  Incarnation incarnation;
  CUmodule module = nullptr;
};

// KernelScope
//
// While a kernel runs on this thread. A kernel may, through what it calls, run another.
class KernelScope {
 public:
  explicit KernelScope(const RunningKernel& kernel);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  const RunningKernel* const outer_;
};

// nullptr outside of a kernel.
const RunningKernel* ThisKernel();

// See Sim in cudasim/sim.h.
bool FindVariableOfKernel(const char* name, void** address, size_t* size);
std::uint64_t ContextIdOfKernel();

// In a kernel: whether its device may read and write all of the range. Memory of a pool and mapped
// memory of another device are treated as accessible: that is not followed.
bool KernelMayAccess(const void* address, size_t bytes);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_LAUNCH_LAUNCH_H_
