// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the simulated cuSOLVER, once: see library/exports.h. Of its dense
// part there is the Cholesky factorisation, of the others nothing. What NVIDIA's exports and
// is not here (names.inc) is not modelled: see runtime/stubs.cc.

#ifndef CUDASIM_CUSOLVER_ENTRY_LIST_H_
#define CUDASIM_CUSOLVER_ENTRY_LIST_H_

// clang-format off
#define CUDASIM_CUSOLVER_POTRF(X, L, T)                                                        \
  X(cusolverDn##L##potrf_bufferSize, PotrfBufferSize, kNothing, (cusolverDnHandle_t handle,        \
    cublasFillMode_t fill, int n, T* a, int lda, int* count), (handle, fill, n, a, lda, count))    \
  X(cusolverDn##L##potrf, Potrf, kContext, (cusolverDnHandle_t handle, cublasFillMode_t fill,      \
    int n, T* a, int lda, T* buffer, int count, int* info),                                        \
    (handle, fill, n, a, lda, buffer, count, info))                                                \
  X(cusolverDn##L##potrs, Potrs, kContext, (cusolverDnHandle_t handle, cublasFillMode_t fill,      \
    int n, int sides, const T* a, int lda, T* b, int ldb, int* info),                              \
    (handle, fill, n, sides, a, lda, b, ldb, info))

#define CUDASIM_CUSOLVER_ENTRIES(X)                                                            \
  X(cusolverDnCreate, Create, kNothing, (cusolverDnHandle_t* handle), (handle))                    \
  X(cusolverDnDestroy, Destroy, kNothing, (cusolverDnHandle_t handle), (handle))                   \
  X(cusolverDnSetStream, SetStream, kNothing, (cusolverDnHandle_t handle, cudaStream_t stream),    \
    (handle, stream))                                                                              \
  X(cusolverDnGetStream, GetStream, kNothing, (cusolverDnHandle_t handle, cudaStream_t* stream),   \
    (handle, stream))                                                                              \
  X(cusolverDnSetDeterministicMode, SetDeterministicMode, kNothing, (cusolverDnHandle_t handle,    \
    cusolverDeterministicMode_t mode), (handle, mode))                                             \
  X(cusolverDnGetDeterministicMode, GetDeterministicMode, kNothing, (cusolverDnHandle_t handle,    \
    cusolverDeterministicMode_t* mode), (handle, mode))                                            \
  X(cusolverGetVersion, GetVersion, kNothing, (int* version), (version))                           \
  X(cusolverGetProperty, GetProperty, kNothing, (libraryPropertyType type, int* value),            \
    (type, value))                                                                                 \
  CUDASIM_CUSOLVER_POTRF(X, S, float)                                                          \
  CUDASIM_CUSOLVER_POTRF(X, D, double)                                                         \
  CUDASIM_CUSOLVER_POTRF(X, C, cuComplex)                                                      \
  CUDASIM_CUSOLVER_POTRF(X, Z, cuDoubleComplex)
// clang-format on

#endif  // CUDASIM_CUSOLVER_ENTRY_LIST_H_
