// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/cusolver.h"

#include "test/libraries/library_suite.h"

namespace {

using namespace cuguest_library_test;
namespace runtime = cuguest::runtime;
using runtime::CusolverDnHandles;
using runtime::CusolverDnScope;

constexpr int kSize = 4;
constexpr size_t kCount = kSize * kSize;
constexpr size_t kWorkspace = 4096;  // elements

// The Cholesky factor of four times the identity, which is twice the identity.
class Factor {
 public:
  explicit Factor(const ContextRef& context)
      : context_(context),
        memory_(DeviceBuffer<float>::Allocate(context, 3 * kCount + kWorkspace).value()) {
    std::vector<float> host(kCount, 0.0F);
    for (size_t i = 0; i < kSize; ++i) host[i * (kSize + 1)] = 4.0F;
    const ContextGuard guard(context_);
    OK(RAW(cuMemcpyHtoD)(memory_.get(), host.data(), kBytes));
  }

  absl::Status Run(CusolverDnScope& scope) {
    cudaStream_t stream = nullptr;
    BOOST_TEST(cusolverDnGetStream(scope.handle(), &stream) == CUSOLVER_STATUS_SUCCESS);
    OK(RAW(cuMemcpyDtoDAsync)(result(), memory_.get(), kBytes, reinterpret_cast<CUstream>(stream)));
    auto* const matrix = reinterpret_cast<float*>(result());
    int elements = 0;
    BOOST_TEST(cusolverDnSpotrf_bufferSize(scope.handle(), CUBLAS_FILL_MODE_LOWER, kSize, matrix,
                                           kSize, &elements) == CUSOLVER_STATUS_SUCCESS);
    BOOST_TEST_REQUIRE(static_cast<size_t>(elements) <= kWorkspace);
    auto* const info = reinterpret_cast<int*>(memory_.get() + 2 * kBytes);
    return runtime::ToStatus(cusolverDnSpotrf(scope.handle(), CUBLAS_FILL_MODE_LOWER, kSize, matrix,
                                              kSize, matrix + 2 * kCount, elements, info),
                             "factorise");
  }

  bool IsRight() {
    const ContextGuard guard(context_);
    std::vector<float> host(kCount);
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuMemcpyDtoH)(host.data(), result(), kBytes));
    OK(RAW(cuMemsetD8)(result(), 0, kBytes));
    for (size_t i = 0; i < kSize; ++i) {
      if (host[i * (kSize + 1)] != 2.0F) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kBytes = kCount * sizeof(float);
  CUdeviceptr result() const { return memory_.get() + kBytes; }

  ContextRef context_;
  DeviceBuffer<float> memory_;
};

struct Cusolver {
  using Handles = CusolverDnHandles;
  using Scope = CusolverDnScope;
  using Work = Factor;
  static constexpr char kSoname[] = "libcusolver.so.12";
  static constexpr char kCreate[] = "cusolverDnCreate";
  static constexpr char kDestroy[] = "cusolverDnDestroy";
  static constexpr bool kMakesInCaptures = true;
  static constexpr cusolverDnHandle_t kNoHandle = nullptr;
  template <typename AnyStream>
  static Scope Borrow(Handles& handles, const AnyStream& stream) {
    return {handles, stream};
  }
  static absl::Status Prepare(Handles& handles, const ContextRef& context, size_t count) {
    return handles.Prepare(context, count);
  }
  static cusolverDnHandle_t Handle(const Scope& scope) { return scope.handle(); }
  static bool IsFresh(const Scope& scope) {
    cusolverDeterministicMode_t mode = CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS;
    return cusolverDnGetDeterministicMode(scope.handle(), &mode) == CUSOLVER_STATUS_SUCCESS &&
           mode == CUSOLVER_DETERMINISTIC_RESULTS;
  }
  static bool Spoil(const Scope& scope) {
    return cusolverDnSetDeterministicMode(
               scope.handle(), CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS) == CUSOLVER_STATUS_SUCCESS;
  }
  static bool SetStream(const Scope& scope, CUstream stream) {
    return cusolverDnSetStream(scope.handle(), stream) == CUSOLVER_STATUS_SUCCESS;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cusolver)

LIBRARY_SUITE(Cusolver)

BOOST_AUTO_TEST_CASE(statuses_have_names) {
  STATUS_OK(runtime::ToStatus(CUSOLVER_STATUS_SUCCESS, "do nothing"));
  const absl::Status status = runtime::ToStatus(CUSOLVER_STATUS_INVALID_VALUE, "factorise");
  const std::string no_refusal = NoRefusal(status, StatusCode::kInvalidArgument,
                                           {"factorise: CUSOLVER_STATUS_INVALID_VALUE (3): "});
  BOOST_TEST(no_refusal.empty(), no_refusal);
  BOOST_TEST((runtime::CusolverCodeOf(status) == CUSOLVER_STATUS_INVALID_VALUE));
  BOOST_TEST((runtime::CusolverCodeOf(absl::OkStatus()) == CUSOLVER_STATUS_SUCCESS));
  BOOST_TEST(!runtime::CusolverCodeOf(absl::InternalError("")).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
