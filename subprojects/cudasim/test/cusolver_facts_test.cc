// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuSOLVER, dense, as a program with contexts of its own sees it.

#include <cusolverDn.h>

#include <memory>
#include <utility>

#include "test/math_library.h"

BOOST_AUTO_TEST_SUITE(cusolver_facts)

using namespace cudasim_facts;

namespace {

constexpr int kSize = 64;

struct Solver {
  static constexpr int kDeadContext = CUSOLVER_STATUS_INTERNAL_ERROR;
  static constexpr int kRefused = CUSOLVER_STATUS_INTERNAL_ERROR;
  static constexpr int kElsewhere = CUSOLVER_STATUS_SUCCESS;
  static constexpr int kImplicit = CUSOLVER_STATUS_INTERNAL_ERROR;
  static constexpr int kForkedCreate = CUSOLVER_STATUS_NOT_INITIALIZED;
  static constexpr int kForkedRun = CUSOLVER_STATUS_INTERNAL_ERROR;
  static constexpr bool kCreateBinds = true;
  static constexpr bool kRunBinds = true;
  static constexpr bool kDestroyBinds = true;

  struct Data {
    Values<float> matrix{Diagonal(4)};
    Values<float> work{std::vector<float>(1 << 16, 0)};
    Values<int> info{{-1}};
  };
  static std::vector<float> Diagonal(float value) {
    std::vector<float> matrix(kSize * kSize, 0);
    for (size_t i = 0; i < kSize; ++i) matrix[i * kSize + i] = value;
    return matrix;
  }

  ~Solver() {
    if (handle != nullptr) Destroy();
  }
  int Create() {
    const int status = cusolverDnCreate(&handle);
    if (status != 0) handle = nullptr;
    return status;
  }
  int SetStream(CUstream stream) { return cusolverDnSetStream(handle, stream); }
  int Destroy() { return cusolverDnDestroy(std::exchange(handle, nullptr)); }
  int Run() {
    return cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_LOWER, kSize, data->matrix.get(), kSize,
                            data->work.get(), 1 << 16, data->info.get());
  }
  void Fill() { data = std::make_unique<Data>(); }
  void Clear() { data->matrix.Write(Diagonal(4)); }
  bool IsRight() const {
    return data->matrix.Read() == Diagonal(2) && data->info.Read() == std::vector<int>{0};
  }

  cusolverDnHandle_t handle = nullptr;
  std::unique_ptr<Data> data;
};

}  // namespace

CUDASIM_MATH_FACTS(Solver)

BOOST_AUTO_TEST_CASE(what_ends_captures) {
  CheckCreatingInCaptures<Solver>();
  CheckUsingInCaptures<Solver>(Ends::kAll);
  CheckInCaptures<Solver>({{"run beside the capture", Ends::kNone, 0,
                            [](Solver& solver, const Guest&) { return solver.Run(); }}});
}

BOOST_AUTO_TEST_CASE(destroying_a_handle_waits_for_its_context) {
  CheckDestroyingWaits<Solver>();
  CheckCreatingDoesNotWait<Solver>();
}

BOOST_AUTO_TEST_CASE(a_graph_outlives_the_handle) {
  const Guest guest;
  Ready<Solver> solver(guest);
  const Captured<Solver> captured(solver, guest);
  FINE(solver.Destroy());
  captured.CheckReplay(solver);
}

BOOST_AUTO_TEST_CASE(how_much_it_needs) {
  const Guest guest;
  Solver solver;
  solver.Fill();
  FINE(solver.Create());
  int size = 0;
  FINE(cusolverDnSpotrf_bufferSize(solver.handle, CUBLAS_FILL_MODE_LOWER, kSize,
                                   solver.data->matrix.get(), kSize, &size));
  BOOST_TEST(size > 0);
  BOOST_TEST(size <= (1 << 16));
  BOOST_CHECK_EQUAL(cusolverDnSpotrf_bufferSize(solver.handle, OutOfRange<cublasFillMode_t>(9),
                                                kSize, solver.data->matrix.get(), kSize, &size),
                    CUSOLVER_STATUS_INVALID_VALUE);
  int version = 0;
  FINE(cusolverGetProperty(MAJOR_VERSION, &version));
  BOOST_TEST(version == CUSOLVER_VER_MAJOR);
}

BOOST_AUTO_TEST_SUITE_END()
