// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUDASIM_CUBLAS_DENSE_H_
#define CUDASIM_CUBLAS_DENSE_H_

#include <cublas_api.h>

#include "cublas/handle.h"
#include "library/dense.h"

namespace cudasim::cublas {

using cudasim::library::CopyAs;
using cudasim::library::Dense;
using cudasim::library::Form;
using cudasim::library::IsStride;
using cudasim::library::ScaleBy;

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

}  // namespace cudasim::cublas

#endif  // CUDASIM_CUBLAS_DENSE_H_
