// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_LIB_SIM_CUBLAS_DENSE_H_
#define CUGUEST_LIB_SIM_CUBLAS_DENSE_H_

#include <cublas_api.h>

#include "lib/sim/cublas/handle.h"
#include "lib/sim/library/dense.h"

namespace cuguest_sim_cublas {

using cuguest_sim_library::CopyAs;
using cuguest_sim_library::Dense;
using cuguest_sim_library::Form;
using cuguest_sim_library::IsStride;

inline bool IsOperation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

inline Form ToForm(cublasOperation_t operation) {
  constexpr Form kForms[] = {Form::kPlain, Form::kTransposed, Form::kAdjoint};
  return kForms[operation];
}

}  // namespace cuguest_sim_cublas

#endif  // CUGUEST_LIB_SIM_CUBLAS_DENSE_H_
