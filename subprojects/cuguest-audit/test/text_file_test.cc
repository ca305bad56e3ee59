// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/text_file.h"

#include <boost/test/unit_test.hpp>
#include <string>

BOOST_AUTO_TEST_SUITE(audit_text_file)

using namespace cuguest::audit;

BOOST_AUTO_TEST_CASE(a_file_is_read_as_a_whole) {
  std::string text = "of before";
  BOOST_TEST(ReadTextFile("/proc/self/cmdline", &text) == "");
  BOOST_TEST(text.size() > 1u);
  BOOST_TEST(text.back() == '\0');
  BOOST_TEST(ReadTextFile("/dev/null", &text) == "");
  BOOST_TEST(text == "");
}

// As what /proc has of a process that ends meanwhile.
BOOST_AUTO_TEST_CASE(what_can_be_opened_and_not_read) {
  std::string text = "of before";
  BOOST_TEST(ReadTextFile("/proc/self/mem", &text) == "/proc/self/mem: Input/output error");
  BOOST_TEST(text == "");
  BOOST_TEST(ReadTextFile("/", &text) == "/: Is a directory");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there) {
  std::string text = "of before";
  BOOST_TEST(ReadTextFile("/no/such/file", &text) == "/no/such/file: No such file or directory");
  BOOST_TEST(text == "");
}

BOOST_AUTO_TEST_SUITE_END()
