// SPDX-License-Identifier: Apache-2.0
//
// What machine code says of a kernel beside its parameters.

#ifndef CUGUEST_LIB_SIM_CUBIN_TRAITS_H_
#define CUGUEST_LIB_SIM_CUBIN_TRAITS_H_

#include <cstddef>
#include <string>

#include "lib/sim/elf.h"
#include "lib/sim/function_attribute.h"

namespace cuguest_sim {

// `symbol` is the kernel's place in elf.symbols.
FunctionTraits ReadCubinTraits(const Elf& elf, size_t symbol);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_CUBIN_TRAITS_H_
