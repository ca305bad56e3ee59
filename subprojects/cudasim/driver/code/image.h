// SPDX-License-Identifier: Apache-2.0
//
// Device code as a module or a library is given it, in each of its forms.

#ifndef CUGUEST_LIB_SIM_IMAGE_H_
#define CUGUEST_LIB_SIM_IMAGE_H_

#include <cuda.h>

#include "lib/sim/jit.h"
#include "lib/sim/ptx.h"

namespace cuguest_sim {

// Reads PTX text with a NUL behind it, a cubin, or a fatbin container, whose machine code
// for the device goes before its PTX; PTX is compiled.
//
// Errors, in the outcome: INVALID_IMAGE            none of them, or it refers to what is
//                                                  outside
//                         NO_BINARY_FOR_GPU        nothing in it is for the device
//                         INVALID_PTX, UNSUPPORTED_PTX_VERSION, JIT_COMPILATION_DISABLED
//                                                  see Compile
JitOutcome ReadImage(const void* bytes, const JitRequest& request, Image* image);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_IMAGE_H_
