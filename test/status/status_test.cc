// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/status.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/copy.h"
#include "test/core/known_codes.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(status)

namespace {

using absl::StatusCode;
using cuguest::CodeOf;
using cuguest::ErrorName;
using cuguest::ErrorText;
using cuguest::ResultOf;
using cuguest::ToStatus;
using cuguest_test::KnownCodes;

absl::Status OfStatus(const absl::Status& status) {
  CUGUEST_RETURN_IF_ERROR(status);
  return absl::UnknownError("went on");
}

absl::Status OfStatusOr(const absl::StatusOr<int>& result) {
  CUGUEST_RETURN_IF_ERROR(result);
  return absl::UnknownError("went on");
}

absl::Status OfGuard(CUcontext context) {
  const cuguest::ContextGuard guard(context);
  CUGUEST_RETURN_IF_ERROR(guard);
  return absl::UnknownError("went on");
}

absl::Status OfAcquired(CUstream stream) {
  const cuguest::AcquiredGuard guard(cuguest::AcquireFromStream(stream));
  CUGUEST_RETURN_IF_ERROR(guard);
  return absl::UnknownError("went on");
}

absl::StatusOr<std::pair<int, int>> Added(absl::StatusOr<int> first, absl::StatusOr<int> second) {
  CUGUEST_ASSIGN_OR_RETURN(const int one, first);
  int two = 0;
  CUGUEST_ASSIGN_OR_RETURN(two, std::move(second));
  return std::pair(one, two);
}

absl::StatusOr<CUcontext> Named(CUcontext context) {
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::ContextRef ref, cuguest::ContextRef::Borrow(context));
  return ref.get();
}

// Of a class that is derived from a StatusOr.
absl::StatusOr<CUcontext> Found(CUstream stream) {
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Acquired acquired, cuguest::AcquireFromStream(stream));
  return acquired.get();
}

absl::StatusOr<std::unique_ptr<int>> Moved(absl::StatusOr<std::unique_ptr<int>> made) {
  CUGUEST_ASSIGN_OR_RETURN(std::unique_ptr<int> own, std::move(made));
  return own;
}

}  // namespace

BOOST_AUTO_TEST_CASE(success_is_ok_and_carries_success) {
  const absl::Status status = ToStatus(CUDA_SUCCESS, "do something");
  BOOST_TEST(status.ok());
  BOOST_TEST((CodeOf(status) == CUDA_SUCCESS));
}

BOOST_AUTO_TEST_CASE(a_status_says_what_was_done_to_what_and_what_the_driver_said) {
  const absl::Status status = ToStatus(CUDA_ERROR_OUT_OF_MEMORY, "allocate 4096 bytes", "device 1");
  BOOST_TEST((status.code() == StatusCode::kResourceExhausted));
  const std::string text(status.message());
  BOOST_TEST(
      absl::StartsWith(text, "allocate 4096 bytes, device 1: CUDA_ERROR_OUT_OF_MEMORY (2): "));
  BOOST_TEST(absl::StrContains(text, ErrorText(CUDA_ERROR_OUT_OF_MEMORY)));
}

BOOST_AUTO_TEST_CASE(doing_and_object_may_be_empty) {
  const CUresult code = CUDA_ERROR_INVALID_VALUE;
  BOOST_TEST(
      absl::StartsWith(std::string(ToStatus(code, "").message()), "CUDA_ERROR_INVALID_VALUE"));
  BOOST_TEST(absl::StartsWith(std::string(ToStatus(code, "", "x").message()),
                              "x: CUDA_ERROR_INVALID_VALUE"));
  BOOST_TEST(absl::StartsWith(std::string(ToStatus(code, "push").message()),
                              "push: CUDA_ERROR_INVALID_VALUE"));
}

BOOST_AUTO_TEST_CASE(the_code_comes_back_out_of_every_status) {
  for (const CUresult code : KnownCodes()) {
    if (code == CUDA_SUCCESS) continue;
    const absl::Status status = ToStatus(code, "try", "it");
    BOOST_TEST(!status.ok());
    BOOST_TEST((CodeOf(status) == code), ErrorName(code));
    absl::Status annotated(status.code(), "outer");
    status.ForEachPayload(
        [&](auto url, const absl::Cord& payload) { annotated.SetPayload(url, payload); });
    BOOST_TEST((CodeOf(annotated) == code), ErrorName(code));
  }
}

BOOST_AUTO_TEST_CASE(a_code_newer_than_the_library_survives) {
  const CUresult code = static_cast<CUresult>(987);
  const absl::Status status = ToStatus(code, "try");
  BOOST_TEST((status.code() == StatusCode::kUnknown));
  BOOST_TEST((CodeOf(status) == code));
  BOOST_TEST(std::string(ErrorName(code)) == "CUDA_ERROR_UNRECOGNIZED");
}

BOOST_AUTO_TEST_CASE(a_foreign_status_has_no_code) {
  BOOST_TEST(!CodeOf(absl::InternalError("theirs")).has_value());
  BOOST_TEST(ResultOf(ToStatus(CUDA_ERROR_NOT_FOUND, "theirs")) == CUDA_ERROR_NOT_FOUND);
  BOOST_TEST(ResultOf(absl::OkStatus()) == CUDA_SUCCESS);
  BOOST_TEST(ResultOf(absl::InternalError("theirs")) == CUDA_ERROR_UNKNOWN);
  BOOST_TEST(ResultOf(absl::InvalidArgumentError("theirs")) == CUDA_ERROR_INVALID_VALUE);
  BOOST_TEST(ResultOf(absl::FailedPreconditionError("theirs")) == CUDA_ERROR_ILLEGAL_STATE);
  for (int i = 1; i <= 16; ++i) {
    const absl::Status theirs(static_cast<absl::StatusCode>(i), "theirs");
    BOOST_TEST(ResultOf(theirs) != CUDA_SUCCESS, theirs.ToString());
  }
  absl::Status forged = absl::InternalError("theirs");
  forged.SetPayload("cuguest/CUresult", absl::Cord("2x"));
  BOOST_TEST(!CodeOf(forged).has_value());
}

BOOST_AUTO_TEST_CASE(sticky_errors_are_data_loss_and_nothing_else_is) {
  for (const CUresult code : KnownCodes()) {
    const bool lost = ToStatus(code, "").code() == StatusCode::kDataLoss;
    BOOST_TEST(cuguest::IsSticky(code) == lost, ErrorName(code));
  }
  BOOST_TEST(cuguest::IsSticky(CUDA_ERROR_ILLEGAL_ADDRESS));
  BOOST_TEST(!cuguest::IsSticky(CUDA_ERROR_OUT_OF_MEMORY));
}

BOOST_AUTO_TEST_CASE(canonical_codes_of_what_an_author_meets) {
  const std::pair<CUresult, StatusCode> rows[] = {
      {CUDA_ERROR_INVALID_VALUE, StatusCode::kInvalidArgument},
      {CUDA_ERROR_NOT_INITIALIZED, StatusCode::kFailedPrecondition},
      {CUDA_ERROR_DEINITIALIZED, StatusCode::kCancelled},
      {CUDA_ERROR_STUB_LIBRARY, StatusCode::kFailedPrecondition},
      {CUDA_ERROR_NO_DEVICE, StatusCode::kNotFound},
      {CUDA_ERROR_INVALID_DEVICE, StatusCode::kNotFound},
      {CUDA_ERROR_INVALID_CONTEXT, StatusCode::kFailedPrecondition},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, StatusCode::kFailedPrecondition},
      {CUDA_ERROR_NOT_PERMITTED, StatusCode::kPermissionDenied},
      {CUDA_ERROR_NOT_SUPPORTED, StatusCode::kUnimplemented},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, StatusCode::kFailedPrecondition},
      {CUDA_ERROR_UNKNOWN, StatusCode::kUnknown},
  };
  for (const auto& [code, canonical] : rows) {
    BOOST_TEST((ToStatus(code, "").code() == canonical), ErrorName(code));
  }
}

BOOST_AUTO_TEST_CASE(a_guard_becomes_a_status) {
  const cuguest::ContextGuard refused(static_cast<CUcontext>(nullptr));
  const absl::Status status = ToStatus(refused);
  BOOST_TEST((CodeOf(status) == CUDA_ERROR_INVALID_CONTEXT));
  BOOST_TEST(
      absl::StartsWith(std::string(status.message()), "enter a context, no context was given: "));
}

BOOST_AUTO_TEST_CASE(returns_the_status_of_what_failed) {
  const absl::Status failed = ToStatus(CUDA_ERROR_NOT_FOUND, "try");
  BOOST_TEST((OfStatus(failed) == failed));
  BOOST_TEST((OfStatusOr(failed) == failed));
  BOOST_TEST((CodeOf(OfGuard(nullptr)) == CUDA_ERROR_INVALID_CONTEXT));
  BOOST_TEST((CodeOf(OfAcquired(nullptr)) == CUDA_ERROR_INVALID_CONTEXT));
  BOOST_TEST((Added(failed, 2).status() == failed));
  BOOST_TEST((Added(1, failed).status() == failed));
  BOOST_TEST((CodeOf(Named(nullptr).status()) == CUDA_ERROR_INVALID_CONTEXT));
  BOOST_TEST((Moved(failed).status() == failed));
}

BOOST_AUTO_TEST_CASE(goes_on_with_what_is_ok) {
  const cuguest_test::OwnContext own;
  BOOST_TEST((OfStatus(absl::OkStatus()).message() == "went on"));
  BOOST_TEST((OfStatusOr(1).message() == "went on"));
  BOOST_TEST((OfGuard(own.get()).message() == "went on"));
  {
    const cuguest::ContextGuard current(own.get());
    BOOST_TEST((OfAcquired(nullptr).message() == "went on"));
    BOOST_TEST((*Found(nullptr) == own.get()));
  }
  BOOST_TEST((*Added(1, 2) == std::pair(1, 2)));
  BOOST_TEST((*Named(own.get()) == own.get()));
  BOOST_TEST(**Moved(std::make_unique<int>(7)) == 7);
}

BOOST_AUTO_TEST_SUITE_END()
