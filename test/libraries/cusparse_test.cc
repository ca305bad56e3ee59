// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/cusparse.h"

#include "test/libraries/library_suite.h"

namespace {

using namespace cuguest_library_test;
namespace runtime = cuguest::runtime;
using runtime::CusparseHandles;
using runtime::CusparseScope;

constexpr int kSize = 8;

// Twice the identity, times 1, 2, 3...
class Product {
 public:
  explicit Product(const ContextRef& context)
      : context_(context), memory_(DeviceBuffer<std::byte>::Allocate(context, 8 * kRow).value()) {
    std::vector<int> rows(kSize + 1);
    std::vector<float> twos(kSize, 2.0F);
    std::vector<float> values(kSize);
    for (int i = 0; i <= kSize; ++i) rows[static_cast<size_t>(i)] = i;
    for (size_t i = 0; i < kSize; ++i) values[i] = static_cast<float>(i + 1);
    const ContextGuard guard(context_);
    OK(RAW(cuMemcpyHtoD)(At(0), rows.data(), rows.size() * sizeof(int)));
    OK(RAW(cuMemcpyHtoD)(At(1), rows.data(), kSize * sizeof(int)));
    OK(RAW(cuMemcpyHtoD)(At(2), twos.data(), kSize * sizeof(float)));
    OK(RAW(cuMemcpyHtoD)(At(3), values.data(), kSize * sizeof(float)));
    BOOST_TEST(cusparseCreateCsr(&matrix_, kSize, kSize, kSize, Pointer(0), Pointer(1), Pointer(2),
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                 CUDA_R_32F) == CUSPARSE_STATUS_SUCCESS);
    BOOST_TEST(cusparseCreateDnVec(&input_, kSize, Pointer(3), CUDA_R_32F) ==
               CUSPARSE_STATUS_SUCCESS);
    BOOST_TEST(cusparseCreateDnVec(&output_, kSize, Pointer(4), CUDA_R_32F) ==
               CUSPARSE_STATUS_SUCCESS);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    BOOST_TEST(cusparseDestroySpMat(matrix_) == CUSPARSE_STATUS_SUCCESS);
    BOOST_TEST(cusparseDestroyDnVec(input_) == CUSPARSE_STATUS_SUCCESS);
    BOOST_TEST(cusparseDestroyDnVec(output_) == CUSPARSE_STATUS_SUCCESS);
  }

  absl::Status Run(CusparseScope& scope) {
    const float one = 1.0F;
    const float zero = 0.0F;
    size_t bytes = 0;
    BOOST_TEST(cusparseSpMV_bufferSize(scope.handle(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                       matrix_, input_, &zero, output_, CUDA_R_32F,
                                       CUSPARSE_SPMV_ALG_DEFAULT,
                                       &bytes) == CUSPARSE_STATUS_SUCCESS);
    BOOST_TEST_REQUIRE(bytes <= 3 * kRow);
    return runtime::ToStatus(
        cusparseSpMV(scope.handle(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, input_, &zero,
                     output_, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, Pointer(5)),
        "multiply");
  }

  bool IsRight() {
    const ContextGuard guard(context_);
    std::vector<float> host(kSize);
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuMemcpyDtoH)(host.data(), At(4), kSize * sizeof(float)));
    OK(RAW(cuMemsetD8)(At(4), 0, kSize * sizeof(float)));
    for (size_t i = 0; i < kSize; ++i) {
      if (host[i] != 2.0F * static_cast<float>(i + 1)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kRow = 4096;
  CUdeviceptr At(size_t row) const { return memory_.get() + row * kRow; }
  void* Pointer(size_t row) const { return reinterpret_cast<void*>(At(row)); }

  ContextRef context_;
  DeviceBuffer<std::byte> memory_;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t input_ = nullptr;
  cusparseDnVecDescr_t output_ = nullptr;
};

struct Cusparse {
  using Handles = CusparseHandles;
  using Scope = CusparseScope;
  using Work = Product;
  static constexpr char kSoname[] = "libcusparse.so.12";
  static constexpr char kCreate[] = "cusparseCreate";
  static constexpr char kDestroy[] = "cusparseDestroy";
  static constexpr bool kMakesInCaptures = true;
  static constexpr cusparseHandle_t kNoHandle = nullptr;
  template <typename AnyStream>
  static Scope Borrow(Handles& handles, const AnyStream& stream) {
    return {handles, stream};
  }
  static absl::Status Prepare(Handles& handles, const ContextRef& context, size_t count) {
    return handles.Prepare(context, count);
  }
  static cusparseHandle_t Handle(const Scope& scope) { return scope.handle(); }
  static bool IsFresh(const Scope& scope) {
    cusparsePointerMode_t mode = CUSPARSE_POINTER_MODE_DEVICE;
    return cusparseGetPointerMode(scope.handle(), &mode) == CUSPARSE_STATUS_SUCCESS &&
           mode == CUSPARSE_POINTER_MODE_HOST;
  }
  static bool Spoil(const Scope& scope) {
    return cusparseSetPointerMode(scope.handle(), CUSPARSE_POINTER_MODE_DEVICE) ==
           CUSPARSE_STATUS_SUCCESS;
  }
  static bool SetStream(const Scope& scope, CUstream stream) {
    return cusparseSetStream(scope.handle(), stream) == CUSPARSE_STATUS_SUCCESS;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cusparse)

LIBRARY_SUITE(Cusparse)

// The words of cuguest are cuSPARSE's.
BOOST_AUTO_TEST_CASE(statuses_have_the_librarys_words) {
  STATUS_OK(runtime::ToStatus(CUSPARSE_STATUS_SUCCESS, "do nothing"));
  BOOST_TEST((runtime::CusparseCodeOf(absl::OkStatus()) == CUSPARSE_STATUS_SUCCESS));
  BOOST_TEST(!runtime::CusparseCodeOf(absl::InternalError("")).has_value());
  for (int code = 1; code <= CUSPARSE_STATUS_INSUFFICIENT_RESOURCES; ++code) {
    const auto error = static_cast<cusparseStatus_t>(code);
    const absl::Status status = runtime::ToStatus(error, "multiply");
    const std::string no_refusal =
        NoRefusal(status, status.code(),
                  {std::string("multiply: ") + cusparseGetErrorName(error) + " (" +
                   std::to_string(code) + "): " + cusparseGetErrorString(error)});
    BOOST_TEST(no_refusal.empty(), no_refusal);
    BOOST_TEST((runtime::CusparseCodeOf(status) == error));
  }
}

BOOST_AUTO_TEST_SUITE_END()
