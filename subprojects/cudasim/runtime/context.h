// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What a runtime does to contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// As measured on an H200, driver 580.159.04, with the shared and the static runtime of
// CUDA 13.0 alike:
//
// | current           | a call that needs a context                                     |
// |-------------------|-----------------------------------------------------------------|
// | nothing           | the primary of the first valid device (not of the one chosen by |
// |                   | cudaSetDevice) is retained, and becomes current                 |
// | a user context    | works in it                                                     |
// | a dead one        | cudaErrorDeviceUninitialized                                    |
// | a primary         | works in it; the runtime retains it, too, unless it has         |
// | a dead primary    | it is retained anew: the same handle, another incarnation       |
//
// The runtime holds one reference per device, for the whole process, whatever threads do.
// It gives it back in cudaDeviceReset, which resets the primary, and only if that is
// current. Before it retains a primary that died below it, it gives back the old
// reference.

#ifndef CUDASIM_RUNTIME_CONTEXT_H_
#define CUDASIM_RUNTIME_CONTEXT_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace cudasim::runtime {

// What is current on this thread.
struct Current {
  CUcontext context = nullptr;  // null: nothing, and the rest says nothing
  CUdevice device = 0;
  bool is_primary = false;
  bool is_alive = false;
};
cudaError_t GetCurrent(Current* current);

// Whether it is a living green context.
bool IsGreen(CUcontext context);

// Makes sure that a living context is current, and of what it is: see the Note.
cudaError_t BindContext();

// The device's primary, held by the runtime and alive. `context` may be null.
cudaError_t HoldPrimary(int device, CUcontext* context);

// Ends the primary's incarnation and gives back the runtime's reference.
cudaError_t ResetPrimary(int device);

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_CONTEXT_H_
