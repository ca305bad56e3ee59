// SPDX-License-Identifier: Apache-2.0
//
// The variables of machine code, and their initial values.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_CUBIN_VARIABLE_H_
#define CUDASIM_DRIVER_CODE_IMAGE_CUBIN_VARIABLE_H_

#include <vector>

#include "driver/code/image/elf.h"
#include "driver/code/image/ptx_variable.h"

namespace cudasim::driver {

// Global, constant and managed ones, in the order of their symbols. Addresses of others in
// their values are not read: those bytes are zeros.
std::vector<Variable> ReadCubinVariables(const Elf& elf);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_CUBIN_VARIABLE_H_
