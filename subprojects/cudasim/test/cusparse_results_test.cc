// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuSPARSE computes, simulated or real.

#include <cusparse.h>

#include "test/library.h"

BOOST_AUTO_TEST_SUITE(cusparse_results)

using namespace cudasim_facts;

#define SPARSE(call) BOOST_CHECK_EQUAL((call), CUSPARSE_STATUS_SUCCESS)

namespace {

// The matrix ((1, 0, 2), (0, 3, 0)) and the vectors (1, 2, 3) and (10, 20), or such of the
// lengths that the operation wants; y = 2 op(unit A) x + 3 y.
template <typename T>
std::vector<T> Multiply(cusparseOperation_t operation, cudaDataType type, int base, T unit = 1) {
  const Current current;
  const bool is_plain = operation == CUSPARSE_OPERATION_NON_TRANSPOSE;
  const OnDevice<int> offsets({base, base + 2, base + 3});
  const OnDevice<int> indices({base, base + 2, base + 1});
  const OnDevice<T> values({unit, T{2} * unit, T{3} * unit});
  const std::vector<T> three = {1, 2, 3}, two = {10, 20};
  const OnDevice<T> x(is_plain ? three : two), y(is_plain ? two : three);
  cusparseHandle_t handle = nullptr;
  cusparseSpMatDescr_t matrix = nullptr;
  cusparseDnVecDescr_t from = nullptr, to = nullptr;
  SPARSE(cusparseCreate(&handle));
  SPARSE(cusparseCreateCsr(&matrix, 2, 3, 3, offsets.get(), indices.get(), values.get(),
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                           base == 0 ? CUSPARSE_INDEX_BASE_ZERO : CUSPARSE_INDEX_BASE_ONE, type));
  SPARSE(cusparseCreateDnVec(&from, is_plain ? 3 : 2, x.get(), type));
  SPARSE(cusparseCreateDnVec(&to, is_plain ? 2 : 3, y.get(), type));
  const T alpha = 2, beta = 3;
  size_t bytes = 0;
  SPARSE(cusparseSpMV_bufferSize(handle, operation, &alpha, matrix, from, &beta, to, type,
                                 CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
  const OnDevice<char> buffer{std::vector<char>(bytes + 1)};
  SPARSE(cusparseSpMV(handle, operation, &alpha, matrix, from, &beta, to, type,
                      CUSPARSE_SPMV_ALG_DEFAULT, buffer.get()));
  const std::vector<T> result = y.Read();
  SPARSE(cusparseDestroyDnVec(from));
  SPARSE(cusparseDestroyDnVec(to));
  SPARSE(cusparseDestroySpMat(matrix));
  SPARSE(cusparseDestroy(handle));
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_matrix_in_csr_format_and_a_vector) {
  for (const int base : {0, 1}) {
    BOOST_CHECK(Multiply<float>(CUSPARSE_OPERATION_NON_TRANSPOSE, CUDA_R_32F, base) ==
                std::vector<float>({44, 72}));
    BOOST_CHECK(Multiply<double>(CUSPARSE_OPERATION_TRANSPOSE, CUDA_R_64F, base) ==
                std::vector<double>({23, 126, 49}));
  }
  using Complex = std::complex<float>;
  BOOST_CHECK(Multiply<Complex>(CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE, CUDA_C_32F, 0, {0, 1}) ==
              std::vector<Complex>({{3, -20}, {6, -120}, {9, -40}}));
}

BOOST_AUTO_TEST_SUITE_END()
