// SPDX-License-Identifier: Apache-2.0
//
// The kernel that this thread runs, and what it sees around it.

#ifndef CUGUEST_LIB_SIM_RUNNING_KERNEL_H_
#define CUGUEST_LIB_SIM_RUNNING_KERNEL_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "lib/sim/context.h"

namespace cuguest_sim {

struct RunningKernel {
  Life life;
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

// See Sim in testing/sim.h.
bool FindVariableOfKernel(const char* name, void** address, size_t* size);
std::uint64_t ContextIdOfKernel();

// In a kernel: whether its device may read and write all of the range. Memory of a pool and
// mapped memory of another device are taken for accessible: that is not followed.
bool KernelMayAccess(const void* address, size_t bytes);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_RUNNING_KERNEL_H_
