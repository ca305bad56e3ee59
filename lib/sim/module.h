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
  CUmodule module = nullptr;
  std::shared_ptr<const PtxEntry> entry;
};

// INVALID_HANDLE for null, or once the function's module or context is gone.
// Panics for a value that never was a function.
CUresult FindFunction(CUfunction handle, Function* function);

// A module of `image` in the context. One of a library is unloaded with that only.
CUresult LoadModule(const Image& image, CUlibrary library, const Life& life, CUmodule* handle);
void UnloadModule(CUmodule handle);

// The same for every function and kernel. INVALID_VALUE for null and for an attribute
// that there is not.
CUresult GetFunctionAttribute(CUfunction_attribute attribute, int* value);

// `size` may be null. INVALID_VALUE past the last.
CUresult GetParameter(const PtxEntry& entry, size_t index, size_t* offset, size_t* size);

// With those of libraries.
size_t CountModules();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_MODULE_H_
