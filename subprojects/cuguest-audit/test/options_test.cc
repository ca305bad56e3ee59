// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/options.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(audit_options)

using namespace cuguest::audit;

namespace {

struct Parsed {
  explicit Parsed(std::vector<std::string> line) : words(std::move(line)) {
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    error = ParseOptions(pointers.data(), &options);
  }

  std::vector<std::string> words;
  std::vector<char*> pointers;
  Options options;
  std::string error;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_program_begins_after_dashes) {
  const Parsed parsed({"--no-follow-fork", "--", "app", "--json", "--"});
  BOOST_TEST(parsed.error == "");
  BOOST_TEST(!parsed.options.follow_fork);
  BOOST_TEST_REQUIRE(parsed.options.program != nullptr);
  BOOST_TEST(parsed.options.program[0] == std::string("app"));
  BOOST_TEST(parsed.options.program[2] == std::string("--"));
  BOOST_TEST(parsed.options.json == "");
}

BOOST_AUTO_TEST_CASE(what_is_forbidden) {
  const Parsed parsed({"--forbid=init", "--forbid=context", "--forbid=context:1",
                       "--forbid=api:cuMem*", "--leaks=yes", "--paths", "--", "app"});
  BOOST_TEST(parsed.error == "");
  BOOST_TEST(parsed.options.forbidden ==
                 std::vector<std::string>({"init", "context", "context:1", "api:cuMem*"}),
             boost::test_tools::per_element());
  BOOST_TEST(parsed.options.leaks);
  BOOST_TEST(parsed.options.paths);
  for (const char* wrong : {"contexts", "context:", "context:-1", "api:", "api:a,b", "cuInit"}) {
    BOOST_TEST(Parsed({std::string("--forbid=") + wrong, "--", "app"}).error != "", wrong);
  }
}

BOOST_AUTO_TEST_CASE(values_follow_equals_or_a_blank) {
  const Parsed parsed({"--json=a=b", "--trace", "t", "--object=x*", "--object", "y",
                       "--error-exitcode=9", "--source=cudasim", "--suppressions=s", "--", "app"});
  BOOST_TEST(parsed.error == "");
  BOOST_TEST(parsed.options.json == "a=b");
  BOOST_TEST(parsed.options.trace == "t");
  BOOST_TEST(parsed.options.objects == std::vector<std::string>({"x*", "y"}),
             boost::test_tools::per_element());
  BOOST_TEST(parsed.options.error_exitcode == 9);
  BOOST_TEST(parsed.options.source == "cudasim");
  BOOST_TEST(parsed.options.suppressions.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_replay_needs_no_program) {
  BOOST_TEST(Parsed({"--replay=log"}).error == "");
  BOOST_TEST(Parsed({"--replay=log", "--", "app"}).error ==
             "--replay runs no program, which is after --");
}

BOOST_AUTO_TEST_CASE(bad_options_are_named) {
  BOOST_TEST(Parsed({}).error == "there is no program after --");
  BOOST_TEST(Parsed({"--"}).error == "there is no program after --");
  BOOST_TEST(Parsed({"app"}).error == "-- is missing before app");
  BOOST_TEST(Parsed({"--jsno=f", "--", "app"}).error == "there is no option --jsno");
  BOOST_TEST(Parsed({"--json", "--", "app"}).error == "--json needs a value");
  BOOST_TEST(Parsed({"--json=", "--", "app"}).error == "--json needs a value");
  BOOST_TEST(Parsed({"--json"}).error == "--json needs a value");
  BOOST_TEST(Parsed({"--follow-fork=no", "--", "app"}).error == "--follow-fork takes no value");
  for (const char* code : {"0", "256", "-1", "one", "1000"}) {
    BOOST_TEST(Parsed({"--error-exitcode", code, "--", "app"}).error ==
               std::string("--error-exitcode=") + code + ": a number from 1 to 255");
  }
  BOOST_TEST(Parsed({"--source=nsys", "--", "app"}).error ==
             "--source=nsys: cupti, sanitizer or cudasim");
}

BOOST_AUTO_TEST_SUITE_END()
