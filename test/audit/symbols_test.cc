// SPDX-License-Identifier: Apache-2.0

#include "lib/audit/command/symbols.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace cuguest::audit {
namespace {

BOOST_AUTO_TEST_SUITE(symbols)

BOOST_AUTO_TEST_CASE(names_are_without_parameters) {
  const char* const kNames[][2] = {
      {"main", "main"},
      {"c10::cuda::SetDevice(signed char)", "c10::cuda::SetDevice"},
      {"void f<int>(int)", "f<int>"},
      {"std::vector<int> ns::g<std::pair<int, int> >(char const*)", "ns::g<std::pair<int, int> >"},
      {"(anonymous namespace)::Leak(CUctx_st*)", "(anonymous namespace)::Leak"},
      {"ns::(anonymous namespace)::Pop() const", "ns::(anonymous namespace)::Pop"},
      {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
      {"A::operator<<(int)", "A::operator<<"},
      {"A::operator->() const", "A::operator->"},
      {"operator new(unsigned long)", "operator new"},
      {"A::operator bool() const", "A::operator bool"},
      {"f(int)::Local::g(void (*)(int))", "f(int)::Local::g"},
      {"h(int) [clone .cold]", "h"},
      {"my_operator(int)", "my_operator"},
  };
  for (const auto& [full, name] : kNames) BOOST_TEST(WithoutParameters(full) == name);
}

BOOST_AUTO_TEST_CASE(text_that_is_no_function_stays) {
  for (const char* text : {"", "(", ")", "f(", "operator", "<", "> <", "_Z3foo"}) {
    BOOST_TEST(WithoutParameters(text) == text);
  }
}

BOOST_AUTO_TEST_CASE(a_function_says_what_is_known) {
  Function function;
  function.offset = 0x1a2b;
  BOOST_TEST(function.ToString() == "0x1a2b");
  function.object = "/opt/lib/libmine.so";
  BOOST_TEST(function.ToString() == "libmine.so+0x1a2b");
  function.name = "Encode";
  BOOST_TEST(function.ToString() == "Encode");
  function.file = "src/encode.cc";
  function.line = 7;
  BOOST_TEST(function.ToString() == "Encode (encode.cc:7)");
}

BOOST_AUTO_TEST_CASE(missing_objects_have_no_names) {
  Symbols symbols;
  const Object gone = {"/there/is/no/libgone.so", ""};
  BOOST_TEST_REQUIRE(symbols.Of(&gone, 0x10).size() == 1U);
  BOOST_TEST(symbols.Of(&gone, 0x10)[0].ToString() == "libgone.so+0x10");
  BOOST_TEST(symbols.Of(nullptr, 0x20)[0].ToString() == "0x20");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cuguest::audit
