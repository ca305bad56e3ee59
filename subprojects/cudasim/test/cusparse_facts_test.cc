// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuSPARSE, as a program with contexts of its own sees it.

#include <cusparse.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "test/math_library.h"

BOOST_AUTO_TEST_SUITE(cusparse_facts)

using namespace cudasim_facts;

namespace {

constexpr int kSize = 1024;

struct Sparse {
  static constexpr int kDeadContext = CUSPARSE_STATUS_NOT_INITIALIZED;
  static constexpr int kRefused = CUSPARSE_STATUS_NOT_INITIALIZED;
  static constexpr int kElsewhere = CUSPARSE_STATUS_SUCCESS;
  static constexpr int kImplicit = CUSPARSE_STATUS_INTERNAL_ERROR;
  static constexpr int kForkedCreate = CUSPARSE_STATUS_NOT_INITIALIZED;
  static constexpr int kForkedRun = CUSPARSE_STATUS_INTERNAL_ERROR;
  static constexpr bool kCreateBinds = true;
  static constexpr bool kRunBinds = true;
  static constexpr bool kDestroyBinds = false;

  // Twice the unit matrix, and vectors.
  struct Data {
    Data() {
      FINE(cusparseCreateCsr(&matrix, kSize, kSize, kSize, rows.get(), columns.get(), values.get(),
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                             CUDA_R_32F));
      FINE(cusparseCreateDnVec(&in, kSize, x.get(), CUDA_R_32F));
      FINE(cusparseCreateDnVec(&out, kSize, y.get(), CUDA_R_32F));
    }
    ~Data() {
      FINE(cusparseDestroyDnVec(out));
      FINE(cusparseDestroyDnVec(in));
      FINE(cusparseDestroySpMat(matrix));
    }
    static std::vector<int> Upwards(size_t size) {
      std::vector<int> numbers(size);
      std::iota(numbers.begin(), numbers.end(), 0);
      return numbers;
    }

    Values<int> rows{Upwards(kSize + 1)};
    Values<int> columns{Upwards(kSize)};
    Values<float> values{std::vector<float>(kSize, 2)};
    Values<float> x{std::vector<float>(kSize, 1)};
    Values<float> y{std::vector<float>(kSize, 0)};
    Values<char> buffer{std::vector<char>(1 << 16, 0)};
    cusparseSpMatDescr_t matrix = nullptr;
    cusparseDnVecDescr_t in = nullptr;
    cusparseDnVecDescr_t out = nullptr;
  };

  ~Sparse() {
    if (handle != nullptr) Destroy();
  }
  int Create() {
    const int status = cusparseCreate(&handle);
    if (status != 0) handle = nullptr;
    return status;
  }
  int SetStream(CUstream stream) { return cusparseSetStream(handle, stream); }
  int Destroy() { return cusparseDestroy(std::exchange(handle, nullptr)); }
  int Run() { return Multiply(&data->matrix, CUDA_R_32F); }
  int Multiply(cusparseSpMatDescr_t* matrix, cudaDataType compute) {
    const float alpha = 1;
    const float beta = 0;
    return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                        matrix != nullptr ? *matrix : nullptr, data->in, &beta, data->out, compute,
                        CUSPARSE_SPMV_ALG_DEFAULT, data->buffer.get());
  }
  void Fill() { data = std::make_unique<Data>(); }
  void Clear() { data->y.Write(std::vector<float>(kSize, 0)); }
  bool IsRight() const { return data->y.Read() == std::vector<float>(kSize, 2); }

  cusparseHandle_t handle = nullptr;
  std::unique_ptr<Data> data;
};

}  // namespace

CUDASIM_MATH_FACTS(Sparse)

BOOST_AUTO_TEST_CASE(what_ends_captures) {
  CheckCreatingInCaptures<Sparse>();
  CheckUsingInCaptures<Sparse>(Ends::kNone);
  CheckInCaptures<Sparse>({{"run beside the capture", Ends::kNone, 0,
                            [](Sparse& sparse, const Guest&) { return sparse.Run(); }}});
}

BOOST_AUTO_TEST_CASE(a_graph_outlives_the_handle) {
  const Guest guest;
  Ready<Sparse> sparse(guest);
  const Captured<Sparse> captured(sparse, guest);
  FINE(sparse.Destroy());
  captured.CheckReplay(sparse);
}

BOOST_AUTO_TEST_CASE(a_handle_whose_context_is_over_is_destroyed) {
  const Guest guest;
  OwnContext context;
  SetStack({context.get()});
  Sparse sparse;
  FINE(sparse.Create());
  SetStack({guest.context.get()});
  OK(RAW(cuCtxDestroy)(context.release()));
  FINE(sparse.SetStream(guest.stream));
  FINE(sparse.Destroy());
  FINE(sparse.Create());
  sparse.Fill();
  FINE(sparse.Run());
  BOOST_TEST(sparse.IsRight());
}

// One of a primary context works in its next incarnation.
CHILD(primary_is_revived) {
  CUcontext primary = nullptr;
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  SetStack({primary});
  Sparse sparse;
  CHECK(sparse.Create() == 0);
  CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  sparse.Fill();
  CHECK(sparse.SetStream(stream) == 0);
  CHECK(sparse.Run() == 0);
  CHECK(sparse.IsRight());
  CHECK(sparse.Destroy() == 0);
  return 0;
}

BOOST_AUTO_TEST_CASE(a_handle_of_an_earlier_incarnation_of_the_primary_context) {
  REQUIRE_CHILD_PASSES("primary_is_revived");
}

BOOST_AUTO_TEST_CASE(bad_arguments) {
  const Guest guest;
  Sparse sparse;
  sparse.Fill();
  BOOST_CHECK_EQUAL(sparse.Run(), CUSPARSE_STATUS_INVALID_VALUE);
  BOOST_CHECK_EQUAL(sparse.SetStream(nullptr), CUSPARSE_STATUS_INVALID_VALUE);
  FINE(cusparseDestroy(nullptr));
  BOOST_CHECK_EQUAL(cusparseCreate(nullptr), CUSPARSE_STATUS_INVALID_VALUE);
  FINE(sparse.Create());
  BOOST_CHECK_EQUAL(sparse.Multiply(nullptr, CUDA_R_32F), CUSPARSE_STATUS_INVALID_VALUE);
  BOOST_CHECK_EQUAL(sparse.Multiply(&sparse.data->matrix, CUDA_R_64F),
                    CUSPARSE_STATUS_NOT_SUPPORTED);
  cusparseDnVecDescr_t vector = nullptr;
  BOOST_CHECK_EQUAL(cusparseCreateDnVec(&vector, -1, nullptr, CUDA_R_32F),
                    CUSPARSE_STATUS_INVALID_VALUE);
  int version = 0;
  FINE(cusparseGetVersion(sparse.handle, &version));
  BOOST_TEST(version / 1000 == CUSPARSE_VER_MAJOR);
  BOOST_CHECK_EQUAL(cusparseGetErrorString(CUSPARSE_STATUS_INVALID_VALUE),
                    std::string("invalid value"));
}

BOOST_AUTO_TEST_SUITE_END()
