// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operations work on, in the types of the host.

#ifndef CUDASIM_LIBRARY_OPERAND_H_
#define CUDASIM_LIBRARY_OPERAND_H_

#include <cuComplex.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "library/kernel.h"

namespace cudasim::library {

template <typename T>
struct OnHost {
  using Type = T;
};
template <>
struct OnHost<cuComplex> {
  using Type = std::complex<float>;
};
template <>
struct OnHost<cuDoubleComplex> {
  using Type = std::complex<double>;
};
template <typename T>
using Host = typename OnHost<T>::Type;

template <typename T>
const Host<T>* ToHost(const T* pointer) {
  return reinterpret_cast<const Host<T>*>(pointer);
}
template <typename T>
Host<T>* ToHost(T* pointer) {
  return reinterpret_cast<Host<T>*>(pointer);
}

template <typename T>
struct RealOf {
  using Type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <typename T>
using Real = typename RealOf<T>::Type;

inline float Conjugate(float value) { return value; }
inline double Conjugate(double value) { return value; }
template <typename T>
std::complex<T> Conjugate(std::complex<T> value) {
  return std::conj(value);
}

// The absolute value as BLAS takes it: |re| + |im|.
template <typename T>
T Size(T value) {
  return std::abs(value);
}
template <typename T>
T Size(std::complex<T> value) {
  return std::abs(value.real()) + std::abs(value.imag());
}

// Whether the device may touch `count` of them; a number that no memory has is none.
template <typename T>
bool IsArray(const T* data, std::uint64_t count) {
  return count <= SIZE_MAX / sizeof(T) && MayAccess(data, count * sizeof(T));
}

// The product, in which a factor of 0 makes 0 of everything, also of what is no number.
template <typename T>
T Scaled(T factor, T value) {
  return factor == T{0} ? T{0} : factor * value;
}

// A factor: a value of the call, or in device memory when the work is done.
template <typename T>
struct Scalar {
  T value;
  const T* device;

  bool IsThere() const { return device == nullptr || IsArray(device, 1); }
  T Get() const { return device != nullptr ? *device : value; }
};

// The pointer of a call, as the mode of its handle has it.
template <typename T>
Scalar<Host<T>> ToScalar(bool is_on_device, const T* factor) {
  const Host<T>* at = ToHost(factor);
  return is_on_device ? Scalar<Host<T>>{{}, at} : Scalar<Host<T>>{*at, nullptr};
}

// `count` elements, of which the first is the last in memory if the increment is negative.
template <typename T>
struct Vector {
  T* data;
  int count;
  int increment;

  bool IsThere() const {
    if (count <= 0) return true;
    const auto step = static_cast<std::uint64_t>(std::abs(std::int64_t{increment}));
    return IsArray(data, static_cast<std::uint64_t>(count - 1) * step + 1);
  }
  T& operator[](std::int64_t i) const {
    const std::int64_t first = increment < 0 ? std::int64_t{1 - count} * increment : 0;
    return data[first + i * increment];
  }
};

// By columns, `stride` elements apart.
template <typename T>
struct Matrix {
  T* data;
  int rows;
  int columns;
  int stride;

  bool IsThere() const {
    if (rows <= 0 || columns <= 0) return true;
    const auto before =
        static_cast<std::uint64_t>(columns - 1) * static_cast<std::uint64_t>(stride);
    return IsArray(data, before + static_cast<std::uint64_t>(rows));
  }
  T& operator()(std::int64_t row, std::int64_t column) const { return data[column * stride + row]; }
};

// Whether the device may touch all of them.
template <typename... Operands>
bool AreThere(const Operands&... operands) {
  return (... && operands.IsThere());
}

}  // namespace cudasim::library

#endif  // CUDASIM_LIBRARY_OPERAND_H_
