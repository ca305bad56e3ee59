// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/last_error_scope.h"

#include <memory>
#include <string>
#include <thread>

#include "test/runtime/runtime.h"

BOOST_AUTO_TEST_SUITE(last_error_scope)

namespace {

using namespace cuguest_runtime_test;
using cuguest::Incident;
using cuguest::runtime::LastErrorScope;
using cuguest::runtime::RuntimeCodeOf;
using cuguest_test::TakeIncidents;

// Each leaves its error as the thread's last one.
cudaError_t SetABadDevice() { return cudaSetDevice(4711); }
cudaError_t AllocateTooMuch() {
  void* pointer = nullptr;
  return cudaMalloc(&pointer, size_t{1} << 60);
}

// In a context of its own, so that the runtime needs no other; without a last error.
struct InAContext {
  InAContext() {
    SetStack({context.get()});
    BOOST_CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
  }
  ~InAContext() {
    static_cast<void>(cudaGetLastError());
    SetStack({});
  }
  OwnContext context;
};

bool Mentions(const absl::Status& status, const std::string& word) {
  return status.message().find(word) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(nothing_happened, InAContext) {
  LastErrorScope scope;
  BOOST_CHECK_EQUAL(scope.before(), cudaSuccess);
  void* pointer = nullptr;
  RT_OK(scope.Note(cudaMalloc(&pointer, 64), "cudaMalloc"));
  RT_OK(scope.Note(cudaFree(pointer), "cudaFree"));
  BOOST_TEST(scope.Check().ok());
  BOOST_TEST(scope.Leave());
}

BOOST_FIXTURE_TEST_CASE(the_first_culprit_is_named_and_its_error_taken_back, InAContext) {
  {
    LastErrorScope scope;
    BOOST_CHECK_EQUAL(scope.Note(AllocateTooMuch(), "cudaMalloc"), cudaErrorMemoryAllocation);
    BOOST_CHECK_EQUAL(scope.Note(SetABadDevice(), "cudaSetDevice"), cudaErrorInvalidDevice);
    const absl::Status status = scope.Check();
    BOOST_TEST(Mentions(status, "cudaMalloc left another"), status.ToString());
    BOOST_TEST(Mentions(status, "was cudaSuccess"), status.ToString());
    BOOST_TEST((RuntimeCodeOf(status) == cudaErrorInvalidDevice));
  }
  BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaSuccess);
  BOOST_TEST(TakeIncidents().empty());
}

BOOST_FIXTURE_TEST_CASE(on_another_thread_its_end_takes_no_error, InAContext) {
  auto scope = std::make_unique<LastErrorScope>();
  std::thread([&] {
    static_cast<void>(SetABadDevice());
    BOOST_TEST(!scope->Leave());
    BOOST_CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidDevice);
  }).join();
  BOOST_TEST(scope->Leave());
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == cuguest::Incident::Kind::kElsewhere));
}

BOOST_FIXTURE_TEST_CASE(an_error_that_nobody_noted_is_an_incident, InAContext) {
  {
    LastErrorScope scope;
    static_cast<void>(SetABadDevice());
    BOOST_TEST(Mentions(scope.Check(), "a call that was not noted"), scope.Check().ToString());
  }
  BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaSuccess);
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].kind == Incident::Kind::kLastError));
  BOOST_TEST((incidents[0].repair == Incident::Repair::kRepaired));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_INVALID_DEVICE);
  BOOST_TEST(std::string(incidents[0].file) == __FILE__);
}

BOOST_FIXTURE_TEST_CASE(the_callers_own_error_stays, InAContext) {
  static_cast<void>(SetABadDevice());
  {
    LastErrorScope scope;
    BOOST_CHECK_EQUAL(scope.before(), cudaErrorInvalidDevice);
    void* pointer = nullptr;
    RT_OK(scope.Note(cudaMalloc(&pointer, 64), "cudaMalloc"));
    RT_OK(scope.Note(cudaFree(pointer), "cudaFree"));
    BOOST_TEST(scope.Check().ok());
  }
  BOOST_CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidDevice);
}

BOOST_FIXTURE_TEST_CASE(reports_unrestorable_last_error, InAContext) {
  static_cast<void>(SetABadDevice());
  {
    LastErrorScope scope;
    static_cast<void>(scope.Note(AllocateTooMuch(), "cudaMalloc"));
    const absl::Status status = scope.Check();
    BOOST_TEST(Mentions(status, "was cudaErrorInvalidDevice"), status.ToString());
    BOOST_TEST((RuntimeCodeOf(status) == cudaErrorMemoryAllocation));
    BOOST_TEST(!scope.Leave());
    BOOST_TEST(scope.Leave());  // the second time it does nothing
  }
  BOOST_CHECK_EQUAL(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  {
    LastErrorScope scope;
    static_cast<void>(cudaGetLastError());
    BOOST_TEST((scope.Check().code() == absl::StatusCode::kInternal));
  }
  const auto incidents = TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST((incidents[0].repair == Incident::Repair::kUnrepaired));
  BOOST_TEST(incidents[0].result == CUDA_SUCCESS);
}

BOOST_FIXTURE_TEST_CASE(scopes_nest, InAContext) {
  LastErrorScope outer;
  {
    LastErrorScope inner;
    static_cast<void>(inner.Note(SetABadDevice(), "cudaSetDevice"));
  }
  BOOST_TEST(outer.Check().ok());
}

BOOST_FIXTURE_TEST_CASE(other_threads_have_their_own, InAContext) {
  LastErrorScope scope;
  OnAnotherThread([] { static_cast<void>(SetABadDevice()); });
  BOOST_TEST(scope.Check().ok());
}

BOOST_FIXTURE_TEST_CASE(it_needs_no_context_and_creates_none, InAContext) {
  SetStack({});
  EndPrimary();
  {
    LastErrorScope scope;
    BOOST_TEST(scope.Check().ok());
  }
  BOOST_TEST(GetStack().empty());
  BOOST_TEST(!PrimaryIsActive());
}

BOOST_AUTO_TEST_SUITE_END()
