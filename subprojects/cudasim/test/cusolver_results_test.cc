// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuSOLVER computes, simulated or real.

#include <cusolverDn.h>

#include <cmath>

#include "test/library.h"

BOOST_AUTO_TEST_SUITE(cusolver_results)

using namespace cudasim_facts;

#define SOLVER(call) BOOST_CHECK_EQUAL((call), CUSOLVER_STATUS_SUCCESS)

namespace {

constexpr int kOrder = 3;
constexpr int kStride = 4;

// A context with a handle.
struct Solver {
  Solver() { SOLVER(cusolverDnCreate(&handle)); }
  ~Solver() { SOLVER(cusolverDnDestroy(handle)); }

  const Current current;
  cusolverDnHandle_t handle = nullptr;
};

constexpr double kOther = -99;  // outside of the triangle

// Of the factor ((2, 0, 0), (1, 3, 0), (0, 1, 2)), by columns.
std::vector<double> Matrix(cublasFillMode_t fill) {
  const double lower[3][3] = {{4, 2, 0}, {2, 10, 3}, {0, 3, 5}};
  std::vector<double> matrix(kOrder * kStride, kOther);
  for (size_t column = 0; column < kOrder; ++column) {
    for (size_t row = 0; row < kOrder; ++row) {
      const bool is_there = fill == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column;
      if (is_there) matrix[column * kStride + row] = lower[row][column];
    }
  }
  return matrix;
}

std::vector<double> Factor(cublasFillMode_t fill) {
  const double factor[3][3] = {{2, 0, 0}, {1, 3, 0}, {0, 1, 2}};
  auto matrix = Matrix(fill);
  for (size_t column = 0; column < kOrder; ++column) {
    for (size_t row = column; row < kOrder; ++row) {
      const bool is_lower = fill == CUBLAS_FILL_MODE_LOWER;
      matrix[is_lower ? column * kStride + row : row * kStride + column] = factor[row][column];
    }
  }
  return matrix;
}

// Factorises in place; what `info` says.
int Factorize(const Solver& solver, cublasFillMode_t fill, const OnDevice<double>& matrix) {
  int count = 0;
  SOLVER(cusolverDnDpotrf_bufferSize(solver.handle, fill, kOrder, matrix.get(), kStride, &count));
  const OnDevice<double> buffer{std::vector<double>(static_cast<size_t>(count))};
  const OnDevice<int> info({-1});
  SOLVER(cusolverDnDpotrf(solver.handle, fill, kOrder, matrix.get(), kStride, buffer.get(), count,
                          info.get()));
  return info.Read()[0];
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_factor_and_a_solution) {
  for (const auto fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    const Solver solver;
    const OnDevice<double> matrix(Matrix(fill));
    BOOST_TEST(Factorize(solver, fill, matrix) == 0);
    const auto factor = matrix.Read();
    const auto expected = Factor(fill);
    for (size_t i = 0; i < factor.size(); ++i) {
      BOOST_TEST((expected[i] == kOther || std::abs(factor[i] - expected[i]) < 1e-12), i);
    }
    // Of the solution (1, 2, 3).
    const OnDevice<double> sides({8, 31, 21});
    const OnDevice<int> info({-1});
    SOLVER(cusolverDnDpotrs(solver.handle, fill, kOrder, 1, matrix.get(), kStride, sides.get(),
                            kOrder, info.get()));
    BOOST_TEST(info.Read()[0] == 0);
    const auto solution = sides.Read();
    for (size_t i = 0; i < kOrder; ++i) BOOST_TEST(std::abs(solution[i] - 1.0 - 1.0 * i) < 1e-12);
  }
}

// ((4, 2 - 2i), (2 + 2i, 3)) is L times its adjoint, for L = ((2, 0), (1 + i, 1)).
BOOST_AUTO_TEST_CASE(a_factor_and_a_solution_of_complex_numbers) {
  using Complex = std::complex<double>;
  for (const bool is_lower : {true, false}) {
    const Solver solver;
    const auto fill = is_lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    const OnDevice<Complex> matrix({4, {2, 2}, {2, -2}, 3});
    const OnDevice<Complex> sides({{6, 2}, {2, 5}});
    const OnDevice<int> info({-1});
    auto* a = matrix.get<cuDoubleComplex>();
    auto* b = sides.get<cuDoubleComplex>();
    int count = 0;
    SOLVER(cusolverDnZpotrf_bufferSize(solver.handle, fill, 2, a, 2, &count));
    const OnDevice<Complex> buffer{std::vector<Complex>(static_cast<size_t>(count))};
    SOLVER(cusolverDnZpotrf(solver.handle, fill, 2, a, 2, buffer.get<cuDoubleComplex>(), count,
                            info.get()));
    BOOST_TEST(info.Read()[0] == 0);
    const auto factor = matrix.Read();
    const Complex off_diagonal = is_lower ? factor[1] : std::conj(factor[2]);
    BOOST_TEST(std::abs(off_diagonal - Complex(1, 1)) < 1e-12);
    BOOST_TEST(std::abs(factor[3] - 1.0) < 1e-12);
    SOLVER(cusolverDnZpotrs(solver.handle, fill, 2, 1, a, 2, b, 2, info.get()));
    const auto solution = sides.Read();
    BOOST_TEST(std::abs(solution[0] - 1.0) < 1e-12);
    BOOST_TEST(std::abs(solution[1] - Complex(0, 1)) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(a_matrix_that_is_not_positive_definite_is_reported) {
  const Solver solver;
  auto values = Matrix(CUBLAS_FILL_MODE_LOWER);
  values[kStride + 1] = 1;
  const OnDevice<double> matrix(values);
  BOOST_TEST(Factorize(solver, CUBLAS_FILL_MODE_LOWER, matrix) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
