// SPDX-License-Identifier: Apache-2.0
//
// Declarations of the functions behind the entries, made from entry_list.h.

#ifndef CUGUEST_LIB_SIM_API_H_
#define CUGUEST_LIB_SIM_API_H_

#include <cuda.h>

#include "lib/sim/entry_list.h"

namespace cuguest_sim {

#define CUGUEST_SIM_DECLARE(Base, version, suffix, Function, floor, parameters, arguments) \
  CUresult Function parameters;
#define CUGUEST_SIM_DECLARE_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, \
                                 floor, parameters, arguments)                               \
  CUresult Function parameters;
CUGUEST_SIM_ENTRIES(CUGUEST_SIM_DECLARE, CUGUEST_SIM_DECLARE_TWIN)
#undef CUGUEST_SIM_DECLARE
#undef CUGUEST_SIM_DECLARE_TWIN

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_API_H_
