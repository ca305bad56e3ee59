// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of machine code, with their parameters and traits; and its variables.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_CUBIN_H_
#define CUDASIM_DRIVER_CODE_IMAGE_CUBIN_H_

#include <cuda.h>

#include <string_view>

#include "cudaimage/cubin.h"
#include "driver/code/image/ptx.h"

namespace cudasim::driver {

// The simulated devices are of compute capability 9.0.
inline constexpr int kArchitecture = 90;

// The tables of machine code; false unless it is an ELF file for a GPU and all that it refers to
// lies inside.
bool ReadCubinTables(std::string_view bytes, cudaimage::Cubin* cubin);

// Errors: INVALID_IMAGE      no ELF file for a GPU, or one that refers to what is outside
//         NO_BINARY_FOR_GPU  for another architecture than that (90 for sm_90)
CUresult ReadCubin(std::string_view bytes, int architecture, Image* image);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_CUBIN_H_
