// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/suppressions.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(audit_suppressions)

using namespace cuguest::audit;

namespace {

Function Named(const std::string& object, const std::string& name, const std::string& file = "",
               int line = 0) {
  Function function;
  function.object = object;
  function.symbol = name;
  function.name = name;
  function.file = file;
  function.line = line;
  return function;
}

// Innermost first.
std::vector<Function> Chain() {
  return {Named("/lib/libtorch.so", "c10::SetDevice", "/src/CUDAFunctions.cpp", 42),
          Named("/lib/libtorch.so", "at::empty"), Named("/opt/libmine.so.3", "Encode"),
          Named("/usr/bin/app", "main")};
}

std::string Block(const std::string& lines, const std::string& kind = "leaked-push") {
  return "{\n  a name\n  cuguest-audit:" + kind + "\n" + lines + "}\n";
}

bool Matches(const std::string& lines, const std::string& kind = "leaked-push") {
  Suppressions suppressions;
  BOOST_TEST(suppressions.Add("file", Block(lines, kind)) == "");
  return suppressions.Find("leaked-push", Chain(), 1) != nullptr;
}

std::string ErrorOf(const std::string& text) {
  Suppressions suppressions;
  return suppressions.Add("file.supp", text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(wildcards_match_all_of_a_text) {
  BOOST_TEST(MatchesWildcards("", ""));
  BOOST_TEST(MatchesWildcards("*", ""));
  BOOST_TEST(MatchesWildcards("a*c", "abbc"));
  BOOST_TEST(MatchesWildcards("a*b*c", "aXbXbXc"));
  BOOST_TEST(MatchesWildcards("?b", "ab"));
  BOOST_TEST(!MatchesWildcards("a", "ab"));
  BOOST_TEST(!MatchesWildcards("a*c", "abcd"));
  BOOST_TEST(!MatchesWildcards("a?", "a"));
  BOOST_TEST(!MatchesWildcards("", "a"));
}

BOOST_AUTO_TEST_CASE(frames_match_from_the_innermost) {
  BOOST_TEST(Matches("fun:c10::SetDevice\n"));
  BOOST_TEST(Matches("fun:c10::*\nfun:at::empty\n"));
  BOOST_TEST(!Matches("fun:at::empty\n"));
  BOOST_TEST(!Matches("fun:c10::SetDevice\nfun:Encode\n"));
}

BOOST_AUTO_TEST_CASE(objects_match_by_path_or_name) {
  BOOST_TEST(Matches("obj:libtorch.so\n"));
  BOOST_TEST(Matches("obj:/lib/libtorch.*\n"));
  BOOST_TEST(!Matches("obj:libmine.so.3\n"));
}

BOOST_AUTO_TEST_CASE(sources_match_with_or_without_a_line) {
  BOOST_TEST(Matches("src:CUDAFunctions.cpp:42\n"));
  BOOST_TEST(Matches("src:*/CUDAFunctions.cpp\n"));
  BOOST_TEST(!Matches("src:CUDAFunctions.cpp:4\n"));
}

BOOST_AUTO_TEST_CASE(dots_match_any_number_of_frames) {
  BOOST_TEST(Matches("...\n"));
  BOOST_TEST(Matches("...\nfun:c10::SetDevice\n"));
  BOOST_TEST(Matches("...\nfun:Encode\n"));
  BOOST_TEST(Matches("obj:libtorch.so\n...\nfun:main\n"));
  BOOST_TEST(Matches("fun:c10::SetDevice\n...\nfun:Encode\n...\nobj:app\n"));
  BOOST_TEST(!Matches("...\nfun:Encode\nfun:Encode\n"));
  BOOST_TEST(!Matches("fun:c10::SetDevice\n...\nfun:at::empty\nfun:main\n"));
}

BOOST_AUTO_TEST_CASE(dots_retry_after_a_partial_match) {
  const std::vector<Function> chain = {Named("o", "f"), Named("o", "g"), Named("o", "f"),
                                       Named("o", "h")};
  Suppressions suppressions;
  BOOST_TEST(suppressions.Add("file", Block("...\nfun:f\nfun:h\n")) == "");
  BOOST_TEST(suppressions.Find("leaked-push", chain, 1) != nullptr);
}

BOOST_AUTO_TEST_CASE(kinds_match_with_wildcards) {
  BOOST_TEST(Matches("...\n", "*"));
  BOOST_TEST(Matches("...\n", "leaked-*"));
  BOOST_TEST(!Matches("...\n", "extra-pop"));
}

BOOST_AUTO_TEST_CASE(unnamed_functions_match_no_name) {
  const std::vector<Function> chain = {Named("/lib/libx.so", "")};
  Suppressions suppressions;
  BOOST_TEST(suppressions.Add("file", Block("fun:*\n")) == "");
  BOOST_TEST(suppressions.Find("leaked-push", chain, 1) == nullptr);
}

BOOST_AUTO_TEST_CASE(used_suppressions_are_counted) {
  Suppressions suppressions;
  const std::string text = Block("fun:none\n") + Block("...\n");
  BOOST_TEST(suppressions.Add("file", text) == "");
  suppressions.Find("leaked-push", Chain(), 3);
  suppressions.Find("leaked-push", Chain(), 4);
  BOOST_TEST_REQUIRE(suppressions.used().size() == 1U);
  BOOST_TEST(suppressions.used()[0].findings == 2U);
  BOOST_TEST(suppressions.used()[0].times == 7U);
  BOOST_TEST_REQUIRE(suppressions.unused().size() == 1U);
  BOOST_TEST(suppressions.unused()[0].find(" (file:1)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(other_tools_are_skipped) {
  BOOST_TEST(ErrorOf("{\n n\n Memcheck:Leak\n match-leak-kinds: all\n fun:malloc\n}\n") == "");
  Suppressions suppressions;
  BOOST_TEST(suppressions.Add("file", "{\n n\n Memcheck, cuguest-audit:*\n ...\n}\n") == "");
  BOOST_TEST(suppressions.Find("extra-pop", Chain(), 1) != nullptr);
}

BOOST_AUTO_TEST_CASE(comments_and_blanks_are_skipped) {
  BOOST_TEST(ErrorOf("# by hand\n\n{\n  # why\n n\n cuguest-audit:extra-pop\n\n ...\n}\n\n") == "");
}

BOOST_AUTO_TEST_CASE(errors_name_file_and_line) {
  BOOST_TEST(ErrorOf("# comment\nleaked-push\n") ==
             "file.supp:2: expected {, found \"leaked-push\"");
  BOOST_TEST(ErrorOf("{\n}\n") == "file.supp:2: a suppression has a name, a kind, and frames");
  BOOST_TEST(ErrorOf("{\n n\n leaked-push\n}\n") ==
             "file.supp:3: expected cuguest-audit:KIND, found \"leaked-push\"");
  BOOST_TEST(ErrorOf("{\n n\n cuguest-audit:leaked\n ...\n}\n") ==
             "file.supp:3: there is no kind of finding \"leaked\"");
  BOOST_TEST(ErrorOf(Block("...\n") + Block("function:f\n")) ==
             "file.supp:9: expected fun:, obj:, src:, ... or }, found \"function:f\"");
  BOOST_TEST(ErrorOf(Block("fun:\n")) == "file.supp:4: fun: needs a pattern");
  BOOST_TEST(ErrorOf(Block("")) ==
             "file.supp:4: a suppression needs a frame: fun:, obj:, src: or ...");
  BOOST_TEST(ErrorOf("\n{\n n\n cuguest-audit:*\n ...\n") ==
             "file.supp:5: the suppression that begins in line 2 has no }");
}

BOOST_AUTO_TEST_CASE(a_bad_file_adds_nothing) {
  Suppressions suppressions;
  BOOST_TEST(suppressions.Add("file", Block("...\n") + "}") != "");
  BOOST_TEST(suppressions.Find("leaked-push", Chain(), 1) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_generated_suppression_matches_its_finding) {
  std::vector<Function> chain = Chain();
  chain.push_back(Named("/opt/stripped.so", ""));
  chain.push_back(Named("", ""));  // code that was generated
  chain.push_back(Named("/opt/a\nb\x1b.so", ""));
  chain.push_back(Named("/opt/c.so", "f\n\xc2\x9b()"));
  Suppressions suppressions;
  const std::string text = GenerateSuppression("extra-pop", chain);
  BOOST_TEST(suppressions.Add("file", text) == "");
  BOOST_TEST(suppressions.Find("extra-pop", chain, 1) != nullptr);
  BOOST_TEST(suppressions.Find("leaked-push", chain, 1) == nullptr);
  chain[2].name = chain[2].symbol = "Decode";
  BOOST_TEST(suppressions.Find("extra-pop", chain, 1) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
