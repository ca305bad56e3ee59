// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices: gemm in all its forms.

#include <Eigen/Core>
#include <cstdio>

#include "cublas/dense.h"
#include "cublas/rows.h"
#include "runtime/not_modelled.h"

namespace cudasim::cublas {
namespace {

struct Shape {
  cublasOperation_t of_a;
  cublasOperation_t of_b;
  int m;
  int n;
  int k;
  int lda;
  int ldb;
  int ldc;

  int RowsOfA() const { return of_a == CUBLAS_OP_N ? m : k; }
  int RowsOfB() const { return of_b == CUBLAS_OP_N ? k : n; }
  // The number of the first parameter of gemm that is not valid; 0 if all are.
  int FirstInvalid() const {
    if (!IsOperation(of_a)) return 1;
    if (!IsOperation(of_b)) return 2;
    if (m < 0) return 3;
    if (n < 0) return 4;
    if (k < 0) return 5;
    if (!IsStride(lda, RowsOfA())) return 8;
    if (!IsStride(ldb, RowsOfB())) return 10;
    return IsStride(ldc, m) ? 0 : 13;
  }
  bool IsNothing() const { return m == 0 || n == 0; }
  // Of few long sums: agrees with what was measured of 16, 256, 1024 and 4096 cubed and of 64
  // by 64 by 65536.
  bool NeedsWorkspace() const { return std::int64_t{m} * n <= 65536 && k >= 256; }
  template <typename T>
  Matrix<const T> A(const T* a) const {
    return {a, RowsOfA(), of_a == CUBLAS_OP_N ? k : m, lda};
  }
  template <typename T>
  Matrix<const T> B(const T* b) const {
    return {b, RowsOfB(), of_b == CUBLAS_OP_N ? n : k, ldb};
  }
  template <typename T>
  Matrix<T> C(T* c) const {
    return {c, m, n, ldc};
  }
};

template <typename T>
struct Factors {
  Scalar<T> alpha;
  Scalar<T> beta;

  bool IsThere() const { return AreThere(alpha, beta); }
};

template <typename T>
CUresult Multiply(const Shape& shape, const Factors<T>& factors, const T* a, const T* b, T* c) {
  const auto matrix_a = shape.A(a);
  const auto matrix_b = shape.B(b);
  const auto matrix_c = shape.C(c);
  if (!AreThere(matrix_a, matrix_b, matrix_c)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  using All = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  Dense<T> left(shape.m, shape.k), right(shape.k, shape.n);
  CopyAs(ToForm(shape.of_a), matrix_a, left.view());
  CopyAs(ToForm(shape.of_b), matrix_b, right.view());
  for (T& value : left.values()) value *= factors.alpha.Get();
  ScaleBy(factors.beta.Get(), matrix_c);
  Eigen::Map<All, 0, Eigen::OuterStride<>> result(c, shape.m, shape.n,
                                                  Eigen::OuterStride<>(shape.ldc));
  result.noalias() += Eigen::Map<const All>(left.values().data(), shape.m, shape.k) *
                      Eigen::Map<const All>(right.values().data(), shape.k, shape.n);
  return CUDA_SUCCESS;
}

// One product behind the other, at equal steps.
template <typename T>
struct StridedOperation {
  Shape shape;
  Factors<T> factors;
  const T* a;
  const T* b;
  T* c;
  long long step_a;
  long long step_b;
  long long step_c;
  int count;

  CUresult Run() const {
    if (!factors.IsThere()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; i < count && code == CUDA_SUCCESS; ++i) {
      code = Multiply(shape, factors, a + i * step_a, b + i * step_b, c + i * step_c);
    }
    return code;
  }
};

// The same, by arrays of pointers in device memory.
template <typename T>
struct BatchedOperation {
  Shape shape;
  Factors<T> factors;
  const T* const* a;
  const T* const* b;
  T* const* c;
  int count;

  bool AreArrays() const {
    const auto size = static_cast<std::uint64_t>(count);
    return IsArray(a, size) && IsArray(b, size) && IsArray(c, size);
  }
  CUresult Run() const {
    if (!factors.IsThere() || !AreArrays()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; i < count && code == CUDA_SUCCESS; ++i) {
      code = Multiply(shape, factors, a[i], b[i], c[i]);
    }
    return code;
  }
};

template <typename T>
Factors<Host<T>> ToFactors(const Handle& handle, const T* alpha, const T* beta) {
  return {ToScalar(handle, alpha), ToScalar(handle, beta)};
}

template <typename T>
constexpr const char* kName = nullptr;
template <>
constexpr const char* kName<float> = "SGEMM ";
template <>
constexpr const char* kName<double> = "DGEMM ";
template <>
constexpr const char* kName<cuComplex> = "CGEMM ";
template <>
constexpr const char* kName<cuDoubleComplex> = "ZGEMM ";

template <typename T>
Status CheckShape(const Shape& shape) {
  const int invalid = shape.FirstInvalid();
  if (invalid == 0) return CUBLAS_STATUS_SUCCESS;
  std::printf(" ** On entry to %s parameter number %d had an illegal value\n", kName<T>, invalid);
  return CUBLAS_STATUS_INVALID_VALUE;
}

// By the code of the handle's context.
template <typename Operation>
Status SubmitProduct(const Handle& handle, const Operation& operation) {
  if (operation.shape.NeedsWorkspace() && operation.count == 1) TakeWorkspace(handle);
  return Launched(cudasim::library::Submit(handle.code.here, handle.stream, operation));
}

// A, B and C of every kind are `pointers`.
template <typename T, typename... Pointers>
Status Check(cublasHandle_t handle, const Shape& shape, Handle* found, bool* is_nothing,
             const T* alpha, const T* beta, Pointers... pointers) {
  Status status = FindToCompute(handle, found);
  if (status == CUBLAS_STATUS_SUCCESS) status = CheckShape<T>(shape);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  *is_nothing = shape.IsNothing();
  const bool lacks = alpha == nullptr || beta == nullptr || (... || (pointers == nullptr));
  return lacks && !*is_nothing ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

template <typename T>
Status GemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                          int m, int n, int k, const T* alpha, const T* a, int lda,
                          long long step_a, const T* b, int ldb, long long step_b, const T* beta,
                          T* c, int ldc, long long step_c, int count) {
  const Shape shape = {of_a, of_b, m, n, k, lda, ldb, ldc};
  Handle found;
  bool is_nothing = false;
  const Status status = Check(handle, shape, &found, &is_nothing, alpha, beta, a, b, c);
  if (status != CUBLAS_STATUS_SUCCESS || is_nothing) return status;
  if (count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return SubmitProduct(
      found, StridedOperation<Host<T>>{shape, ToFactors(found, alpha, beta), ToHost(a), ToHost(b),
                                       ToHost(c), step_a, step_b, step_c, count});
}

template <typename T>
Status Gemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
            int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,
            int ldc) {
  return GemmStridedBatched(handle, of_a, of_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc,
                            0, 1);
}

template <typename T>
Status GemmBatched(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                   int n, int k, const T* alpha, const T* const a[], int lda, const T* const b[],
                   int ldb, const T* beta, T* const c[], int ldc, int count) {
  const Shape shape = {of_a, of_b, m, n, k, lda, ldb, ldc};
  Handle found;
  bool is_nothing = false;
  const Status status = Check(handle, shape, &found, &is_nothing, alpha, beta, a, b, c);
  if (status != CUBLAS_STATUS_SUCCESS || is_nothing) return status;
  if (count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return SubmitProduct(found,
                       BatchedOperation<Host<T>>{shape, ToFactors(found, alpha, beta),
                                                 reinterpret_cast<const Host<T>* const*>(a),
                                                 reinterpret_cast<const Host<T>* const*>(b),
                                                 reinterpret_cast<Host<T>* const*>(c), count});
}

bool ComputesIn(cublasComputeType_t compute, cudaDataType type) {
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  const bool computes_double =
      compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  return is_double == computes_double && compute != CUBLAS_COMPUTE_16F &&
         compute != CUBLAS_COMPUTE_32I;
}

// Of one type throughout, and at its own precision.
Status GemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
              int k, const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
              cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
              cublasComputeType_t compute, cublasGemmAlgo_t) {
  const auto multiply = [&](auto type) {
    using T = decltype(type);
    return Gemm(handle, of_a, of_b, m, n, k, static_cast<const T*>(alpha), static_cast<const T*>(a),
                lda, static_cast<const T*>(b), ldb, static_cast<const T*>(beta), static_cast<T*>(c),
                ldc);
  };
  if (type_a == type_b && type_b == type_c && ComputesIn(compute, type_c)) {
    if (type_c == CUDA_R_32F) return multiply(float{});
    if (type_c == CUDA_R_64F) return multiply(double{});
    if (type_c == CUDA_C_32F) return multiply(cuComplex{});
    if (type_c == CUDA_C_64F) return multiply(cuDoubleComplex{});
  }
  // Not modelled: cuBLAS's products of mixed types, of others than float and double, or at another
  // precision.
  return static_cast<Status>(cudasim::runtime::NotModelled("cublasGemmEx"));
}

}  // namespace

CUDASIM_CUBLAS_PRODUCT_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cublas
