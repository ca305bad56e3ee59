// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/error.h"

#include <set>
#include <string>

#include "cuguest/driver.h"
#include "test/core/known_codes.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(error)

namespace {

using cuguest::ErrorName;
using cuguest::ErrorText;
using cuguest_test::KnownCodes;

}  // namespace

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

BOOST_AUTO_TEST_SUITE_END()
