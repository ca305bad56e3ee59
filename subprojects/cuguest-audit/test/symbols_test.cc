// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With elfutils, and without: the same cases.

#include "audit/command/symbols.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace cuguest::audit {
namespace {

[[gnu::noinline]] int Known(int value) {
  asm volatile("");
  return value + 1;
}

// Of this program, which may be loaded anywhere.
std::uint64_t OffsetOf(int (*function)(int)) {
  std::uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        *static_cast<std::uint64_t*>(data) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &bias);
  return reinterpret_cast<std::uintptr_t>(function) - bias;
}

std::string ThisProgram() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What is said of Known() if the program's file were `bytes`.
std::string NameIn(const std::string& bytes) {
  const std::string path = "/tmp/cuguest-symbols-test-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  const Object object = {path, ""};
  Symbols symbols;
  const std::string name = symbols.Of(&object, OffsetOf(Known) + 1).back().name;
  std::remove(path.c_str());
  return name;
}

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

// Each is a type where names are demangled as types.
BOOST_AUTO_TEST_CASE(names_of_c_stay) {
  for (const char* name : {"i",  "f",      "d",    "v",   "x",      "St", "Sa",
                           "Ss", "Pi",     "PKc",  "Dot", "DoFvvE", "Dn", "Dv2_i",
                           "1f", "N1f1gE", "main", "",    "_",      "Z",  "cuCtxPushCurrent"}) {
    BOOST_TEST(Demangled(name) == name);
    BOOST_TEST(WithoutParameters(Demangled(name)) == name);
  }
  BOOST_TEST(Demangled("_Z3Doti") == "Dot(int)");
  BOOST_TEST(Demangled("_ZN2ns3DotEv") == "ns::Dot()");
  BOOST_TEST(Demangled("_Z") == "_Z");
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
  for (const char* path : {"/tmp", "/dev/zero", "/proc/kcore"}) {
    const Object other = {path, ""};
    BOOST_TEST(symbols.Of(&other, 0x10)[0].ToString() == BaseName(path) + "+0x10");
  }
}

BOOST_AUTO_TEST_CASE(functions_of_an_object_have_names) {
  BOOST_TEST(Known(1) == 2);
  BOOST_TEST(NameIn(ThisProgram()) == "cuguest::audit::(anonymous namespace)::Known");
}

BOOST_AUTO_TEST_CASE(another_object_than_was_loaded_has_no_names) {
  Symbols symbols;
  const Object other = {"/proc/self/exe", "00112233"};
  BOOST_TEST(symbols.Of(&other, OffsetOf(Known) + 1).back().name == "");
}

// A file that was cut off, and one of which a word is wrong: the header's, and those of sections.
BOOST_AUTO_TEST_CASE(damaged_objects_end_no_audit) {
  const std::string whole = ThisProgram();
  ElfW(Ehdr) header = {};
  std::memcpy(&header, whole.data(), sizeof(header));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{3}, sizeof(header), whole.size() / 2}) {
    BOOST_TEST(NameIn(whole.substr(0, size)) == "");
  }
  const auto damage = [&](std::size_t at) {
    std::string bytes = whole;
    bytes.replace(at, 8, 8, '\xff');
    NameIn(bytes);
  };
  for (std::size_t at = 0; at < sizeof(header); at += 8) damage(at);
  const std::size_t end = header.e_shoff + header.e_shnum * sizeof(ElfW(Shdr));
  for (std::size_t at = header.e_shoff; at < end; at += 8) damage(at);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cuguest::audit
