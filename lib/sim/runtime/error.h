// SPDX-License-Identifier: Apache-2.0
//
// Names and texts of the runtime's codes.

#ifndef CUGUEST_LIB_SIM_RUNTIME_ERROR_H_
#define CUGUEST_LIB_SIM_RUNTIME_ERROR_H_

#include <cuda_runtime_api.h>

namespace cuguest_sim_runtime {

struct ErrorRow {
  cudaError_t code;
  const char* name;
  const char* text;
};

// nullptr for a number that the runtime does not have.
const ErrorRow* FindError(cudaError_t code);

}  // namespace cuguest_sim_runtime

#endif  // CUGUEST_LIB_SIM_RUNTIME_ERROR_H_
