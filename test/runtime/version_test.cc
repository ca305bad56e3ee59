// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/version.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/runtime/error.h"
#include "test/support/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(version)

namespace {

namespace runtime = cuguest::runtime;
using cudasim::Sim;

// The oldest driver that the runtime of this toolkit works with.
constexpr int kToolkit = CUDART_VERSION / 1000 * 1000;

int TheRuntime() {
  int version = 0;
  BOOST_TEST((cudaRuntimeGetVersion(&version) == cudaSuccess));
  return version;
}

bool PrimaryIsActive() {
  unsigned flags = 0;
  int active = 1;
  CHECK((*cuguest::Driver::Get())->DevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

CHILD(asks_first) {
  const absl::Status status = runtime::CanWork();
  CHECK(status.ok());
  CHECK(!PrimaryIsActive());
  return 0;
}

// The version is the runtime's own: it needs no driver, and loads none.
CHILD(asks_the_runtime_only) {
  int version = 0;
  CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(version >= 12000);
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  CHECK(!text.empty());
  CHECK(text.find("libcuda.so") == std::string::npos);
  return 0;
}

// The last major version's newest.
constexpr int kOlder = (CUDART_VERSION / 1000 - 1) * 1000 + 80;

CHILD(meets_an_older_driver) {
  Sim::SetDriverVersion(kOlder);
  const absl::Status status = runtime::CanWork();
  CHECK(runtime::RuntimeCodeOf(status) == cudaErrorInsufficientDriver);
  CHECK(cuguest::CodeOf(status) == CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  CHECK(runtime::Explain() == status.message());
  CHECK(absl::StrContains(runtime::Explain(), "cannot work here: the runtime is of CUDA "));
  return 0;
}

CHILD(finds_no_device) {
  Sim::SetDeviceCount(0);
  CHECK(cuguest::ProblemOf(runtime::CanWork()) == cuguest::Driver::Problem::kNoDevice);
  CHECK(runtime::RuntimeCodeOf(runtime::CanWork()) == cudaErrorNoDevice);
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_query_knows_the_runtime_too) {
  const cuguest::Versions versions = runtime::QueryVersions();
  BOOST_TEST(versions.toolkit == CUDART_VERSION);
  BOOST_TEST(versions.runtime == TheRuntime());
  BOOST_TEST(versions.driver == cuguest_test::TheDriver().version);
  BOOST_TEST(versions.problem.ok(), versions.problem);
}

BOOST_AUTO_TEST_CASE(one_call_says_that_cuda_can_work,
                     *cuguest_test::NeedsDriver(kToolkit,
                                                "an older one comes with an older runtime")) {
  BOOST_TEST(runtime::CanWork().ok(), runtime::CanWork());
  const std::string sentence = runtime::Explain();
  BOOST_TEST(absl::StartsWith(sentence, "CUDA can work here"));
  BOOST_TEST(absl::StrContains(sentence, ", runtime of CUDA "));
  BOOST_TEST_MESSAGE(sentence);
}

BOOST_AUTO_TEST_CASE(asking_leaves_the_last_error_and_the_stack) {
  const cuguest_test::OwnContext own;
  cuguest_test::SetStack({own.get()});
  BOOST_TEST((cudaSetDevice(99) != cudaSuccess));
  const cudaError_t before = cudaPeekAtLastError();
  BOOST_TEST((before != cudaSuccess));
  static_cast<void>(runtime::CanWork());
  BOOST_TEST(!runtime::Explain().empty());
  BOOST_TEST((cudaPeekAtLastError() == before));
  BOOST_TEST((cuguest_test::GetStack() == std::vector<CUcontext>{own.get()}));
  BOOST_TEST(!PrimaryIsActive());
  cudaGetLastError();
  cuguest_test::SetStack({});
}

BOOST_AUTO_TEST_CASE(the_first_question_creates_no_context,
                     *cuguest_test::NeedsDriver(kToolkit,
                                                "an older one comes with an older runtime")) {
  REQUIRE_CHILD_PASSES("asks_first");
}

BOOST_AUTO_TEST_CASE(the_runtimes_version_needs_no_driver) {
  REQUIRE_CHILD_PASSES("asks_the_runtime_only");
}

// The simulated runtime is of the driver's version, but of 12.0 at least.
BOOST_AUTO_TEST_CASE(a_runtime_of_another_major_version_is_refused,
                     *cuguest_test::OnlySim() *
                         cuguest_test::NeedsDriverBefore(kToolkit, "it has the toolkit's")) {
  const absl::Status status = runtime::CanWork();
  const std::string text(status.message());
  if (cuguest_test::HasDriver(12000)) {
    BOOST_TEST((status.code() == absl::StatusCode::kFailedPrecondition), status);
    BOOST_TEST(absl::StrContains(text, "runs with the runtime of CUDA 12."), text);
  } else {
    BOOST_TEST((runtime::RuntimeCodeOf(status) == cudaErrorInsufficientDriver), status);
    BOOST_TEST(absl::StrContains(text, "the runtime is of CUDA 12.0 and needs driver "), text);
  }
  BOOST_TEST(runtime::Explain() == text);
}

BOOST_AUTO_TEST_CASE(what_stands_in_the_way_is_found,
                     *cuguest_test::OnlySim() *
                         cuguest_test::NeedsDriver(kToolkit,
                                                   "an older one comes with an older runtime")) {
  REQUIRE_CHILD_PASSES("meets_an_older_driver");
  REQUIRE_CHILD_PASSES("finds_no_device");
}

BOOST_AUTO_TEST_SUITE_END()
