// SPDX-License-Identifier: Apache-2.0
//
// Declarations of the functions behind the entries, made from entry_list.h, and of the few
// that return no cudaError_t.

#ifndef CUGUEST_LIB_SIM_RUNTIME_API_H_
#define CUGUEST_LIB_SIM_RUNTIME_API_H_

#include <cuda_runtime_api.h>

#include "lib/sim/runtime/entry_list.h"

namespace cuguest_sim_runtime {

#define CUGUEST_SIM_RUNTIME_DECLARE(Name, Function, floor, parameters, arguments) \
  cudaError_t Function parameters;
#define CUGUEST_SIM_RUNTIME_DECLARE_TWIN(Name, twin, Function, floor, parameters, arguments) \
  cudaError_t Function parameters;
CUGUEST_SIM_RUNTIME_ENTRIES(CUGUEST_SIM_RUNTIME_DECLARE, CUGUEST_SIM_RUNTIME_DECLARE_TWIN)
#undef CUGUEST_SIM_RUNTIME_DECLARE
#undef CUGUEST_SIM_RUNTIME_DECLARE_TWIN

const char* GetErrorName(cudaError_t code);
const char* GetErrorString(cudaError_t code);

}  // namespace cuguest_sim_runtime

#endif  // CUGUEST_LIB_SIM_RUNTIME_API_H_
