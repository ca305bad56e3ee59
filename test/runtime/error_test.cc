// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/error.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cuguest/context_guard.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(error)

namespace {

namespace runtime = cuguest::runtime;
using absl::StatusCode;
using runtime::RuntimeCodeOf;
using runtime::ToDriver;
using runtime::ToRuntime;
using runtime::ToStatus;

constexpr int kLast = 11000;  // beyond cudaErrorApiFailureBase

bool RuntimeHas(int number) {
  return runtime::ErrorName(static_cast<cudaError_t>(number)) !=
         std::string("cudaErrorUnrecognized");
}

bool DriverHas(int number) {
  return runtime::ErrorName(static_cast<CUresult>(number)) !=
         std::string("CUDA_ERROR_UNRECOGNIZED");
}

std::vector<cudaError_t> RuntimeCodes() {
  std::vector<cudaError_t> codes;
  for (int number = 1; number < kLast; ++number) {
    if (RuntimeHas(number)) codes.push_back(static_cast<cudaError_t>(number));
  }
  return codes;
}

std::vector<CUresult> DriverCodes() {
  std::vector<CUresult> codes;
  for (int number = 1; number < 1100; ++number) {
    if (DriverHas(number)) codes.push_back(static_cast<CUresult>(number));
  }
  return codes;
}

// "CUDA_ERROR_INVALID_VALUE" and "cudaErrorInvalidValue" are both "invalidvalue".
std::string Bare(std::string name) {
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  for (const std::string prefix : {"cudaerror", "cuda"}) {
    if (absl::StartsWith(name, prefix)) return name.substr(prefix.size());
  }
  return name;
}

}  // namespace

BOOST_AUTO_TEST_CASE(success_is_ok_and_carries_success) {
  const absl::Status status = ToStatus(cudaSuccess, "do something");
  BOOST_TEST(status.ok());
  BOOST_TEST((RuntimeCodeOf(status) == cudaSuccess));
  BOOST_TEST(ToDriver(cudaSuccess) == CUDA_SUCCESS);
  BOOST_TEST(ToRuntime(CUDA_SUCCESS) == cudaSuccess);
}

BOOST_AUTO_TEST_CASE(a_status_says_what_was_done_to_what_and_what_the_runtime_said) {
  const cudaError_t code = cudaErrorMemoryAllocation;
  const absl::Status status = ToStatus(code, "allocate 4096 bytes", "device 1");
  BOOST_TEST((status.code() == StatusCode::kResourceExhausted));
  const std::string text(status.message());
  BOOST_TEST(
      absl::StartsWith(text, "allocate 4096 bytes, device 1: cudaErrorMemoryAllocation (2): "));
  BOOST_TEST(absl::StrContains(text, runtime::ErrorText(code)));
}

BOOST_AUTO_TEST_CASE(the_type_of_a_code_chooses_the_api) {
  BOOST_TEST(std::string(runtime::ErrorName(CUDA_ERROR_INVALID_CONTEXT)) ==
             "CUDA_ERROR_INVALID_CONTEXT");
  BOOST_TEST(std::string(runtime::ErrorName(cudaErrorDeviceUninitialized)) ==
             "cudaErrorDeviceUninitialized");
  const absl::Status status = ToStatus(CUDA_ERROR_INVALID_CONTEXT, "", "x");
  BOOST_TEST(absl::StartsWith(std::string(status.message()), "x: CUDA_ERROR_INVALID_CONTEXT"));
  const cuguest::ContextGuard refused(static_cast<CUcontext>(nullptr));
  BOOST_TEST((RuntimeCodeOf(ToStatus(refused)) == cudaErrorDeviceUninitialized));
}

// The table knows every code that the runtime can name, by the same name.
BOOST_AUTO_TEST_CASE(the_table_agrees_with_the_runtime) {
  // In the table, and newer than the runtime under test may be.
  const std::set<std::string> newer = {
      "cudaErrorVersionTranslation", "cudaErrorStreamDetached", "cudaErrorGraphRecaptureFailure",
      "cudaErrorInsufficientLoaderVersion", "cudaErrorFabricNotReady"};
  int agreed = 0;
  for (int number = 0; number < kLast; ++number) {
    const auto code = static_cast<cudaError_t>(number);
    const std::string theirs = cudaGetErrorName(code);
    const std::string ours = runtime::ErrorName(code);
    if (theirs == "unrecognized error code") {
      BOOST_TEST((!RuntimeHas(number) || newer.count(ours) == 1), ours);
    } else {
      BOOST_TEST(ours == theirs);
      ++agreed;
    }
  }
  BOOST_TEST(agreed >= 130);
}

// Note [Two APIs, one list of numbers]: no number means two things. Where the names are
// not the same word, the pair stands here.
BOOST_AUTO_TEST_CASE(a_number_of_both_apis_means_one_thing) {
  const std::set<std::pair<std::string, std::string>> synonyms = {
      {"CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"},
      {"CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError"},
      {"CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading"},
      {"CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable"},
      {"CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage"},
      {"CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized"},
      {"CUDA_ERROR_MAP_FAILED", "cudaErrorMapBufferObjectFailed"},
      {"CUDA_ERROR_UNMAP_FAILED", "cudaErrorUnmapBufferObjectFailed"},
      {"CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice"},
      {"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "cudaErrorDeviceAlreadyInUse"},
      {"CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle"},
      {"CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound"},
      {"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cudaErrorSetOnActiveProcess"},
      {"CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure"},
  };
  std::set<std::pair<std::string, std::string>> found;
  for (int number = 0; number < kLast; ++number) {
    if (!RuntimeHas(number) || !DriverHas(number)) continue;
    const std::string ours = runtime::ErrorName(static_cast<CUresult>(number));
    const std::string theirs = runtime::ErrorName(static_cast<cudaError_t>(number));
    if (Bare(ours) != Bare(theirs)) found.emplace(ours, theirs);
  }
  for (const auto& [ours, theirs] : found) {
    BOOST_TEST(synonyms.count({ours, theirs}) == 1, ours << " and " << theirs);
  }
  BOOST_TEST(found.size() == synonyms.size());
}

BOOST_AUTO_TEST_CASE(what_both_have_goes_there_and_back) {
  int both = 0;
  for (int number = 0; number < kLast; ++number) {
    const auto code = static_cast<cudaError_t>(number);
    if (!RuntimeHas(number) || !DriverHas(number)) continue;
    BOOST_TEST(static_cast<int>(ToDriver(code)) == number);
    BOOST_TEST(ToRuntime(ToDriver(code)) == code);
    ++both;
  }
  BOOST_TEST(both >= 99);
}

// Every row of Note [Two APIs, one list of numbers].
BOOST_AUTO_TEST_CASE(what_only_the_runtime_has_becomes_a_code_that_the_driver_has) {
  const std::pair<CUresult, std::vector<cudaError_t>> rows[] = {
      {CUDA_ERROR_INVALID_VALUE,
       {cudaErrorInvalidConfiguration, cudaErrorInvalidPitchValue, cudaErrorInvalidHostPointer,
        cudaErrorInvalidDevicePointer, cudaErrorInvalidTextureBinding,
        cudaErrorInvalidChannelDescriptor, cudaErrorInvalidMemcpyDirection,
        cudaErrorAddressOfConstant, cudaErrorInvalidFilterSetting, cudaErrorInvalidNormSetting}},
      {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, {cudaErrorInsufficientDriver}},
      {CUDA_ERROR_INVALID_IMAGE,
       {cudaErrorDuplicateVariableName, cudaErrorDuplicateTextureName,
        cudaErrorDuplicateSurfaceName}},
      {CUDA_ERROR_INVALID_CONTEXT, {cudaErrorIncompatibleDriverContext}},
      {CUDA_ERROR_INVALID_HANDLE, {cudaErrorInvalidTexture, cudaErrorInvalidSurface}},
      {CUDA_ERROR_ILLEGAL_STATE, {cudaErrorMissingConfiguration}},
      {CUDA_ERROR_NOT_FOUND, {cudaErrorInvalidSymbol, cudaErrorInvalidDeviceFunction}},
      {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
       {cudaErrorLaunchMaxDepthExceeded, cudaErrorSyncDepthExceeded,
        cudaErrorLaunchPendingCountExceeded}},
      {CUDA_ERROR_NOT_SUPPORTED,
       {static_cast<cudaError_t>(10), cudaErrorNotYetImplemented, cudaErrorLaunchFileScopedTex,
        cudaErrorLaunchFileScopedSurf}},
      {CUDA_ERROR_SYSTEM_NOT_READY, {cudaErrorSoftwareValidityNotEstablished}},
      {CUDA_ERROR_UNKNOWN,
       {cudaErrorTextureFetchFailed, cudaErrorTextureNotBound, cudaErrorSynchronizationError,
        cudaErrorMixedDeviceExecution, cudaErrorMemoryValueTooLarge, cudaErrorPriorLaunchFailure,
        cudaErrorStartupFailure, cudaErrorApiFailureBase}},
  };
  std::set<cudaError_t> listed;
  for (const auto& [driver, codes] : rows) {
    for (const cudaError_t code : codes) {
      BOOST_TEST((ToDriver(code) == driver), runtime::ErrorName(code));
      BOOST_TEST(!DriverHas(static_cast<int>(code)), runtime::ErrorName(code));
      listed.insert(code);
    }
  }
  for (const cudaError_t code : RuntimeCodes()) {
    BOOST_TEST((DriverHas(static_cast<int>(code)) || listed.count(code) == 1),
               runtime::ErrorName(code));
  }
}

BOOST_AUTO_TEST_CASE(a_number_above_the_failure_base_is_the_drivers) {
  BOOST_TEST((ToDriver(static_cast<cudaError_t>(10209)) == CUDA_ERROR_NO_BINARY_FOR_GPU));
}

BOOST_AUTO_TEST_CASE(what_only_the_driver_has_becomes_unknown) {
  std::set<int> alone;
  for (const CUresult code : DriverCodes()) {
    if (RuntimeHas(static_cast<int>(code))) continue;
    BOOST_TEST(ToRuntime(code) == cudaErrorUnknown);
    alone.insert(static_cast<int>(code));
  }
  BOOST_TEST((alone == std::set<int>{47, 202, 916}));
}

BOOST_AUTO_TEST_CASE(a_code_newer_than_the_library_survives) {
  const auto code = static_cast<cudaError_t>(987);
  BOOST_TEST(static_cast<int>(ToDriver(code)) == 987);
  BOOST_TEST(ToRuntime(static_cast<CUresult>(987)) == code);
  const absl::Status status = ToStatus(code, "try");
  BOOST_TEST((status.code() == StatusCode::kUnknown));
  BOOST_TEST((RuntimeCodeOf(status) == code));
  BOOST_TEST(absl::StartsWith(std::string(status.message()), "try: cudaErrorUnrecognized (987): "));
}

BOOST_AUTO_TEST_CASE(the_code_comes_back_out_of_every_status) {
  for (const cudaError_t code : RuntimeCodes()) {
    const absl::Status status = ToStatus(code, "try", "it");
    BOOST_TEST(!status.ok());
    BOOST_TEST((RuntimeCodeOf(status) == code), runtime::ErrorName(code));
    BOOST_TEST((cuguest::CodeOf(status) == ToDriver(code)), runtime::ErrorName(code));
  }
  for (const CUresult code : DriverCodes()) {
    const absl::Status status = ToStatus(code, "try", "it");
    BOOST_TEST((RuntimeCodeOf(status) == ToRuntime(code)), runtime::ErrorName(code));
  }
}

BOOST_AUTO_TEST_CASE(a_foreign_status_has_no_code) {
  BOOST_TEST(!RuntimeCodeOf(absl::InternalError("theirs")).has_value());
  absl::Status forged = absl::InternalError("theirs");
  forged.SetPayload("cuguest/cudaError_t", absl::Cord("2x"));
  BOOST_TEST(!RuntimeCodeOf(forged).has_value());
}

BOOST_AUTO_TEST_CASE(equal_errors_of_both_apis_have_equal_canonical_codes) {
  for (const cudaError_t code : RuntimeCodes()) {
    const CUresult driver = ToDriver(code);
    BOOST_TEST((ToStatus(code, "").code() == ToStatus(driver, "").code()),
               runtime::ErrorName(code));
    BOOST_TEST(runtime::IsSticky(code) == cuguest::IsSticky(driver), runtime::ErrorName(code));
  }
  BOOST_TEST(runtime::IsSticky(cudaErrorIllegalAddress));
}

BOOST_AUTO_TEST_CASE(every_text_is_one_helpful_phrase) {
  std::set<std::string> texts;
  for (const cudaError_t code : RuntimeCodes()) {
    const std::string text = runtime::ErrorText(code);
    BOOST_TEST(text.size() > 5, runtime::ErrorName(code));
    BOOST_TEST(text.back() != '.', runtime::ErrorName(code));
    BOOST_TEST(texts.insert(text).second, "the same text twice: " << text);
  }
}

BOOST_AUTO_TEST_CASE(the_last_error_stays_as_it_is) {
  BOOST_TEST(cudaSetDevice(99) != cudaSuccess);
  const cudaError_t before = cudaPeekAtLastError();
  BOOST_TEST((before != cudaSuccess));
  const absl::Status status = ToStatus(before, "set the device", "device 99");
  BOOST_TEST((RuntimeCodeOf(status) == before));
  BOOST_TEST(runtime::ErrorText(ToRuntime(ToDriver(before))) != nullptr);
  BOOST_TEST((cudaPeekAtLastError() == before));
  cudaGetLastError();
}

BOOST_AUTO_TEST_SUITE_END()
