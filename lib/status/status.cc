// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/status.h"

#include <charconv>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "lib/core/error_row.h"
#include "lib/status/driver_words.h"
#include "lib/status/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

constexpr char kPayload[] = "cuguest/CUresult";

// The numbers of google.rpc.Code, which both have.
static_assert(static_cast<int>(absl::StatusCode::kFailedPrecondition) ==
              static_cast<int>(internal::Canonical::kFailedPrecondition));
static_assert(static_cast<int>(absl::StatusCode::kDataLoss) ==
              static_cast<int>(internal::Canonical::kDataLoss));

absl::StatusCode CanonicalOf(CUresult code) {
  return static_cast<absl::StatusCode>(internal::ErrorRowOf(code).canonical);
}

std::string CodeText(CUresult code) {
  const internal::ErrorRow row = internal::ErrorRowOf(code);
  return absl::StrCat(row.name, " (", static_cast<int>(code), "): ", row.text);
}

}  // namespace

namespace internal {

std::string StatusText(std::string_view doing, std::string_view object, std::string_view said) {
  // Spelled out piece by piece: std::string_view and absl::string_view are different
  // types in some builds of Abseil.
  std::string text(doing);
  if (!object.empty()) {
    if (!text.empty()) text += ", ";
    text += object;
  }
  if (!text.empty()) text += ": ";
  text += said;
  return text;
}

absl::Status ErrorStatus(CUresult code, std::string_view doing, std::string_view object,
                         std::string_view said) {
  return TextStatus(code, StatusText(doing, object, said));
}

absl::Status TextStatus(CUresult code, std::string_view text) {
  absl::Status status(CanonicalOf(code), std::string(text));
  SetNumber(kPayload, static_cast<int>(code), &status);
  return status;
}

absl::Status Reworded(const absl::Status& status, absl::StatusCode code, std::string_view text) {
  absl::Status reworded(code, std::string(text));
  status.ForEachPayload(
      [&](auto url, const absl::Cord& payload) { reworded.SetPayload(url, payload); });
  return reworded;
}

void SetNumber(const char* payload, int number, absl::Status* status) {
  status->SetPayload(payload, absl::Cord(absl::StrCat(number)));
}

std::optional<int> NumberOf(const char* payload, const absl::Status& status) {
  const auto found = status.GetPayload(payload);
  if (!found.has_value()) return std::nullopt;
  const std::string digits(*found);
  int number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

absl::Status RefusalStatus(CUresult code, std::string_view doing, std::string_view object) {
  return ErrorStatus(code, doing, object, CodeText(code));
}

absl::Status MakeStatus(CUresult code, std::string_view doing, std::string_view object) {
  return ErrorStatus(code, doing, object, CodeText(code) + WordsText(code, nullptr));
}

}  // namespace internal

std::optional<CUresult> CodeOf(const absl::Status& status) {
  if (status.ok()) return CUDA_SUCCESS;
  const std::optional<int> code = internal::NumberOf(kPayload, status);
  return code.has_value() ? std::optional(static_cast<CUresult>(*code)) : std::nullopt;
}

CUresult ResultOf(const absl::Status& status) {
  const CUresult code = CodeOf(status).value_or(CUDA_SUCCESS);
  if (code != CUDA_SUCCESS || status.ok()) return code;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return CUDA_ERROR_INVALID_VALUE;
    case absl::StatusCode::kResourceExhausted:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case absl::StatusCode::kNotFound:
      return CUDA_ERROR_NOT_FOUND;
    case absl::StatusCode::kFailedPrecondition:
      return CUDA_ERROR_ILLEGAL_STATE;
    case absl::StatusCode::kPermissionDenied:
      return CUDA_ERROR_NOT_PERMITTED;
    case absl::StatusCode::kUnimplemented:
      return CUDA_ERROR_NOT_SUPPORTED;
    case absl::StatusCode::kUnavailable:
      return CUDA_ERROR_NOT_READY;
    case absl::StatusCode::kCancelled:
      return CUDA_ERROR_DEINITIALIZED;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

CUGUEST_END_NAMESPACE
