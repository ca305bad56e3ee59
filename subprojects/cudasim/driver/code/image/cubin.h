// SPDX-License-Identifier: Apache-2.0
//
// The kernels of machine code, with their parameters and traits; and its variables.

#ifndef CUGUEST_LIB_SIM_CUBIN_H_
#define CUGUEST_LIB_SIM_CUBIN_H_

#include <cuda.h>

#include <string_view>

#include "lib/sim/ptx.h"

namespace cuguest_sim {

// The simulated devices are of compute capability 9.0.
inline constexpr int kArchitecture = 90;

// Errors: INVALID_IMAGE      no ELF file for a GPU, or one that refers to what is outside
//         NO_BINARY_FOR_GPU  for another architecture than that (90 for sm_90)
CUresult ReadCubin(std::string_view bytes, int architecture, Image* image);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_CUBIN_H_
