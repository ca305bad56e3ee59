// SPDX-License-Identifier: Apache-2.0
//
// Device code as a module or a library is given it, in each of its forms.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_H_
#define CUDASIM_DRIVER_CODE_IMAGE_H_

#include <cuda.h>

#include "driver/code/image/ptx.h"
#include "driver/code/jit.h"

namespace cudasim::driver {

// Reads PTX text with a NUL behind it, a cubin, or a fatbin container, whose machine code
// for the device goes before its PTX; PTX is compiled.
//
// Errors, in the outcome: INVALID_IMAGE            none of them, or it refers to what is
//                                                  outside
//                         NO_BINARY_FOR_GPU        nothing in it is for the device
//                         INVALID_PTX, UNSUPPORTED_PTX_VERSION, JIT_COMPILATION_DISABLED
//                                                  see Compile
JitOutcome ReadImage(const void* bytes, const JitRequest& request, Image* image);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_H_
