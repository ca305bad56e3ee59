// SPDX-License-Identifier: Apache-2.0
//
// Kernels: the host functions that stand in for them.

#ifndef CUDASIM_DRIVER_LAUNCH_LAUNCH_H_
#define CUDASIM_DRIVER_LAUNCH_LAUNCH_H_

#include "cudasim/sim.h"
#include "driver/code/module.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

// Runs `kernel` for every launch of a function of that name.
void RegisterKernel(const char* name, cudasim::SimKernel kernel);

// The function to launch on the stream; a kernel becomes one in the stream's context.
// INVALID_HANDLE for null, or one of another context.
CUresult FindInContextOf(const Stream& stream, CUfunction* handle, Function* function);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_LAUNCH_LAUNCH_H_
