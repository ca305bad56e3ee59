// SPDX-License-Identifier: Apache-2.0
//
// What machine code says of a kernel beside its parameters.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_CUBIN_TRAITS_H_
#define CUDASIM_DRIVER_CODE_IMAGE_CUBIN_TRAITS_H_

#include <cstddef>
#include <string>

#include "driver/code/function_attribute.h"
#include "driver/code/image/elf.h"

namespace cudasim::driver {

// `symbol` is the kernel's place in elf.symbols.
FunctionTraits ReadCubinTraits(const Elf& elf, size_t symbol);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_CUBIN_TRAITS_H_
