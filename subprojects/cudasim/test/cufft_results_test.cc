// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuFFT computes, against sums by the definition. Of the simulation and of the real
// one.

#include <cufft.h>

#include <algorithm>
#include <cmath>

#include "test/library.h"

BOOST_AUTO_TEST_SUITE(cufft_results)

using namespace cudasim_facts;

#define FFT(call) BOOST_CHECK_EQUAL((call), CUFFT_SUCCESS)

namespace {

using Complex = std::complex<double>;

struct Plan {
  ~Plan() { FFT(cufftDestroy(number)); }
  cufftHandle number = CUFFT_PLAN_NULL;
};

// The transform of a box, by the definition.
std::vector<Complex> Transform(const std::vector<Complex>& values, int n0, int n1, int n2,
                               int sign) {
  std::vector<Complex> result(values.size());
  const auto at = [=](int i0, int i1, int i2) {
    return static_cast<size_t>((i0 * n1 + i1) * n2 + i2);
  };
  const auto for_each = [=](const auto& function) {
    for (int i0 = 0; i0 < n0; ++i0) {
      for (int i1 = 0; i1 < n1; ++i1) {
        for (int i2 = 0; i2 < n2; ++i2) function(i0, i1, i2);
      }
    }
  };
  for_each([&](int k0, int k1, int k2) {
    for_each([&](int i0, int i1, int i2) {
      const double turns = 1.0 * k0 * i0 / n0 + 1.0 * k1 * i1 / n1 + 1.0 * k2 * i2 / n2;
      result[at(k0, k1, k2)] +=
          values[at(i0, i1, i2)] * std::polar(1.0, sign * 2 * 3.14159265358979323846 * turns);
    });
  });
  return result;
}

template <typename T, typename Expected>
void CheckClose(const std::vector<T>& values, const std::vector<Expected>& expected,
                double error = 1e-9) {
  BOOST_REQUIRE(values.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::abs(Complex(values[i]) - Complex(expected[i])));
  }
  BOOST_TEST(largest < error);
}

std::vector<double> RealOf(const std::vector<Complex>& values) {
  std::vector<double> result;
  for (const Complex& value : values) result.push_back(value.real());
  return result;
}

// The half of each row of `n` that is there.
std::vector<Complex> HalfRows(const std::vector<Complex>& values, size_t n) {
  std::vector<Complex> result;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % n <= n / 2) result.push_back(values[i]);
  }
  return result;
}

void CheckLine(int n) {
  BOOST_TEST_CONTEXT(n) {
    const Current current;
    const auto values = Numbers<Complex>(static_cast<size_t>(n), 1);
    const OnDevice<Complex> input(values);
    const OnDevice<Complex> output{std::vector<Complex>(values.size())};
    auto* to = output.get<cufftDoubleComplex>();
    Plan plan;
    FFT(cufftPlan1d(&plan.number, n, CUFFT_Z2Z, 1));
    FFT(cufftExecZ2Z(plan.number, input.get<cufftDoubleComplex>(), to, CUFFT_FORWARD));
    CheckClose(output.Read(), Transform(values, 1, 1, n, -1));
    FFT(cufftExecZ2Z(plan.number, to, to, CUFFT_INVERSE));
    auto scaled = values;
    for (Complex& value : scaled) value *= n;
    CheckClose(output.Read(), scaled);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(lines_there_and_back) {
  for (const int n : {2, 7, 12, 16, 131}) CheckLine(n);
}

BOOST_AUTO_TEST_CASE(a_batch_in_single_precision) {
  const Current current;
  const auto values = Numbers<std::complex<float>>(3 * 8, 1);
  const OnDevice<std::complex<float>> data(values);
  Plan plan;
  FFT(cufftPlan1d(&plan.number, 8, CUFFT_C2C, 3));
  FFT(cufftExecC2C(plan.number, data.get<cufftComplex>(), data.get<cufftComplex>(), CUFFT_INVERSE));
  std::vector<Complex> expected;
  for (auto first = values.begin(); first != values.end(); first += 8) {
    const auto one = Transform(std::vector<Complex>(first, first + 8), 1, 1, 8, 1);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  CheckClose(data.Read(), expected, 1e-4);
}

BOOST_AUTO_TEST_CASE(planes_and_volumes) {
  const Current current;
  const auto values = Numbers<Complex>(60, 1);
  const OnDevice<Complex> input(values);
  const OnDevice<Complex> output{std::vector<Complex>(60)};
  Plan plane;
  FFT(cufftPlan2d(&plane.number, 12, 5, CUFFT_Z2Z));
  FFT(cufftExecZ2Z(plane.number, input.get<cufftDoubleComplex>(), output.get<cufftDoubleComplex>(),
                   CUFFT_FORWARD));
  CheckClose(output.Read(), Transform(values, 1, 12, 5, -1));
  Plan volume;
  FFT(cufftPlan3d(&volume.number, 3, 4, 5, CUFFT_Z2Z));
  FFT(cufftExecZ2Z(volume.number, input.get<cufftDoubleComplex>(), output.get<cufftDoubleComplex>(),
                   CUFFT_FORWARD));
  CheckClose(output.Read(), Transform(values, 3, 4, 5, -1));
}

BOOST_AUTO_TEST_CASE(real_to_complex_and_back) {
  const Current current;
  for (const int n : {6, 7}) {
    const auto size = static_cast<size_t>(n);
    const auto numbers = Numbers<double>(4 * size, 1);
    const OnDevice<double> real(numbers);
    const std::vector<Complex> half(4 * (size / 2 + 1));
    const OnDevice<Complex> complex(half);
    Plan there, back;
    FFT(cufftPlan2d(&there.number, 4, n, CUFFT_D2Z));
    FFT(cufftPlan2d(&back.number, 4, n, CUFFT_Z2D));
    auto* to = complex.get<cufftDoubleComplex>();
    FFT(cufftExecD2Z(there.number, real.get(), to));
    const auto all = Transform({numbers.begin(), numbers.end()}, 1, 4, n, -1);
    CheckClose(complex.Read(), HalfRows(all, size));
    FFT(cufftExecZ2D(back.number, to, real.get()));
    CheckClose(real.Read(), RealOf(Transform(all, 1, 4, n, 1)));
  }
}

// In place the rows of what is real are padded to those of what is complex.
BOOST_AUTO_TEST_CASE(real_in_place) {
  const Current current;
  const std::vector<double> rows = {1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0};
  const OnDevice<double> data(rows);
  Plan plan;
  FFT(cufftPlan1d(&plan.number, 5, CUFFT_D2Z, 2));
  FFT(cufftExecD2Z(plan.number, data.get(), data.get<cufftDoubleComplex>()));
  std::vector<double> expected;
  for (const size_t row : {size_t{0}, size_t{6}}) {
    const std::vector<Complex> one(rows.begin() + static_cast<long>(row),
                                   rows.begin() + static_cast<long>(row) + 5);
    for (const Complex& value : HalfRows(Transform(one, 1, 1, 5, -1), 5)) {
      expected.insert(expected.end(), {value.real(), value.imag()});
    }
  }
  CheckClose(data.Read(), expected);
}

// Every second number of three rows that lie ten apart, into columns.
BOOST_AUTO_TEST_CASE(strides_and_distances) {
  const Current current;
  const auto values = Numbers<Complex>(30, 1);
  const OnDevice<Complex> input(values);
  const OnDevice<Complex> output{std::vector<Complex>(15)};
  Plan plan;
  int n[] = {5}, embed[] = {5};
  FFT(cufftPlanMany(&plan.number, 1, n, embed, 2, 10, embed, 3, 1, CUFFT_Z2Z, 3));
  FFT(cufftExecZ2Z(plan.number, input.get<cufftDoubleComplex>(), output.get<cufftDoubleComplex>(),
                   CUFFT_FORWARD));
  std::vector<Complex> expected(15);
  for (size_t batch = 0; batch < 3; ++batch) {
    std::vector<Complex> one;
    for (size_t i = 0; i < 5; ++i) one.push_back(values[10 * batch + 2 * i]);
    const auto result = Transform(one, 1, 1, 5, -1);
    for (size_t i = 0; i < 5; ++i) expected[3 * i + batch] = result[i];
  }
  CheckClose(output.Read(), expected);
}

BOOST_AUTO_TEST_CASE(the_callers_work_area_in_a_graph) {
  const Current current;
  constexpr int kSize = 1 << 16;
  std::vector<std::complex<float>> impulse(kSize);
  impulse[0] = 2;
  const OnDevice<std::complex<float>> input(impulse);
  const OnDevice<std::complex<float>> output{std::vector<std::complex<float>>(kSize)};
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  Plan plan;
  size_t bytes = 0;
  FFT(cufftCreate(&plan.number));
  FFT(cufftSetAutoAllocation(plan.number, 0));
  FFT(cufftMakePlan1d(plan.number, kSize, CUFFT_C2C, 1, &bytes));
  BOOST_TEST(bytes > 0u);
  const OnDevice<char> area{std::vector<char>(bytes)};
  FFT(cufftSetWorkArea(plan.number, area.get()));
  FFT(cufftSetStream(plan.number, stream));
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  FFT(cufftExecC2C(plan.number, input.get<cufftComplex>(), output.get<cufftComplex>(),
                   CUFFT_FORWARD));
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  CUgraphExec exec = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  OK(RAW(cuGraphLaunch)(exec, stream));
  OK(RAW(cuStreamSynchronize)(stream));
  CheckClose(output.Read(), std::vector<std::complex<float>>(kSize, 2), 1e-5);
  OK(RAW(cuGraphExecDestroy)(exec));
  OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(sizes_that_are_asked_for_are_those_of_the_plan) {
  const Current current;
  size_t estimate = 0, made = 0, asked = 0;
  Plan plan;
  FFT(cufftEstimate1d(1 << 16, CUFFT_C2C, 1, &estimate));
  FFT(cufftCreate(&plan.number));
  FFT(cufftMakePlan1d(plan.number, 1 << 16, CUFFT_C2C, 1, &made));
  FFT(cufftGetSize(plan.number, &asked));
  BOOST_TEST(estimate == size_t{1} << 19);
  BOOST_TEST(made == estimate);
  BOOST_TEST(asked == estimate);
}

BOOST_AUTO_TEST_SUITE_END()
