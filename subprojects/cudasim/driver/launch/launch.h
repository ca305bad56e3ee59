// SPDX-License-Identifier: Apache-2.0
//
// Kernels: the host functions that stand in for them.

#ifndef CUGUEST_LIB_SIM_LAUNCH_H_
#define CUGUEST_LIB_SIM_LAUNCH_H_

#include "cuguest/testing/sim.h"
#include "lib/sim/module.h"
#include "lib/sim/stream.h"

namespace cuguest_sim {

// Runs `kernel` for every launch of a function of that name.
void RegisterKernel(const char* name, cuguest::testing::SimKernel kernel);

// The function to launch on the stream; a kernel becomes one in the stream's context.
// INVALID_HANDLE for null, or one of another context.
CUresult FindInContextOf(const Stream& stream, CUfunction* handle, Function* function);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_LAUNCH_H_
