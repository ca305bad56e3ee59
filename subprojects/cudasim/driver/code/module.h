// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules and their functions.

#ifndef CUDASIM_DRIVER_CODE_MODULE_H_
#define CUDASIM_DRIVER_CODE_MODULE_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "driver/code/function_attribute.h"
#include "driver/code/image/ptx.h"
#include "driver/code/variable.h"
#include "driver/context/context.h"
#include "driver/context/device.h"

namespace cudasim::driver {

struct Function {
  Incarnation incarnation;  // of the module's context
  CUmodule module = nullptr;
  std::shared_ptr<const PtxEntry> entry;
  std::shared_ptr<FunctionSettings> settings;
};

// A kernel's, by device.
using KernelSettings = std::array<std::shared_ptr<FunctionSettings>, kMaxDevices>;

// What the modules of one library share. A module of its own has none of it.
struct LibraryParts {
  CUlibrary library = nullptr;
  std::shared_ptr<const PlacedVariables> managed = std::make_shared<PlacedVariables>();
  std::map<std::string, std::shared_ptr<KernelSettings>, std::less<>> settings;
};

// INVALID_HANDLE for null, or once the function's module or context is gone.
// Panics for a value that never was a function.
CUresult FindFunction(CUfunction handle, Function* function);

// A module of `image` in the context. One of a library is unloaded with that only.
CUresult LoadModule(const Image& image, const LibraryParts& parts, const Incarnation& incarnation,
                    CUmodule* handle);
void UnloadModule(CUmodule handle);

// INVALID_HANDLE for null, or once the module or its context is gone. Panics for a value
// that never was a module.
CUresult FindVariablesOf(CUmodule handle, std::shared_ptr<const PlacedVariables>* variables);

// `size` may be null. INVALID_VALUE past the last.
CUresult GetParameter(const PtxEntry& entry, size_t index, size_t* offset, size_t* size);

// With those of libraries.
size_t CountModules();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_MODULE_H_
