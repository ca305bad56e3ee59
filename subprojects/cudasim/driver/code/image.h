// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code as a module or a library is given it, in each of its forms.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_H_
#define CUDASIM_DRIVER_CODE_IMAGE_H_

#include <cuda.h>

#include <string_view>

#include "driver/code/image/ptx.h"
#include "driver/code/jit.h"

namespace cudasim::driver {

// An image that is known by a pointer only: PTX text up to its NUL, a cubin or a fatbin container
// as far as its header says.
std::string_view WholeImage(const void* bytes);

// Reads PTX text with a NUL in it or behind it, a cubin, or a fatbin container, whose machine code
// for the device goes before its PTX; PTX is compiled.
//
// Errors, in the outcome: INVALID_IMAGE            none of them, or it refers to what is
//                                                  outside
//                         NO_BINARY_FOR_GPU        nothing in it is for the device
//                         INVALID_PTX, UNSUPPORTED_PTX_VERSION, JIT_COMPILATION_DISABLED
//                                                  see Compile
JitOutcome ReadImage(std::string_view bytes, const JitRequest& request, Image* image);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_H_
