// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries and kernels: code that belongs to no context. At its first use in a context
// a library becomes a module there, which goes with the context; the library stays.

#ifndef CUDASIM_DRIVER_CODE_LIBRARY_H_
#define CUDASIM_DRIVER_CODE_LIBRARY_H_

#include <cuda.h>

#include <cstddef>
#include <memory>

#include "driver/code/variable.h"
#include "driver/context/context.h"

namespace cudasim::driver {

// Whether the value, which may be anything, is a kernel.
bool IsKernel(CUfunction handle);

// The function of a kernel in a context, which loads its library there.
CUresult FunctionOfKernel(CUkernel kernel, const Incarnation& incarnation, CUfunction* function);

// The managed variables, or what is wrong with the library's image. INVALID_HANDLE for null;
// panics once it was unloaded.
CUresult FindManagedOf(CUlibrary library, std::shared_ptr<const PlacedVariables>* variables);

size_t CountLibraries();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_LIBRARY_H_
