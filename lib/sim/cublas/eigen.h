// SPDX-License-Identifier: Apache-2.0
//
// Operands as Eigen sees them.

#ifndef CUGUEST_LIB_SIM_CUBLAS_EIGEN_H_
#define CUGUEST_LIB_SIM_CUBLAS_EIGEN_H_

#include <cublas_api.h>

#include <Eigen/Core>

#include "lib/sim/cublas/operand.h"

namespace cuguest_sim_cublas {

template <typename T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

template <typename T>
Eigen::Map<Dense<T>, 0, Eigen::OuterStride<>> Map(const Matrix<T>& matrix) {
  return {matrix.data, matrix.rows, matrix.columns, Eigen::OuterStride<>(matrix.stride)};
}
template <typename T>
Eigen::Map<const Dense<T>, 0, Eigen::OuterStride<>> Map(const Matrix<const T>& matrix) {
  return {matrix.data, matrix.rows, matrix.columns, Eigen::OuterStride<>(matrix.stride)};
}

// A copy of it, transposed as the operation says.
template <typename T>
Dense<T> Apply(cublasOperation_t operation, const Matrix<const T>& matrix) {
  if (operation == CUBLAS_OP_N) return Map(matrix);
  if (operation == CUBLAS_OP_T) return Map(matrix).transpose();
  return Map(matrix).adjoint();
}

// A beta of 0 does not read what was there.
template <typename T, typename Destination>
void Scale(T beta, Destination&& destination) {
  if (beta == T{0}) {
    destination.setZero();
  } else if (beta != T{1}) {
    destination *= beta;
  }
}

inline bool IsOperation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

// Whether rows of that number fit into a stride.
inline bool IsStride(int stride, int rows) { return stride >= std::max(1, rows); }

}  // namespace cuguest_sim_cublas

#endif  // CUGUEST_LIB_SIM_CUBLAS_EIGEN_H_
