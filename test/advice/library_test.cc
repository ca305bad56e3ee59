// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts of handles and codes of the toolkit's libraries advise is done.

#include <vector>

#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/libraries/cusparse.h"
#include "test/libraries/library_suite.h"

BOOST_AUTO_TEST_SUITE(library)

namespace {

using namespace cuguest_library_test;
namespace runtime = cuguest::runtime;
using runtime::CublasHandles;
using runtime::CublasScope;
using runtime::CufftPlans;
using runtime::CufftScope;
using Layout = CufftPlans::Layout;

constexpr Layout kLine = Layout::Line(8);

void CheckRefused(const absl::Status& status, StatusCode code,
                  const std::vector<std::string>& words) {
  const std::string no_refusal = NoRefusal(status, code, words);
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

}  // namespace

BOOST_AUTO_TEST_CASE(plan_is_prepared_before_a_capture) {
  const Owner home;
  CufftPlans plans;
  const auto borrow = [&] { return CufftScope(plans, kLine, StreamOf(home)).status(); };
  {
    const Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_DEFAULT);
    CheckRefused(borrow(), StatusCode::kFailedPrecondition,
                 {Advised("Call Prepare() before the capture begins")});
  }
  STATUS_OK(plans.Prepare(home.ref(), kLine));
  const Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_DEFAULT);
  STATUS_OK(borrow());
}

BOOST_AUTO_TEST_CASE(leading_dimension_that_was_checked) {
  const Owner home;
  CublasHandles handles;
  CublasScope scope(handles, StreamOf(home));
  STATUS_OK(scope.status());
  const auto memory = DeviceBuffer<float>::Allocate(home.ref(), 3 * 16).value();
  auto* const a = reinterpret_cast<float*>(memory.get());
  const float one = 1.0F;
  const auto multiply = [&](int leading) {
    return runtime::ToStatus(cublasSgemm(scope.handle(), CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a,
                                         leading, a + 16, 4, &one, a + 32, 4),
                             "multiply");
  };
  CheckRefused(multiply(1), StatusCode::kInvalidArgument,
               {Advised("check sizes, leading dimensions, increments and null pointers, and which "
                        "mode scalars are in")});
  STATUS_OK(multiply(4));
}

BOOST_AUTO_TEST_CASE(null_pointer_that_was_checked) {
  const Owner home;
  runtime::CusparseHandles handles;
  runtime::CusparseScope scope(handles, StreamOf(home));
  STATUS_OK(scope.status());
  int version = 0;
  const auto ask = [&](int* where) {
    return runtime::ToStatus(cusparseGetVersion(scope.handle(), where), "ask for the version");
  };
  CheckRefused(ask(nullptr), StatusCode::kInvalidArgument,
               {Advised("check sizes, index types, null pointers and descriptors")});
  STATUS_OK(ask(&version));
}

BOOST_AUTO_TEST_CASE(device_memory_that_was_freed, *cuguest_test::OnlySim()) {
  const Owner home;
  CublasHandles handles;
  size_t free_bytes = 0;
  size_t total = 0;
  CUdeviceptr all = 0;
  home.Enter();
  OK(RAW(cuMemGetInfo)(&free_bytes, &total));
  OK(RAW(cuMemAlloc)(&all, free_bytes));
  SetStack({});
  CheckRefused(CublasScope(handles, StreamOf(home)).status(), StatusCode::kResourceExhausted,
               {Advised("; free device memory, or")});
  OK(RAW(cuMemFree)(all));
  STATUS_OK(CublasScope(handles, StreamOf(home)).status());
}

// That it is the cause where a device is lost is seen in test/process/library_handles_test.cc.
BOOST_AUTO_TEST_CASE(earlier_error_is_not_the_cause, *cuguest_test::OnlySim()) {
  const Owner home;
  CufftPlans plans;
  CufftScope scope(plans, kLine, StreamOf(home));
  STATUS_OK(scope.status());
  CheckRefused(
      runtime::ToStatus(cufftExecC2C(scope.handle(), nullptr, nullptr, CUFFT_FORWARD), "transform"),
      StatusCode::kInternal,
      {Advised("wait for the stream to see whether an earlier error of the device is the cause")});
  STATUS_OK(StreamOf(home).Synchronize());
}

BOOST_AUTO_TEST_SUITE_END()
