// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/error.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "test/core/known_codes.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(error)

namespace {

using cuguest::Error;
using cuguest::ErrorName;
using cuguest::ErrorText;
using cuguest_test::KnownCodes;

// As ToStatus() makes it, which asks for the size first.
std::string TextOf(const Error& error) {
  std::string text(error.Write(nullptr, 0), '\0');
  error.Write(text.data(), text.size() + 1);
  return text;
}

template <typename Change>
Error Make(CUresult code, const char* doing, const Change& change) {
  Error error;
  error.code = code;
  error.doing = doing;
  change(error);
  return error;
}

}  // namespace

// The table knows every code that the driver under test can name, by the same name.
BOOST_AUTO_TEST_CASE(the_table_agrees_with_the_driver) {
  int agreed = 0;
  for (int number = 0; number < 1100; ++number) {
    const CUresult code = static_cast<CUresult>(number);
    const char* name = nullptr;
    if (RAW(cuGetErrorName)(code, &name) != CUDA_SUCCESS || name == nullptr) continue;
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

BOOST_AUTO_TEST_CASE(an_error_says_what_at_what_and_why) {
  using Reason = Error::Reason;
  using Subject = Error::Subject;
  const struct {
    Error error;
    const char* text;
  } kRows[] = {
      {Make(CUDA_ERROR_NOT_READY, "", [](Error&) {}), "CUDA_ERROR_NOT_READY (600): "},
      {Make(CUDA_ERROR_INVALID_VALUE, "attach",
            [](Error& error) {
              error.subject = Subject::kContext;
              error.handle = 0x7fff00abcdefULL;
              error.reason = Reason::kNoContext;
            }),
       "attach, context 0x7fff00abcdef: there is no context at this address"},
      {Make(CUDA_ERROR_INVALID_DEVICE, "retain",
            [](Error& error) {
              error.subject = Subject::kPrimary;
              error.device = -2147483647 - 1;
            }),
       "retain, the primary context of device -2147483648: CUDA_ERROR_INVALID_DEVICE (101): "},
      {Make(CUDA_ERROR_INVALID_CONTEXT, "acquire",
            [](Error& error) {
              error.subject = Subject::kStream;
              error.handle = reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD);
            }),
       "acquire, stream CU_STREAM_PER_THREAD, which means the current one: "},
      {Make(CUDA_ERROR_INVALID_VALUE, "acquire",
            [](Error& error) {
              error.subject = Subject::kRange;
              error.reason = Reason::kOutside;
              error.handle = 0x2010;
              error.bytes = 4096;
              error.found_at = 0x2000;
              error.found_bytes = 4096;
            }),
       "acquire, 4096 bytes at 0x2010: only 4080 of them lie in the allocation there, which is "
       "4096 "
       "bytes at 0x2000"},
      {Make(CUDA_ERROR_INVALID_CONTEXT, "acquire",
            [](Error& error) {
              error.subject = Subject::kDeviceOfMemory;
              error.reason = Reason::kInactive;
              error.handle = 0x2000;
              error.device = 1;
              error.current = reinterpret_cast<CUcontext>(0x88);
            }),
       "acquire, pointer 0x2000, which is memory of device 1 that no context owns: the current "
       "one, "
       "context 0x88, is on device 0; the primary context of device 1 is not active"},
      {Make(CUDA_ERROR_CONTEXT_IS_DESTROYED, "enter a context",
            [](Error& error) {
              error.subject = Subject::kAdvice;
              error.handle = reinterpret_cast<std::uintptr_t>("of a plugin");
            }),
       "enter a context, of a plugin: CUDA_ERROR_CONTEXT_IS_DESTROYED (709): "},
  };
  for (const auto& row : kRows) {
    const std::string text = TextOf(row.error);
    BOOST_TEST(text.compare(0, std::strlen(row.text), row.text) == 0, text);
    BOOST_TEST(!row.error.ok());
  }
  BOOST_TEST(Error().ok());
  BOOST_TEST(TextOf(Error()).empty());
}

// A reason that the text does not know would leave it empty behind the colon.
BOOST_AUTO_TEST_CASE(every_reason_and_subject_has_words) {
  for (int reason = 0; reason <= static_cast<int>(Error::Reason::kBeingMade); ++reason) {
    for (int subject = 0; subject <= static_cast<int>(Error::Subject::kCreation); ++subject) {
      const std::string text = TextOf(Make(CUDA_ERROR_UNKNOWN, "try", [&](Error& error) {
        error.reason = static_cast<Error::Reason>(reason);
        error.subject = static_cast<Error::Subject>(subject);
        error.handle = reinterpret_cast<std::uintptr_t>("it");
      }));
      BOOST_TEST(text.find("try") == 0U, text);
      BOOST_TEST(text.back() != ' ', text);
      BOOST_TEST((text.find(", ") < text.find(": ")) == (subject != 0), text);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_text_that_does_not_fit_is_cut) {
  const Error error = Make(CUDA_ERROR_OUT_OF_MEMORY, "create a context", [](Error&) {});
  const std::string whole = TextOf(error);
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{20}, whole.size(),
                                 whole.size() + 1, whole.size() + 9}) {
    std::string text(size + 1, '#');
    BOOST_TEST(error.Write(text.data(), size) == whole.size());
    BOOST_TEST(std::string(text.c_str()) == whole.substr(0, size - 1));
    BOOST_TEST(text[size] == '#');
  }
  char untouched = '#';
  BOOST_TEST(error.Write(&untouched, 0) == whole.size());
  BOOST_TEST(untouched == '#');
  BOOST_TEST(Error().Write(&untouched, 1) == 0U);
  BOOST_TEST(untouched == '\0');
}

BOOST_AUTO_TEST_SUITE_END()
