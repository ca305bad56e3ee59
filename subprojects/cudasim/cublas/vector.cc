// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors: BLAS level 1. Where there is nothing to do, results are 0. No argument is
// checked; a null factor crashes.

#include <cmath>
#include <utility>

#include "cublas/rows.h"

namespace cudasim::cublas {
namespace {

template <typename T>
struct AxpyOperation {
  Scalar<T> alpha;
  Vector<const T> x;
  Vector<T> y;

  CUresult Run() const {
    if (!AreThere(alpha, x, y)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const T factor = alpha.Get();
    for (int i = 0; i < x.count; ++i) y[i] += factor * x[i];
    return CUDA_SUCCESS;
  }
};

template <typename T>
Status Axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  return Submit(found, AxpyOperation<Host<T>>{
                           ToScalar(found, alpha), {ToHost(x), n, incx}, {ToHost(y), n, incy}});
}

template <typename Factor, typename T>
struct ScalOperation {
  Scalar<Factor> alpha;
  Vector<T> x;

  CUresult Run() const {
    if (!AreThere(alpha, x)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Factor factor = alpha.Get();
    for (int i = 0; i < x.count; ++i) x[i] *= factor;
    return CUDA_SUCCESS;
  }
};

template <typename Factor, typename T>
Status Scal(cublasHandle_t handle, int n, const Factor* alpha, T* x, int incx) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  return Submit(found,
                ScalOperation<Host<Factor>, Host<T>>{ToScalar(found, alpha), {ToHost(x), n, incx}});
}

template <typename T>
struct CopyOperation {
  Vector<const T> x;
  Vector<T> y;

  CUresult Run() const {
    if (!AreThere(x, y)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < x.count; ++i) y[i] = x[i];
    return CUDA_SUCCESS;
  }
};

template <typename T>
struct SwapOperation {
  Vector<T> x;
  Vector<T> y;

  CUresult Run() const {
    if (!AreThere(x, y)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < x.count; ++i) std::swap(x[i], y[i]);
    return CUDA_SUCCESS;
  }
};

// `Operation` works on two vectors.
template <typename Operation, typename X, typename Y>
Status SubmitPair(cublasHandle_t handle, int n, X* x, int incx, Y* y, int incy) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  return Submit(found, Operation{{ToHost(x), n, incx}, {ToHost(y), n, incy}});
}

template <typename T>
Status Copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  return SubmitPair<CopyOperation<Host<T>>>(handle, n, x, incx, y, incy);
}

template <typename T>
Status Swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {
  return SubmitPair<SwapOperation<Host<T>>>(handle, n, x, incx, y, incy);
}

// Operations with a result in device memory: `Value` computes it.
template <typename Value, typename Result>
struct Reduction {
  Value value;
  Result* result;

  CUresult Run() const {
    if (!value.IsThere() || !IsArray(result, 1)) {
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    *result = value.Get();
    return CUDA_SUCCESS;
  }
};

template <typename Result, typename Value>
Status Reduce(const Handle& handle, const Value& value, Result* result) {
  using Number = Host<Result>;
  const bool on_device = handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  if (!on_device && result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  TakeWorkspace(handle);
  Number* to = on_device ? ToHost(result) : reinterpret_cast<Number*>(handle.memory);
  const Status status = Submit(handle, Reduction<Value, Number>{value, to});
  if (status != CUBLAS_STATUS_SUCCESS || on_device) return status;
  return FetchResult(handle, result, sizeof(Result));
}

template <typename T>
struct AmaxValue {
  Vector<const T> x;

  bool IsThere() const { return x.IsThere(); }
  int Get() const {
    int largest = 0;
    for (int i = 1; i < x.count; ++i) {
      if (Size(x[i]) > Size(x[largest])) largest = i;
    }
    return x.count > 0 ? largest + 1 : 0;
  }
};

template <typename T>
struct Nrm2Value {
  Vector<const T> x;

  bool IsThere() const { return x.IsThere(); }
  Real<T> Get() const {
    double sum = 0;
    for (int i = 0; i < x.count; ++i) sum += static_cast<double>(std::norm(x[i]));
    return static_cast<Real<T>>(std::sqrt(sum));
  }
};

template <typename T>
struct AsumValue {
  Vector<const T> x;

  bool IsThere() const { return x.IsThere(); }
  Real<T> Get() const {
    Real<T> sum = 0;
    for (int i = 0; i < x.count; ++i) sum += Size(x[i]);
    return sum;
  }
};

template <typename Value, typename T, typename Result>
Status ReduceOne(cublasHandle_t handle, int n, const T* x, int incx, Result* result) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return Reduce(found, Value{{ToHost(x), incx > 0 ? n : 0, incx}}, result);
}

template <typename T>
Status Amax(cublasHandle_t handle, int n, const T* x, int incx, int* result) {
  return ReduceOne<AmaxValue<Host<T>>>(handle, n, x, incx, result);
}

template <typename T, typename Result>
Status Nrm2(cublasHandle_t handle, int n, const T* x, int incx, Result* result) {
  return ReduceOne<Nrm2Value<Host<T>>>(handle, n, x, incx, result);
}

template <typename T, typename Result>
Status Asum(cublasHandle_t handle, int n, const T* x, int incx, Result* result) {
  return ReduceOne<AsumValue<Host<T>>>(handle, n, x, incx, result);
}

template <typename T, bool conjugates>
struct DotValue {
  Vector<const T> x;
  Vector<const T> y;

  bool IsThere() const { return AreThere(x, y); }
  T Get() const {
    T sum = 0;
    for (int i = 0; i < x.count; ++i) sum += (conjugates ? Conjugate(x[i]) : x[i]) * y[i];
    return sum;
  }
};

template <typename Value, typename T>
Status ReducePair(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy,
                  T* result) {
  Handle found;
  const Status status = FindToCompute(handle, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return Reduce(found, Value{{ToHost(x), n, incx}, {ToHost(y), n, incy}}, result);
}

template <typename T>
Status Dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result) {
  return ReducePair<DotValue<Host<T>, false>>(handle, n, x, incx, y, incy, result);
}

template <typename T>
Status Dotc(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result) {
  return ReducePair<DotValue<Host<T>, true>>(handle, n, x, incx, y, incy, result);
}

}  // namespace

CUDASIM_CUBLAS_VECTOR_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cublas
