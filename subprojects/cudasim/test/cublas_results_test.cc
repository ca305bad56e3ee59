// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuBLAS computes, against plain loops. Of the simulation and of the real one.

#include <cublas_v2.h>

#include <cmath>

#include "test/library.h"

BOOST_AUTO_TEST_SUITE(cublas_results)

using namespace cudasim_facts;

#define BLAS(call) BOOST_CHECK_EQUAL((call), CUBLAS_STATUS_SUCCESS)

namespace {

// A context with a handle.
struct Blas {
  Blas() { BLAS(cublasCreate(&handle)); }
  ~Blas() { BLAS(cublasDestroy(handle)); }

  const Current current;
  cublasHandle_t handle = nullptr;
};

// The four types and the functions of each.
template <typename T>
struct Calls;  // kError: of a solution of a triangle of small numbers
#define CALLS(T, Type, L, Dot, Ger, conjugate, error)                          \
  template <>                                                                  \
  struct Calls<T> {                                                            \
    using Cuda = Type;                                                         \
    static constexpr double kError = error;                                    \
    static constexpr auto kGemm = cublas##L##gemm;                             \
    static constexpr auto kGemmStridedBatched = cublas##L##gemmStridedBatched; \
    static constexpr auto kGemmBatched = cublas##L##gemmBatched;               \
    static constexpr auto kGemv = cublas##L##gemv;                             \
    static constexpr auto kTrsm = cublas##L##trsm;                             \
    static constexpr auto kAxpy = cublas##L##axpy;                             \
    static constexpr auto kScal = cublas##L##scal;                             \
    static constexpr auto kCopy = cublas##L##copy;                             \
    static constexpr auto kSwap = cublas##L##swap;                             \
    static constexpr auto kDot = cublas##Dot;                                  \
    static constexpr auto kGer = cublas##Ger;                                  \
    static T Conjugate(T value) { return conjugate(value); }                   \
  };
template <typename T>
T Same(T value) {
  return value;
}
CALLS(float, float, S, Sdot, Sger, Same, 1e-3)
CALLS(double, double, D, Ddot, Dger, Same, 1e-10)
CALLS(std::complex<float>, cuComplex, C, Cdotc, Cgeru, std::conj, 1e-3)
CALLS(std::complex<double>, cuDoubleComplex, Z, Zdotc, Zgeru, std::conj, 1e-10)

template <typename T>
const typename Calls<T>::Cuda* Cuda(const T* value) {
  return reinterpret_cast<const typename Calls<T>::Cuda*>(value);
}
template <typename T>
typename Calls<T>::Cuda* Cuda(T* value) {
  return reinterpret_cast<typename Calls<T>::Cuda*>(value);
}
template <typename T>
auto In(const OnDevice<T>& memory) {
  return memory.template get<typename Calls<T>::Cuda>();
}

constexpr cublasOperation_t kOperations[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};

// Element (row, column) of op(A).
template <typename T>
T Element(cublasOperation_t operation, const T* a, int lda, int row, int column) {
  if (operation == CUBLAS_OP_N) return a[column * lda + row];
  const T value = a[row * lda + column];
  return operation == CUBLAS_OP_C ? Calls<T>::Conjugate(value) : value;
}

constexpr int kM = 5;
constexpr int kN = 4;
constexpr int kK = 3;
constexpr int kStride = 6;
constexpr int kSize = kStride * kStride;

template <typename T>
std::vector<T> Product(cublasOperation_t of_a, cublasOperation_t of_b, T alpha, const T* a,
                       const T* b, T beta, const T* c) {
  std::vector<T> result(c, c + kSize);
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      T sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += Element(of_a, a, kStride, row, k) * Element(of_b, b, kStride, k, column);
      }
      T& at = result[static_cast<size_t>(column * kStride + row)];
      at = alpha * sum + (beta == T{0} ? T{0} : beta * at);
    }
  }
  return result;
}

template <typename T>
void CheckProducts() {
  const Blas blas;
  const auto a = Numbers<T>(2 * kSize, 1);
  const auto b = Numbers<T>(2 * kSize, 2);
  const auto c = Numbers<T>(2 * kSize, 3);
  const OnDevice<T> on_a(a), on_b(b);
  const T alpha = 2, beta = 3;
  for (const cublasOperation_t of_a : kOperations) {
    for (const cublasOperation_t of_b : kOperations) {
      const OnDevice<T> on_c(c);
      BLAS(Calls<T>::kGemm(blas.handle, of_a, of_b, kM, kN, kK, Cuda(&alpha), In(on_a), kStride,
                           In(on_b), kStride, Cuda(&beta), In(on_c), kStride));
      auto result = on_c.Read();
      result.resize(kSize);
      BOOST_CHECK(result == Product(of_a, of_b, alpha, a.data(), b.data(), beta, c.data()));
    }
  }
  const OnDevice<T> strided(c), batched(c);
  BLAS(Calls<T>::kGemmStridedBatched(blas.handle, CUBLAS_OP_N, CUBLAS_OP_T, kM, kN, kK,
                                     Cuda(&alpha), In(on_a), kStride, kSize, In(on_b), kStride,
                                     kSize, Cuda(&beta), In(strided), kStride, kSize, 2));
  using Type = typename Calls<T>::Cuda;
  const OnDevice<Type*> each_a({In(on_a), In(on_a) + kSize});
  const OnDevice<Type*> each_b({In(on_b), In(on_b) + kSize});
  const OnDevice<Type*> each_c({In(batched), In(batched) + kSize});
  BLAS(Calls<T>::kGemmBatched(blas.handle, CUBLAS_OP_N, CUBLAS_OP_T, kM, kN, kK, Cuda(&alpha),
                              each_a.get(), kStride, each_b.get(), kStride, Cuda(&beta),
                              each_c.get(), kStride, 2));
  std::vector<T> expected;
  for (const size_t at : {size_t{0}, size_t{kSize}}) {
    const auto one = Product(CUBLAS_OP_N, CUBLAS_OP_T, alpha, &a[at], &b[at], beta, &c[at]);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  BOOST_CHECK(strided.Read() == expected);
  BOOST_CHECK(batched.Read() == expected);
}

template <typename T>
void CheckMatrixAndVectors() {
  const Blas blas;
  const auto a = Numbers<T>(kSize, 1);
  const auto x = Numbers<T>(2 * kStride, 2);
  const auto y = Numbers<T>(2 * kStride, 3);
  const OnDevice<T> on_a(a), on_x(x);
  const T alpha = 2, beta = 3;
  for (const cublasOperation_t operation : kOperations) {
    const OnDevice<T> on_y(y);
    const int rows = operation == CUBLAS_OP_N ? kM : kN;
    const int columns = operation == CUBLAS_OP_N ? kN : kM;
    BLAS(Calls<T>::kGemv(blas.handle, operation, kM, kN, Cuda(&alpha), In(on_a), kStride, In(on_x),
                         -1, Cuda(&beta), In(on_y), 2));
    auto expected = y;
    for (int row = 0; row < rows; ++row) {
      T sum = 0;
      for (int column = 0; column < columns; ++column) {
        sum += Element(operation, a.data(), kStride, row, column) *
               x[static_cast<size_t>(columns - 1 - column)];
      }
      T& at = expected[static_cast<size_t>(2 * row)];
      at = alpha * sum + beta * at;
    }
    BOOST_CHECK(on_y.Read() == expected);
  }
  const OnDevice<T> on_y(y);
  BLAS(Calls<T>::kGer(blas.handle, kM, kN, Cuda(&alpha), In(on_x), 1, In(on_y), 2, In(on_a),
                      kStride));
  auto expected = a;
  for (size_t column = 0; column < kN; ++column) {
    for (size_t row = 0; row < kM; ++row) {
      expected[column * kStride + row] += alpha * x[row] * y[2 * column];
    }
  }
  BOOST_CHECK(on_a.Read() == expected);
}

// What is solved and multiplied again is what it was.
template <typename T>
void CheckTriangles() {
  const Blas blas;
  constexpr int kOrder = 4;
  auto a = Numbers<T>(kSize, 1);
  for (int i = 0; i < kOrder; ++i) a[static_cast<size_t>(i * kStride + i)] = 8;
  const auto b = Numbers<T>(kSize, 2);
  const OnDevice<T> on_a(a);
  const T alpha = 2;
  for (const auto side : {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT}) {
    for (const auto fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
      for (const auto operation : kOperations) {
        for (const auto diagonal : {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT}) {
          const OnDevice<T> on_b(b);
          BLAS(Calls<T>::kTrsm(blas.handle, side, fill, operation, diagonal, kOrder, kOrder,
                               Cuda(&alpha), In(on_a), kStride, In(on_b), kStride));
          const auto x = on_b.Read();
          const auto of_triangle = [&](int row, int column) {
            if (row == column && diagonal == CUBLAS_DIAG_UNIT) return T{1};
            const bool is_lower = (fill == CUBLAS_FILL_MODE_LOWER) == (operation == CUBLAS_OP_N);
            if (row != column && (row > column) != is_lower) return T{0};
            return Element(operation, a.data(), kStride, row, column);
          };
          const auto of_x = [&](int row, int column) {
            return x[static_cast<size_t>(column * kStride + row)];
          };
          double error = 0;
          for (int row = 0; row < kOrder; ++row) {
            for (int column = 0; column < kOrder; ++column) {
              T sum = 0;
              for (int k = 0; k < kOrder; ++k) {
                sum += side == CUBLAS_SIDE_LEFT ? of_triangle(row, k) * of_x(k, column)
                                                : of_x(row, k) * of_triangle(k, column);
              }
              const T wanted = alpha * b[static_cast<size_t>(column * kStride + row)];
              error = std::max(error, static_cast<double>(std::abs(sum - wanted)));
            }
          }
          BOOST_TEST(error < Calls<T>::kError);
        }
      }
    }
  }
}

template <typename T>
void CheckVectors() {
  const Blas blas;
  constexpr int kCount = 7;
  const auto x = Numbers<T>(2 * kCount, 1);
  const auto y = Numbers<T>(3 * kCount, 2);
  const OnDevice<T> on_x(x), on_y(y);
  const T alpha = 2;
  BLAS(Calls<T>::kAxpy(blas.handle, kCount, Cuda(&alpha), In(on_x), -2, In(on_y), 3));
  auto expected = y;
  T dot = 0;
  for (size_t i = 0; i < kCount; ++i) {
    expected[3 * i] += alpha * x[2 * (kCount - 1 - i)];
    dot += Calls<T>::Conjugate(x[2 * i]) * expected[3 * i];
  }
  BOOST_CHECK(on_y.Read() == expected);
  T result = 0;
  BLAS(Calls<T>::kDot(blas.handle, kCount, In(on_x), 2, In(on_y), 3, Cuda(&result)));
  BOOST_CHECK(result == dot);

  BLAS(Calls<T>::kScal(blas.handle, kCount, Cuda(&alpha), In(on_x), 2));
  BLAS(Calls<T>::kCopy(blas.handle, kCount, In(on_x), 2, In(on_y), 1));
  for (size_t i = 0; i < kCount; ++i) expected[i] = alpha * x[2 * i];
  BOOST_CHECK(on_y.Read() == expected);
  const OnDevice<T> other({1, 2});
  BLAS(Calls<T>::kSwap(blas.handle, 2, In(on_y), 1, In(other), 1));
  BOOST_CHECK(other.Read() == std::vector<T>(expected.begin(), expected.begin() + 2));
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_matrices) {
  CheckProducts<float>();
  CheckProducts<double>();
  CheckProducts<std::complex<float>>();
  CheckProducts<std::complex<double>>();
}

BOOST_AUTO_TEST_CASE(matrices_and_vectors) {
  CheckMatrixAndVectors<float>();
  CheckMatrixAndVectors<double>();
  CheckMatrixAndVectors<std::complex<float>>();
  CheckMatrixAndVectors<std::complex<double>>();
}

BOOST_AUTO_TEST_CASE(triangular_systems) {
  CheckTriangles<float>();
  CheckTriangles<std::complex<double>>();
}

BOOST_AUTO_TEST_CASE(vectors) {
  CheckVectors<float>();
  CheckVectors<double>();
  CheckVectors<std::complex<float>>();
  CheckVectors<std::complex<double>>();
}

BOOST_AUTO_TEST_CASE(sizes_of_vectors) {
  const Blas blas;
  const OnDevice<float> real({3, 0, -4, 0});
  const OnDevice<std::complex<double>> complex({{1, -2}, {0, 0}, {2, 4}});
  float size = 0;
  double large = 0;
  int index = 0;
  BLAS(cublasSnrm2(blas.handle, 4, real.get(), 1, &size));
  BOOST_TEST(size == 5.0f);
  BLAS(cublasSasum(blas.handle, 2, real.get(), 2, &size));
  BOOST_TEST(size == 7.0f);
  BLAS(cublasIsamax(blas.handle, 4, real.get(), 1, &index));
  BOOST_TEST(index == 3);
  const auto* z = complex.get<cuDoubleComplex>();
  BLAS(cublasDznrm2(blas.handle, 3, z, 1, &large));
  BOOST_TEST(large == 5.0);
  BLAS(cublasDzasum(blas.handle, 3, z, 1, &large));
  BOOST_TEST(large == 9.0);
  BLAS(cublasIzamax(blas.handle, 3, z, 1, &index));
  BOOST_TEST(index == 3);
}

// A beta of 0 does not read what was there, and one step of Ex is of the plain kind.
BOOST_AUTO_TEST_CASE(what_is_not_a_number_is_overwritten) {
  const Blas blas;
  const OnDevice<float> a({2}), b({3}), c({std::nanf("")});
  const float one = 1, zero = 0;
  BLAS(cublasGemmEx(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(), CUDA_R_32F, 1,
                    b.get(), CUDA_R_32F, 1, &zero, c.get(), CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                    CUBLAS_GEMM_DEFAULT));
  BOOST_TEST(c.Read()[0] == 6.0f);
}

BOOST_AUTO_TEST_CASE(factors_and_results_in_device_memory) {
  const Blas blas;
  const OnDevice<float> alpha({3}), x({1, 2}), y({10, 20}), result({0});
  BLAS(cublasSetPointerMode(blas.handle, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasSaxpy(blas.handle, 2, alpha.get(), x.get(), 1, y.get(), 1));
  BLAS(cublasSdot(blas.handle, 2, x.get(), 1, y.get(), 1, result.get()));
  BOOST_CHECK(y.Read() == std::vector<float>({13, 26}));
  BOOST_TEST(result.Read()[0] == 65.0f);
}

BOOST_AUTO_TEST_CASE(copies_to_and_from_the_host) {
  const Blas blas;
  const auto host = Numbers<double>(12, 1);
  const OnDevice<double> device{std::vector<double>(12)};
  // The upper left 2 by 3 of 4 by 3, into a matrix of 3 rows.
  BLAS(cublasSetMatrix(2, 3, sizeof(double), host.data(), 4, device.get(), 3));
  std::vector<double> back(6);
  BLAS(cublasGetMatrix(2, 3, sizeof(double), device.get(), 3, back.data(), 2));
  BOOST_CHECK(back == std::vector<double>({host[0], host[1], host[4], host[5], host[8], host[9]}));
  BLAS(cublasSetVectorAsync(3, sizeof(double), host.data(), 4, device.get(), 2, nullptr));
  BLAS(cublasGetVectorAsync(3, sizeof(double), device.get(), 2, back.data(), 1, nullptr));
  OK(RAW(cuCtxSynchronize)());
  back.resize(3);
  BOOST_CHECK(back == std::vector<double>({host[0], host[4], host[8]}));
}

// Twice, with what is in memory at the time.
BOOST_AUTO_TEST_CASE(a_graph_computes_again) {
  const Blas blas;
  const OnDevice<float> x({1, 2}), y({0, 0});
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  BLAS(cublasSetStream(blas.handle, stream));
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const float factor = 2;
  BLAS(cublasSaxpy(blas.handle, 2, &factor, x.get(), 1, y.get(), 1));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  BOOST_CHECK(y.Read() == std::vector<float>({0, 0}));
  CUgraphExec exec = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) OK(RAW(cuGraphLaunch)(exec, stream));
  OK(RAW(cuStreamSynchronize)(stream));
  BOOST_CHECK(y.Read() == std::vector<float>({4, 8}));
  OK(RAW(cuGraphExecDestroy)(exec));
  OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_SUITE_END()
