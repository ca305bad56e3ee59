// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices and vectors, and triangular systems.

#include "cublas/dense.h"
#include "cublas/rows.h"

namespace cudasim::cublas {
namespace {

template <typename T>
struct GemvOperation {
  cublasOperation_t operation;
  Scalar<T> alpha;
  Scalar<T> beta;
  Matrix<const T> a;
  Vector<const T> x;
  Vector<T> y;

  CUresult Run() const {
    if (!AreThere(alpha, beta, a, x, y)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const T scale = beta.Get();
    const T factor = alpha.Get();
    for (int i = 0; i < y.count; ++i) y[i] = Scaled(scale, y[i]);
    for (int column = 0; column < a.columns; ++column) {
      for (int row = 0; row < a.rows; ++row) Add(row, column, factor);
    }
    return CUDA_SUCCESS;
  }
  void Add(int row, int column, T factor) const {
    const T element = a(row, column);
    if (operation == CUBLAS_OP_N) {
      y[row] += factor * element * x[column];
    } else {
      y[column] += factor * (operation == CUBLAS_OP_C ? Conjugate(element) : element) * x[row];
    }
  }
};

// Negative sizes and increments of 0 are no error.
template <typename T>
Status Gemv(cublasHandle_t handle, cublasOperation_t operation, int m, int n, const T* alpha,
            const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (!IsOperation(operation) || !IsStride(lda, m)) return CUBLAS_STATUS_INVALID_VALUE;
  if (m <= 0 || n <= 0) return CUBLAS_STATUS_SUCCESS;
  const bool is_plain = operation == CUBLAS_OP_N;
  return Submit(found, GemvOperation<Host<T>>{operation,
                                              ToScalar(found, alpha),
                                              ToScalar(found, beta),
                                              {ToHost(a), m, n, lda},
                                              {ToHost(x), is_plain ? n : m, incx},
                                              {ToHost(y), is_plain ? m : n, incy}});
}

template <typename T, bool conjugates>
struct GerOperation {
  Scalar<T> alpha;
  Vector<const T> x;
  Vector<const T> y;
  Matrix<T> a;

  CUresult Run() const {
    if (!AreThere(alpha, x, y, a)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const T factor = alpha.Get();
    for (int column = 0; column < a.columns; ++column) {
      const T of_column = factor * (conjugates ? Conjugate(y[column]) : y[column]);
      for (int row = 0; row < a.rows; ++row) a(row, column) += x[row] * of_column;
    }
    return CUDA_SUCCESS;
  }
};

template <bool conjugates, typename T>
Status SubmitGer(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                 const T* y, int incy, T* a, int lda) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const bool is_valid =
      m >= 0 && n >= 0 && IsStride(lda, m) && incx != 0 && incy != 0 && alpha != nullptr;
  if (!is_valid) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return Submit(found, GerOperation<Host<T>, conjugates>{ToScalar(found, alpha),
                                                         {ToHost(x), m, incx},
                                                         {ToHost(y), n, incy},
                                                         {ToHost(a), m, n, lda}});
}

template <typename T>
Status Ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y,
           int incy, T* a, int lda) {
  return SubmitGer<false>(handle, m, n, alpha, x, incx, y, incy, a, lda);
}

template <typename T>
Status Gerc(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y,
            int incy, T* a, int lda) {
  return SubmitGer<true>(handle, m, n, alpha, x, incx, y, incy, a, lda);
}

// X of op(A) X = alpha B, or of X op(A) = alpha B, in the place of B.
template <typename T>
struct TrsmOperation {
  cublasSideMode_t side;
  cublasFillMode_t fill;
  cublasOperation_t operation;
  cublasDiagType_t diagonal;
  Scalar<T> alpha;
  Matrix<const T> a;
  Matrix<T> b;

  CUresult Run() const {
    if (!AreThere(alpha, a, b)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Dense<T> triangle(a.rows, a.columns);
    CopyAs(ToForm(operation), a, triangle.view());
    for (int i = 0; i < a.rows && diagonal == CUBLAS_DIAG_UNIT; ++i) triangle(i, i) = 1;
    ScaleBy(alpha.Get(), b);
    const bool is_lower = (fill == CUBLAS_FILL_MODE_LOWER) == (operation == CUBLAS_OP_N);
    if (side == CUBLAS_SIDE_LEFT) {
      cudasim::library::SolveTriangle(triangle.view(), is_lower, b);
    } else {
      SolveTransposed(triangle, !is_lower);
    }
    return CUDA_SUCCESS;
  }
  void SolveTransposed(const Dense<T>& triangle, bool is_lower) const {
    const Dense<T> transposed(a.columns, a.rows);
    const Dense<T> right(b.columns, b.rows);
    CopyAs(Form::kTransposed, triangle.view(), transposed.view());
    CopyAs(Form::kTransposed, b, right.view());
    cudasim::library::SolveTriangle(transposed.view(), is_lower, right.view());
    CopyAs(Form::kTransposed, right.view(), b);
  }
};

template <typename T>
Status Trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
            cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n, const T* alpha,
            const T* a, int lda, T* b, int ldb) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const int order = side == CUBLAS_SIDE_LEFT ? m : n;
  const bool is_known =
      IsSide(side) && IsTriangle(fill) && IsOperation(operation) && IsDiagonal(diagonal);
  const bool is_valid =
      m >= 0 && n >= 0 && IsStride(lda, order) && IsStride(ldb, m) && alpha != nullptr;
  if (!is_known || !is_valid) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return Submit(found, TrsmOperation<Host<T>>{side,
                                              fill,
                                              operation,
                                              diagonal,
                                              ToScalar(found, alpha),
                                              {ToHost(a), order, order, lda},
                                              {ToHost(b), m, n, ldb}});
}

}  // namespace

CUDASIM_CUBLAS_MATRIX_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cublas
