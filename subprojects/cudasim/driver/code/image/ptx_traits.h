// SPDX-License-Identifier: Apache-2.0
//
// What PTX says of a function beside its parameters.

#ifndef CUDASIM_DRIVER_CODE_IMAGE_PTX_TRAITS_H_
#define CUDASIM_DRIVER_CODE_IMAGE_PTX_TRAITS_H_

#include <vector>

#include "driver/code/function_attribute.h"
#include "driver/code/image/ptx_variable.h"

namespace cudasim::driver {

// The directives and the body of an entry, from behind its parameters to its last brace.
// `shared`: what the module declares so far, of which an entry has what it names.
void ReadTraits(Tokens* tokens, const std::vector<Variable>& shared, FunctionTraits* traits);

// From behind ".func": its body, or to the ";" of a declaration.
void SkipFunction(Tokens* tokens);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_IMAGE_PTX_TRAITS_H_
