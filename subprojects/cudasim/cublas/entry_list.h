// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the simulated cuBLAS that returns a status, once: see
// library/exports.h. A row of a type is
//
//   ROW(X, letter, type)
//
// What NVIDIA's exports and is not here (names.inc) is not modelled: see runtime/stubs.cc.

#ifndef CUDASIM_CUBLAS_ENTRY_LIST_H_
#define CUDASIM_CUBLAS_ENTRY_LIST_H_

// clang-format off
#define CUDASIM_CUBLAS_REAL(ROW, X)    ROW(X, S, float) ROW(X, D, double)
#define CUDASIM_CUBLAS_COMPLEX(ROW, X) ROW(X, C, cuComplex) ROW(X, Z, cuDoubleComplex)
#define CUDASIM_CUBLAS_ALL(ROW, X) \
  CUDASIM_CUBLAS_REAL(ROW, X) CUDASIM_CUBLAS_COMPLEX(ROW, X)

#define CUDASIM_CUBLAS_HANDLE_ENTRIES(X)                                                       \
  X(cublasCreate_v2, Create, kNothing, (cublasHandle_t* handle), (handle))                         \
  X(cublasDestroy_v2, Destroy, kNothing, (cublasHandle_t handle), (handle))                        \
  X(cublasGetVersion_v2, GetVersion, kNothing, (cublasHandle_t handle, int* version),              \
    (handle, version))                                                                             \
  X(cublasGetProperty, GetProperty, kNothing, (libraryPropertyType type, int* value),              \
    (type, value))                                                                                 \
  X(cublasSetStream_v2, SetStream, kNothing, (cublasHandle_t handle, cudaStream_t stream),         \
    (handle, stream))                                                                              \
  X(cublasGetStream_v2, GetStream, kNothing, (cublasHandle_t handle, cudaStream_t* stream),        \
    (handle, stream))                                                                              \
  X(cublasSetWorkspace_v2, SetWorkspace, kNothing, (cublasHandle_t handle, void* workspace,        \
    size_t bytes), (handle, workspace, bytes))                                                     \
  X(cublasSetPointerMode_v2, SetPointerMode, kNothing, (cublasHandle_t handle,                     \
    cublasPointerMode_t mode), (handle, mode))                                                     \
  X(cublasGetPointerMode_v2, GetPointerMode, kNothing, (cublasHandle_t handle,                     \
    cublasPointerMode_t* mode), (handle, mode))                                                    \
  X(cublasSetAtomicsMode, SetAtomicsMode, kNothing, (cublasHandle_t handle,                        \
    cublasAtomicsMode_t mode), (handle, mode))                                                     \
  X(cublasGetAtomicsMode, GetAtomicsMode, kNothing, (cublasHandle_t handle,                        \
    cublasAtomicsMode_t* mode), (handle, mode))                                                    \
  X(cublasSetMathMode, SetMathMode, kNothing, (cublasHandle_t handle, cublasMath_t mode),          \
    (handle, mode))                                                                                \
  X(cublasGetMathMode, GetMathMode, kNothing, (cublasHandle_t handle, cublasMath_t* mode),         \
    (handle, mode))                                                                                \
  X(cublasSetSmCountTarget, SetSmCountTarget, kNothing, (cublasHandle_t handle, int count),        \
    (handle, count))                                                                               \
  X(cublasGetSmCountTarget, GetSmCountTarget, kNothing, (cublasHandle_t handle, int* count),       \
    (handle, count))

#define CUDASIM_CUBLAS_TRANSFER_ENTRIES(X)                                                     \
  X(cublasSetVector, SetVector, kContext, (int n, int bytes, const void* x, int incx, void* y,     \
    int incy), (n, bytes, x, incx, y, incy))                                                       \
  X(cublasGetVector, GetVector, kContext, (int n, int bytes, const void* x, int incx, void* y,     \
    int incy), (n, bytes, x, incx, y, incy))                                                       \
  X(cublasSetVectorAsync, SetVectorAsync, kContext, (int n, int bytes, const void* x, int incx,    \
    void* y, int incy, cudaStream_t stream), (n, bytes, x, incx, y, incy, stream))                 \
  X(cublasGetVectorAsync, GetVectorAsync, kContext, (int n, int bytes, const void* x, int incx,    \
    void* y, int incy, cudaStream_t stream), (n, bytes, x, incx, y, incy, stream))                 \
  X(cublasSetMatrix, SetMatrix, kContext, (int rows, int columns, int bytes, const void* a,        \
    int lda, void* b, int ldb), (rows, columns, bytes, a, lda, b, ldb))                            \
  X(cublasGetMatrix, GetMatrix, kContext, (int rows, int columns, int bytes, const void* a,        \
    int lda, void* b, int ldb), (rows, columns, bytes, a, lda, b, ldb))                            \
  X(cublasSetMatrixAsync, SetMatrixAsync, kContext, (int rows, int columns, int bytes,             \
    const void* a, int lda, void* b, int ldb, cudaStream_t stream),                                \
    (rows, columns, bytes, a, lda, b, ldb, stream))                                                \
  X(cublasGetMatrixAsync, GetMatrixAsync, kContext, (int rows, int columns, int bytes,             \
    const void* a, int lda, void* b, int ldb, cudaStream_t stream),                                \
    (rows, columns, bytes, a, lda, b, ldb, stream))

#define CUDASIM_CUBLAS_AXPY(X, L, T)                                                           \
  X(cublas##L##axpy_v2, Axpy<T>, kContext, (cublasHandle_t handle, int n, const T* alpha,          \
    const T* x, int incx, T* y, int incy), (handle, n, alpha, x, incx, y, incy))
#define CUDASIM_CUBLAS_SCAL(X, L, T)                                                           \
  X(cublas##L##scal_v2, Scal, kContext, (cublasHandle_t handle, int n, const T* alpha, T* x,       \
    int incx), (handle, n, alpha, x, incx))
#define CUDASIM_CUBLAS_COPY(X, L, T)                                                           \
  X(cublas##L##copy_v2, Copy<T>, kContext, (cublasHandle_t handle, int n, const T* x, int incx,    \
    T* y, int incy), (handle, n, x, incx, y, incy))
#define CUDASIM_CUBLAS_SWAP(X, L, T)                                                           \
  X(cublas##L##swap_v2, Swap<T>, kContext, (cublasHandle_t handle, int n, T* x, int incx, T* y,    \
    int incy), (handle, n, x, incx, y, incy))
#define CUDASIM_CUBLAS_AMAX(X, l, T)                                                           \
  X(cublasI##l##amax_v2, Amax<T>, kContext, (cublasHandle_t handle, int n, const T* x, int incx,   \
    int* result), (handle, n, x, incx, result))
// The first letter is that of the result.
#define CUDASIM_CUBLAS_SIZE(X, LL, T, Result)                                                  \
  X(cublas##LL##nrm2_v2, Nrm2, kContext, (cublasHandle_t handle, int n, const T* x, int incx,      \
    Result* result), (handle, n, x, incx, result))                                                 \
  X(cublas##LL##asum_v2, Asum, kContext, (cublasHandle_t handle, int n, const T* x, int incx,      \
    Result* result), (handle, n, x, incx, result))
#define CUDASIM_CUBLAS_DOT(X, name, Function, T)                                               \
  X(cublas##name##_v2, Function<T>, kContext, (cublasHandle_t handle, int n, const T* x, int incx, \
    const T* y, int incy, T* result), (handle, n, x, incx, y, incy, result))

#define CUDASIM_CUBLAS_VECTOR_ENTRIES(X)                                                       \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_AXPY, X)                                               \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_SCAL, X)                                               \
  X(cublasCsscal_v2, Scal, kContext, (cublasHandle_t handle, int n, const float* alpha,            \
    cuComplex* x, int incx), (handle, n, alpha, x, incx))                                          \
  X(cublasZdscal_v2, Scal, kContext, (cublasHandle_t handle, int n, const double* alpha,           \
    cuDoubleComplex* x, int incx), (handle, n, alpha, x, incx))                                    \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_COPY, X)                                               \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_SWAP, X)                                               \
  CUDASIM_CUBLAS_AMAX(X, s, float)                                                             \
  CUDASIM_CUBLAS_AMAX(X, d, double)                                                            \
  CUDASIM_CUBLAS_AMAX(X, c, cuComplex)                                                         \
  CUDASIM_CUBLAS_AMAX(X, z, cuDoubleComplex)                                                   \
  CUDASIM_CUBLAS_SIZE(X, S, float, float)                                                      \
  CUDASIM_CUBLAS_SIZE(X, D, double, double)                                                    \
  CUDASIM_CUBLAS_SIZE(X, Sc, cuComplex, float)                                                 \
  CUDASIM_CUBLAS_SIZE(X, Dz, cuDoubleComplex, double)                                          \
  CUDASIM_CUBLAS_DOT(X, Sdot, Dot, float)                                                      \
  CUDASIM_CUBLAS_DOT(X, Ddot, Dot, double)                                                     \
  CUDASIM_CUBLAS_DOT(X, Cdotu, Dot, cuComplex)                                                 \
  CUDASIM_CUBLAS_DOT(X, Zdotu, Dot, cuDoubleComplex)                                           \
  CUDASIM_CUBLAS_DOT(X, Cdotc, Dotc, cuComplex)                                                \
  CUDASIM_CUBLAS_DOT(X, Zdotc, Dotc, cuDoubleComplex)

#define CUDASIM_CUBLAS_GEMV(X, L, T)                                                           \
  X(cublas##L##gemv_v2, Gemv<T>, kContext, (cublasHandle_t handle, cublasOperation_t operation,    \
    int m, int n, const T* alpha, const T* a, int lda, const T* x, int incx, const T* beta, T* y,  \
    int incy), (handle, operation, m, n, alpha, a, lda, x, incx, beta, y, incy))
#define CUDASIM_CUBLAS_GER(X, name, Function, T)                                               \
  X(cublas##name##_v2, Function<T>, kContext, (cublasHandle_t handle, int m, int n,                \
    const T* alpha, const T* x, int incx, const T* y, int incy, T* a, int lda),                    \
    (handle, m, n, alpha, x, incx, y, incy, a, lda))
#define CUDASIM_CUBLAS_GEMM(X, L, T)                                                           \
  X(cublas##L##gemm_v2, Gemm<T>, kContext, (cublasHandle_t handle, cublasOperation_t of_a,         \
    cublasOperation_t of_b, int m, int n, int k, const T* alpha, const T* a, int lda, const T* b,  \
    int ldb, const T* beta, T* c, int ldc),                                                        \
    (handle, of_a, of_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))                            \
  X(cublas##L##gemmStridedBatched, GemmStridedBatched<T>, kContext, (cublasHandle_t handle,        \
    cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, const T* alpha,           \
    const T* a, int lda, long long step_a, const T* b, int ldb, long long step_b, const T* beta,   \
    T* c, int ldc, long long step_c, int count),                                                   \
    (handle, of_a, of_b, m, n, k, alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c,     \
     count))                                                                                       \
  X(cublas##L##gemmBatched, GemmBatched<T>, kContext, (cublasHandle_t handle,                      \
    cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, const T* alpha,           \
    const T* const a[], int lda, const T* const b[], int ldb, const T* beta, T* const c[],         \
    int ldc, int count),                                                                           \
    (handle, of_a, of_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count))
#define CUDASIM_CUBLAS_TRSM(X, L, T)                                                           \
  X(cublas##L##trsm_v2, Trsm<T>, kContext, (cublasHandle_t handle, cublasSideMode_t side,          \
    cublasFillMode_t fill, cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,   \
    const T* alpha, const T* a, int lda, T* b, int ldb),                                           \
    (handle, side, fill, operation, diagonal, m, n, alpha, a, lda, b, ldb))

#define CUDASIM_CUBLAS_MATRIX_ENTRIES(X)                                                       \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_GEMV, X)                                               \
  CUDASIM_CUBLAS_GER(X, Sger, Ger, float)                                                      \
  CUDASIM_CUBLAS_GER(X, Dger, Ger, double)                                                     \
  CUDASIM_CUBLAS_GER(X, Cgeru, Ger, cuComplex)                                                 \
  CUDASIM_CUBLAS_GER(X, Zgeru, Ger, cuDoubleComplex)                                           \
  CUDASIM_CUBLAS_GER(X, Cgerc, Gerc, cuComplex)                                                \
  CUDASIM_CUBLAS_GER(X, Zgerc, Gerc, cuDoubleComplex)                                          \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_TRSM, X)

#define CUDASIM_CUBLAS_PRODUCT_ENTRIES(X)                                                      \
  CUDASIM_CUBLAS_ALL(CUDASIM_CUBLAS_GEMM, X)                                               \
  X(cublasGemmEx, GemmEx, kContext, (cublasHandle_t handle, cublasOperation_t of_a,                \
    cublasOperation_t of_b, int m, int n, int k, const void* alpha, const void* a,                 \
    cudaDataType type_a, int lda, const void* b, cudaDataType type_b, int ldb, const void* beta,   \
    void* c, cudaDataType type_c, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t how),     \
    (handle, of_a, of_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc,     \
     compute, how))

#define CUDASIM_CUBLAS_ENTRIES(X)    \
  CUDASIM_CUBLAS_HANDLE_ENTRIES(X)   \
  CUDASIM_CUBLAS_TRANSFER_ENTRIES(X) \
  CUDASIM_CUBLAS_VECTOR_ENTRIES(X)   \
  CUDASIM_CUBLAS_MATRIX_ENTRIES(X)   \
  CUDASIM_CUBLAS_PRODUCT_ENTRIES(X)
// clang-format on

#endif  // CUDASIM_CUBLAS_ENTRY_LIST_H_
