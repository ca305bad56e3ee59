// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cusparse/product.h"

#include "driver/panic.h"
#include "library/kernel.h"
#include "library/operand.h"

namespace cudasim::cusparse {
namespace {

using cudasim::library::Conjugate;
using cudasim::library::Host;
using cudasim::library::IsArray;
using cudasim::library::Scalar;
using cudasim::library::Scaled;

template <typename T>
struct Operation {
  const int* offsets;
  const int* indices;
  const T* values;
  const T* x;
  T* y;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t count;
  int base;
  cusparseOperation_t operation;
  Scalar<T> alpha;
  Scalar<T> beta;

  bool IsPlain() const { return operation == CUSPARSE_OPERATION_NON_TRANSPOSE; }
  bool IsThere() const {
    const auto entries = static_cast<std::uint64_t>(count);
    const auto width = static_cast<std::uint64_t>(columns);
    const auto height = static_cast<std::uint64_t>(rows);
    return alpha.IsThere() && beta.IsThere() && IsArray(offsets, height + 1) &&
           IsArray(indices, entries) && IsArray(values, entries) &&
           IsArray(x, IsPlain() ? width : height) && IsArray(y, IsPlain() ? height : width);
  }
  // A real library reads, and writes, beside its arrays.
  void CheckIndices(std::int64_t row) const {
    const auto first = std::int64_t{offsets[row]} - base;
    const auto end = std::int64_t{offsets[row + 1]} - base;
    const bool is_row = first >= 0 && end <= count;
    for (std::int64_t at = first; is_row && at < end; ++at) {
      const auto column = std::int64_t{indices[at]} - base;
      if (column < 0 || column >= columns) PanicRow(row);
    }
    if (!is_row) PanicRow(row);
  }
  [[noreturn]] static void PanicRow(std::int64_t row) {
    cudasim::driver::Panic(
        "cusparseSpMV: row %lld of the matrix has an offset or an index outside of it",
        static_cast<long long>(row));
  }

  CUresult Run() const {
    if (!IsThere()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const T scale = beta.Get();
    for (std::int64_t i = 0; i < (IsPlain() ? rows : columns); ++i) {
      y[i] = Scaled(scale, y[i]);
    }
    const T factor = alpha.Get();
    const bool conjugates = operation == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    for (std::int64_t row = 0; row < rows; ++row) {
      CheckIndices(row);
      for (int at = offsets[row] - base; at < offsets[row + 1] - base; ++at) {
        const int column = indices[at] - base;
        const T value = factor * (conjugates ? Conjugate(values[at]) : values[at]);
        if (IsPlain()) {
          y[row] += value * x[column];
        } else {
          y[column] += value * x[row];
        }
      }
    }
    return CUDA_SUCCESS;
  }
};

template <typename T>
CUresult SubmitOf(CUfunction code, CUstream stream, const Product& product) {
  using Number = Host<T>;
  const auto factor = [&](const void* pointer) {
    return cudasim::library::ToScalar(product.on_device, static_cast<const T*>(pointer));
  };
  const Csr& a = product.a;
  return cudasim::library::Submit(
      code, stream,
      Operation<Number>{static_cast<const int*>(a.offsets), static_cast<const int*>(a.indices),
                        static_cast<const Number*>(a.values),
                        static_cast<const Number*>(product.x.values),
                        static_cast<Number*>(const_cast<void*>(product.y.values)), a.rows,
                        a.columns, a.count, a.base == CUSPARSE_INDEX_BASE_ONE ? 1 : 0,
                        product.operation, factor(product.alpha), factor(product.beta)});
}

}  // namespace

bool IsType(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_C_32F || type == CUDA_C_64F;
}

CUresult SubmitProduct(CUfunction code, CUstream stream, const Product& product) {
  switch (product.a.type) {
    case CUDA_R_32F:
      return SubmitOf<float>(code, stream, product);
    case CUDA_R_64F:
      return SubmitOf<double>(code, stream, product);
    case CUDA_C_32F:
      return SubmitOf<cuComplex>(code, stream, product);
    default:
      return SubmitOf<cuDoubleComplex>(code, stream, product);
  }
}

}  // namespace cudasim::cusparse
