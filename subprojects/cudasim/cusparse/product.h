// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of a sparse matrix and a vector.

#ifndef CUDASIM_CUSPARSE_PRODUCT_H_
#define CUDASIM_CUSPARSE_PRODUCT_H_

#include <cuda.h>
#include <cusparse.h>

#include <cstdint>

namespace cudasim::cusparse {

struct Csr {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t count;
  const void* offsets;
  const void* indices;
  const void* values;
  cusparseIndexType_t offset_type;
  cusparseIndexType_t index_type;
  cusparseIndexBase_t base;
  cudaDataType type;
};

struct DenseVector {
  std::int64_t size;
  const void* values;  // not const, where it is written
  cudaDataType type;
};

struct Product {
  Csr a;
  DenseVector x;
  DenseVector y;
  cusparseOperation_t operation;
  const void* alpha;
  const void* beta;
  bool on_device;  // the factors
};

// Whether SubmitProduct() knows the numbers.
bool IsType(cudaDataType type);

// y = alpha op(A) x + beta y, all of the type of A, and with indices of 32 bits.
CUresult SubmitProduct(CUfunction code, CUstream stream, const Product& product);

}  // namespace cudasim::cusparse

#endif  // CUDASIM_CUSPARSE_PRODUCT_H_
