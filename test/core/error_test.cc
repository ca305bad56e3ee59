// SPDX-License-Identifier: Apache-2.0

#include "cuguest/error.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(error)

namespace {

using absl::StatusCode;
using cuguest::CodeOf;
using cuguest::ErrorName;
using cuguest::ErrorText;
using cuguest::ToStatus;

// Every code that the table claims to know.
std::vector<CUresult> KnownCodes() {
  std::vector<CUresult> codes;
  for (int code = 0; code < 1100; ++code) {
    if (std::string(ErrorName(static_cast<CUresult>(code))) != "CUDA_ERROR_UNRECOGNIZED") {
      codes.push_back(static_cast<CUresult>(code));
    }
  }
  return codes;
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
  absl::Status forged = absl::InternalError("theirs");
  forged.SetPayload("cuguest/CUresult", absl::Cord("2x"));
  BOOST_TEST(!CodeOf(forged).has_value());
}

// The table knows every code that the driver under test can name, by the same name.
BOOST_AUTO_TEST_CASE(the_table_agrees_with_the_driver) {
  const cuguest::Driver& driver = **cuguest::Driver::Get();
  int agreed = 0;
  for (int number = 0; number < 1100; ++number) {
    const CUresult code = static_cast<CUresult>(number);
    const char* name = nullptr;
    if (driver.GetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) continue;
    BOOST_TEST(std::string(ErrorName(code)) == name);
    ++agreed;
  }
  BOOST_TEST(agreed >= (cuguest_test::HasDriver(12000) ? 90 : 85));
}

BOOST_AUTO_TEST_CASE(every_text_is_one_helpful_phrase) {
  std::set<std::string> texts;
  for (const CUresult code : KnownCodes()) {
    const std::string text = ErrorText(code);
    BOOST_TEST(text.size() > 5, ErrorName(code));
    BOOST_TEST(text.back() != '.', ErrorName(code));
    BOOST_TEST(texts.insert(text).second, "the same text twice: " << text);
  }
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

BOOST_AUTO_TEST_SUITE_END()
