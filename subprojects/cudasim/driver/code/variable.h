// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the variables of a module are.

#ifndef CUDASIM_DRIVER_CODE_VARIABLE_H_
#define CUDASIM_DRIVER_CODE_VARIABLE_H_

#include <cuda.h>

#include <map>
#include <string>
#include <vector>

#include "driver/code/image/ptx_variable.h"
#include "driver/context/context.h"

namespace cudasim::driver {

struct PlacedVariable {
  CUdeviceptr address = 0;
  size_t size = 0;
};

// By name.
using PlacedVariables = std::map<std::string, PlacedVariable, std::less<>>;

// Room for the variables of a module in a context, with their initial values: each by
// itself, but the constants side by side (measured on an H100, driver 580.159.04). What
// is in `managed`, a library's, is not placed again. All or nothing.
CUresult PlaceVariables(const std::vector<Variable>& variables, const PlacedVariables& managed,
                        const Incarnation& incarnation, PlacedVariables* placed);

// The managed variables of a library, which are in no context.
CUresult PlaceManaged(const std::vector<Variable>& variables, PlacedVariables* placed);

// Gives the room back, but for what is in `managed`.
void RemoveVariables(const PlacedVariables& placed, const PlacedVariables& managed);

// Bytes of the constants, side by side.
size_t SizeOfConstants(const std::vector<Variable>& variables);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_VARIABLE_H_
