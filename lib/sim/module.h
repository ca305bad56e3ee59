// SPDX-License-Identifier: Apache-2.0
//
// Modules and their functions.

#ifndef CUGUEST_LIB_SIM_MODULE_H_
#define CUGUEST_LIB_SIM_MODULE_H_

#include <cuda.h>

#include <cstddef>
#include <memory>

#include "lib/sim/context.h"
#include "lib/sim/ptx.h"

namespace cuguest_sim {

struct Function {
  Life life;  // of the module's context
  std::shared_ptr<const PtxEntry> entry;
};

// INVALID_HANDLE for null, or once the function's module or context is gone.
// Panics for a value that never was a function.
CUresult FindFunction(CUfunction handle, Function* function);

size_t CountModules();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_MODULE_H_
