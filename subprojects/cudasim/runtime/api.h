// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations of the functions behind the entries, made from entry_list.h, and of the few
// that return no cudaError_t.

#ifndef CUDASIM_RUNTIME_API_H_
#define CUDASIM_RUNTIME_API_H_

#include <cuda_runtime_api.h>

#include "runtime/entry_list.h"
#include "runtime/execution.h"

namespace cudasim::runtime {

#define CUDASIM_RUNTIME_DECLARE(Name, Function, floor, parameters, arguments) \
  cudaError_t Function parameters;
#define CUDASIM_RUNTIME_DECLARE_TWIN(Name, twin, Function, floor, parameters, arguments) \
  cudaError_t Function parameters;
CUDASIM_RUNTIME_ENTRIES(CUDASIM_RUNTIME_DECLARE, CUDASIM_RUNTIME_DECLARE_TWIN)
#undef CUDASIM_RUNTIME_DECLARE
#undef CUDASIM_RUNTIME_DECLARE_TWIN

const char* GetErrorName(cudaError_t code);
const char* GetErrorString(cudaError_t code);

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_API_H_
