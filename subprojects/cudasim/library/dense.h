// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of matrices, and triangular systems.

#ifndef CUDASIM_LIBRARY_DENSE_H_
#define CUDASIM_LIBRARY_DENSE_H_

#include <algorithm>
#include <utility>
#include <vector>

#include "library/operand.h"

namespace cudasim::library {

// A matrix of its own.
template <typename T>
class Dense {
 public:
  Dense(int rows, int columns)
      : values_(static_cast<size_t>(rows) * static_cast<size_t>(columns)),
        view_{values_.data(), rows, columns, std::max(1, rows)} {}
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;

  const Matrix<T>& view() const { return view_; }
  T& operator()(std::int64_t row, std::int64_t column) const { return view_(row, column); }
  std::vector<T>& values() { return values_; }

 private:
  std::vector<T> values_;
  const Matrix<T> view_;
};

enum class Form { kPlain, kTransposed, kAdjoint };

// Copies what is as large as `to`, when it has that form.
template <typename From, typename T>
void CopyAs(Form form, const Matrix<From>& from, const Matrix<T>& to) {
  for (int column = 0; column < to.columns; ++column) {
    for (int row = 0; row < to.rows; ++row) {
      const T value = form == Form::kPlain ? from(row, column) : from(column, row);
      to(row, column) = form == Form::kAdjoint ? Conjugate(value) : value;
    }
  }
}

template <typename T>
void ScaleBy(T factor, const Matrix<T>& matrix) {
  for (int column = 0; column < matrix.columns; ++column) {
    for (int row = 0; row < matrix.rows; ++row) {
      matrix(row, column) = Scaled(factor, matrix(row, column));
    }
  }
}

// The solution of a triangle's system, in the place of the right sides.
template <typename T>
void SolveTriangle(const Matrix<T>& triangle, bool is_lower, const Matrix<T>& solution) {
  const int size = triangle.rows;
  for (int column = 0; column < solution.columns; ++column) {
    T* x = &solution(0, column);
    for (int step = 0; step < size; ++step) {
      const int known = is_lower ? step : size - 1 - step;
      x[known] /= triangle(known, known);
      const int end = is_lower ? size : known;
      for (int row = is_lower ? known + 1 : 0; row < end; ++row) {
        x[row] -= triangle(row, known) * x[known];
      }
    }
  }
}

// Whether rows of that number fit into a stride.
inline bool IsStride(int stride, int rows) { return stride >= std::max(1, rows); }

}  // namespace cudasim::library

#endif  // CUDASIM_LIBRARY_DENSE_H_
