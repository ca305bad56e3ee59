// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the simulated cuSPARSE, once: see library/exports.h. There is the
// product of a matrix in CSR format and a vector. What NVIDIA's exports and is not here
// (names.inc) is not modelled: see runtime/stubs.cc.

#ifndef CUDASIM_CUSPARSE_ENTRY_LIST_H_
#define CUDASIM_CUSPARSE_ENTRY_LIST_H_

// clang-format off
#define CUDASIM_CUSPARSE_SPMV                                                                  \
  cusparseHandle_t handle, cusparseOperation_t operation, const void* alpha,                       \
  cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,                      \
  cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t how

#define CUDASIM_CUSPARSE_ENTRIES(X)                                                            \
  X(cusparseCreate, Create, kNothing, (cusparseHandle_t* handle), (handle))                        \
  X(cusparseDestroy, Destroy, kNothing, (cusparseHandle_t handle), (handle))                       \
  X(cusparseGetVersion, GetVersion, kNothing, (cusparseHandle_t handle, int* version),             \
    (handle, version))                                                                             \
  X(cusparseGetProperty, GetProperty, kNothing, (libraryPropertyType type, int* value),            \
    (type, value))                                                                                 \
  X(cusparseSetStream, SetStream, kNothing, (cusparseHandle_t handle, cudaStream_t stream),        \
    (handle, stream))                                                                              \
  X(cusparseGetStream, GetStream, kNothing, (cusparseHandle_t handle, cudaStream_t* stream),       \
    (handle, stream))                                                                              \
  X(cusparseSetPointerMode, SetPointerMode, kNothing, (cusparseHandle_t handle,                    \
    cusparsePointerMode_t mode), (handle, mode))                                                   \
  X(cusparseGetPointerMode, GetPointerMode, kNothing, (cusparseHandle_t handle,                    \
    cusparsePointerMode_t* mode), (handle, mode))                                                  \
  X(cusparseCreateCsr, CreateCsr, kNothing, (cusparseSpMatDescr_t* matrix, int64_t rows,           \
    int64_t columns, int64_t count, void* offsets, void* indices, void* values,                    \
    cusparseIndexType_t offset_type, cusparseIndexType_t index_type, cusparseIndexBase_t base,     \
    cudaDataType type),                                                                            \
    (matrix, Csr{rows, columns, count, offsets, indices, values, offset_type, index_type, base,    \
                 type}))                                                                           \
  X(cusparseCreateConstCsr, CreateCsr, kNothing, (cusparseConstSpMatDescr_t* matrix, int64_t rows, \
    int64_t columns, int64_t count, const void* offsets, const void* indices, const void* values,  \
    cusparseIndexType_t offset_type, cusparseIndexType_t index_type, cusparseIndexBase_t base,     \
    cudaDataType type),                                                                            \
    (matrix, Csr{rows, columns, count, offsets, indices, values, offset_type, index_type, base,    \
                 type}))                                                                           \
  X(cusparseDestroySpMat, DestroyMatrix, kNothing, (cusparseConstSpMatDescr_t matrix), (matrix))   \
  X(cusparseCreateDnVec, CreateVector, kNothing, (cusparseDnVecDescr_t* vector, int64_t size,      \
    void* values, cudaDataType type), (vector, DenseVector{size, values, type}))                   \
  X(cusparseCreateConstDnVec, CreateVector, kNothing, (cusparseConstDnVecDescr_t* vector,          \
    int64_t size, const void* values, cudaDataType type),                                          \
    (vector, DenseVector{size, values, type}))                                                     \
  X(cusparseDestroyDnVec, DestroyVector, kNothing, (cusparseConstDnVecDescr_t vector), (vector))   \
  X(cusparseSpMV_bufferSize, SpmvBufferSize, kNothing, (CUDASIM_CUSPARSE_SPMV, size_t* bytes), \
    (handle, operation, alpha, a, x, beta, y, compute, how, bytes))                                \
  X(cusparseSpMV, Spmv, kContext, (CUDASIM_CUSPARSE_SPMV, void* buffer),                       \
    (handle, operation, alpha, a, x, beta, y, compute, how, buffer))
// clang-format on

#endif  // CUDASIM_CUSPARSE_ENTRY_LIST_H_
