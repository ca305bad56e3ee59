// SPDX-License-Identifier: Apache-2.0
//
// What PTX says of a function beside its parameters.

#ifndef CUGUEST_LIB_SIM_PTX_TRAITS_H_
#define CUGUEST_LIB_SIM_PTX_TRAITS_H_

#include <vector>

#include "lib/sim/function_attribute.h"
#include "lib/sim/ptx_variable.h"

namespace cuguest_sim {

// The directives and the body of an entry, from behind its parameters to its last brace.
// `shared`: what the module declares so far, of which an entry has what it names.
void ReadTraits(Tokens* tokens, const std::vector<Variable>& shared, FunctionTraits* traits);

// From behind ".func": its body, or to the ";" of a declaration.
void SkipFunction(Tokens* tokens);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_PTX_TRAITS_H_
