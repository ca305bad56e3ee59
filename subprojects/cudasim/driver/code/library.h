// SPDX-License-Identifier: Apache-2.0
//
// Libraries and kernels: code that belongs to no context. At its first use in a context
// a library becomes a module there, which goes with the context; the library stays.

#ifndef CUGUEST_LIB_SIM_LIBRARY_H_
#define CUGUEST_LIB_SIM_LIBRARY_H_

#include <cuda.h>

#include <cstddef>
#include <memory>

#include "lib/sim/context.h"
#include "lib/sim/variable.h"

namespace cuguest_sim {

// Whether the value, which may be anything, is a kernel.
bool IsKernel(CUfunction handle);

// The function of a kernel in a context, which loads its library there.
CUresult FunctionOfKernel(CUkernel kernel, const Life& life, CUfunction* function);

// The managed variables, or what is wrong with the library's image. INVALID_HANDLE for null;
// panics once it was unloaded.
CUresult FindManagedOf(CUlibrary library, std::shared_ptr<const PlacedVariables>* variables);

size_t CountLibraries();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_LIBRARY_H_
