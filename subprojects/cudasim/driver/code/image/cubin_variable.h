// SPDX-License-Identifier: Apache-2.0
//
// The variables of machine code, and their initial values.

#ifndef CUGUEST_LIB_SIM_CUBIN_VARIABLE_H_
#define CUGUEST_LIB_SIM_CUBIN_VARIABLE_H_

#include <vector>

#include "lib/sim/elf.h"
#include "lib/sim/ptx_variable.h"

namespace cuguest_sim {

// Global, constant and managed ones, in the order of their symbols. Addresses of others in
// their values are not read: those bytes are zeros.
std::vector<Variable> ReadCubinVariables(const Elf& elf);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_CUBIN_VARIABLE_H_
