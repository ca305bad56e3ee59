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
using cuguest_sim_library::ScaleBy;

inline bool IsOperation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

inline bool IsSide(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
}

// Which triangle a matrix is.
inline bool IsTriangle(cublasFillMode_t fill) {
  return fill == CUBLAS_FILL_MODE_LOWER || fill == CUBLAS_FILL_MODE_UPPER;
}

inline bool IsDiagonal(cublasDiagType_t diagonal) {
  return diagonal == CUBLAS_DIAG_NON_UNIT || diagonal == CUBLAS_DIAG_UNIT;
}

inline Form ToForm(cublasOperation_t operation) {
  constexpr Form kForms[] = {Form::kPlain, Form::kTransposed, Form::kAdjoint};
  return kForms[operation];
}

}  // namespace cuguest_sim_cublas

#endif  // CUGUEST_LIB_SIM_CUBLAS_DENSE_H_
