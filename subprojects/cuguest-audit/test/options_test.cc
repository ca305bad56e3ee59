// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/options.h"

#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "audit/command/color.h"

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

BOOST_AUTO_TEST_CASE(a_larger_buffer_can_be_set) {
  BOOST_TEST(LargerBuffer(2) == "--buffer=8");
  BOOST_TEST(LargerBuffer(512) == "--buffer=1024");
  BOOST_TEST(LargerBuffer(1024) == "");
  for (int mib = 1; mib < 1024; mib *= 2) {
    const Parsed larger({LargerBuffer(mib), "--", "app"});
    BOOST_TEST(larger.error == "");
    BOOST_TEST(larger.options.buffer > mib);
  }
}

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
                       "--forbid=api:cuMem*", "--leaks=yes", "--noise", "--paths", "--", "app"});
  BOOST_TEST(parsed.error == "");
  BOOST_TEST(parsed.options.forbidden ==
                 std::vector<std::string>({"init", "context", "context:1", "api:cuMem*"}),
             boost::test_tools::per_element());
  BOOST_TEST(parsed.options.leaks);
  BOOST_TEST(parsed.options.noise);
  BOOST_TEST(parsed.options.paths);
  BOOST_TEST(Parsed({"--forbid=context:0", "--", "app"}).error == "");
  for (const char* wrong : {"contexts", "context:", "context:-1", "context:00", "context:01",
                            "context:99999999999", "api:", "api:a,b", "cuInit"}) {
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
  for (const char* size : {"0", "3", "2048", "-1", "one"}) {
    BOOST_TEST(Parsed({"--buffer", size, "--", "app"}).error ==
               std::string("--buffer=") + size + ": 1, 2, 4, 8 and so on to 1024 MiB");
  }
  BOOST_TEST(Parsed({"--source=nsys", "--", "app"}).error ==
             "--source=nsys: cupti, sanitizer or cudasim");
}

BOOST_AUTO_TEST_CASE(short_names_are_those_of_long_ones) {
  BOOST_TEST(Parsed({"-h"}).options.help);
  BOOST_TEST(Parsed({"--version"}).options.version);
  BOOST_TEST(Parsed({"-q", "--", "app"}).options.verbosity == -1);
  BOOST_TEST(Parsed({"-q", "-v", "--", "app"}).options.verbosity == 1);
  BOOST_TEST(Parsed({"-x", "--", "app"}).error == "there is no option -x");
  BOOST_TEST(Parsed({"-q=1", "--", "app"}).error == "--quiet takes no value");
  BOOST_TEST(Parsed({"--accept-incomplete", "--buffer=8", "--", "app"}).options.buffer == 8);
}

BOOST_AUTO_TEST_CASE(a_color_is_wanted_when) {
  BOOST_TEST(Parsed({"--", "app"}).options.color == "auto");
  BOOST_TEST(Parsed({"--color=never", "--", "app"}).options.color == "never");
  BOOST_TEST(Parsed({"--color=yes", "--", "app"}).error == "--color=yes: auto, always or never");
  struct Row {
    const char* when;
    ColorSurroundings surroundings;
    bool wants;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"auto", {true, "xterm", nullptr, nullptr, nullptr}, true},
           {"auto", {false, "xterm", nullptr, nullptr, nullptr}, false},
           {"auto", {true, "dumb", nullptr, nullptr, nullptr}, false},
           {"auto", {true, nullptr, nullptr, nullptr, nullptr}, false},
           {"auto", {true, "xterm", "1", nullptr, nullptr}, false},
           {"auto", {true, "xterm", "", nullptr, nullptr}, true},
           {"auto", {true, "xterm", nullptr, "0", nullptr}, false},
           {"auto", {true, "xterm", nullptr, "1", nullptr}, true},
           {"auto", {false, nullptr, nullptr, nullptr, "1"}, true},
           {"auto", {false, nullptr, nullptr, nullptr, "0"}, false},
           {"auto", {false, nullptr, nullptr, nullptr, ""}, false},
           {"auto", {false, nullptr, "1", nullptr, "1"}, false},
           {"always", {false, nullptr, "1", "0", "0"}, true},
           {"never", {true, "xterm", nullptr, "1", "1"}, false},
       }) {
    BOOST_TEST(WantsColors(row.when, row.surroundings) == row.wants, row.when);
  }
}

BOOST_AUTO_TEST_CASE(usage_fits_a_screen) {
  std::istringstream usage(kUsage);
  int lines = 0;
  for (std::string line; std::getline(usage, line); ++lines) {
    BOOST_TEST(line.size() <= 80u, line);
  }
  BOOST_TEST(lines >= 24);
  BOOST_TEST(lines <= 40);
}

BOOST_AUTO_TEST_CASE(defaults_are_lines_of_a_file) {
  Options options;
  BOOST_TEST(ParseOptionsFile("f",
                              "# of this project\n\n --error-exitcode=9\r\n"
                              "--json a b.json\n--object=x y\n\t-q",
                              &options) == "");
  BOOST_TEST(options.error_exitcode == 9);
  BOOST_TEST(options.json == "a b.json");
  BOOST_TEST(options.objects == std::vector<std::string>({"x y"}),
             boost::test_tools::per_element());
  BOOST_TEST(options.verbosity == -1);
  BOOST_TEST(ParseOptionsFile("f", "-q\n\n--jsno=x\n", &options) ==
             "f:3: there is no option --jsno");
  BOOST_TEST(ParseOptionsFile("f", "--json", &options) == "f:1: --json needs a value");
  BOOST_TEST(ParseOptionsFile("f", "app", &options) == "f:1: -- is missing before app");
}

BOOST_AUTO_TEST_CASE(defaults_are_words_of_a_variable) {
  Options options;
  BOOST_TEST(ParseOptionsVariable("  --error-exitcode=9\t--trace t\n-v ", &options) == "");
  BOOST_TEST(options.error_exitcode == 9);
  BOOST_TEST(options.trace == "t");
  BOOST_TEST(options.verbosity == 1);
  BOOST_TEST(ParseOptionsVariable("--jsno", &options) ==
             "CUGUEST_AUDIT_OPTIONS: there is no option --jsno");
}

BOOST_AUTO_TEST_CASE(file_names_have_process_and_host) {
  Options options;
  options.output = "100%%";
  options.json = "%h-%p.json";
  options.replay = "a%p";  // is read
  BOOST_TEST(ResolveFiles(47, "node", &options) == "");
  BOOST_TEST(options.output == "100%");
  BOOST_TEST(options.json == "node-47.json");
  BOOST_TEST(options.replay == "a%p");
  for (const char* wrong : {"a%q", "a%"}) {
    options = Options();
    options.log = wrong;
    BOOST_TEST(ResolveFiles(47, "node", &options) ==
               "--log=" + options.log + ": after a % there is p, h or another %");
  }
}

BOOST_AUTO_TEST_CASE(one_file_is_for_one_option) {
  std::string Options::*const files[] = {&Options::output, &Options::html,  &Options::json,
                                         &Options::sarif,  &Options::trace, &Options::log,
                                         &Options::replay};
  for (const auto a : files) {
    for (const auto b : files) {
      if (a == b) continue;
      Options options;
      options.*a = "no-such-folder/../one";
      options.*b = "./one";
      const std::string error = ResolveFiles(1, "", &options);
      BOOST_TEST(error.find(" name one file, ") != std::string::npos, error);
      options.*a = options.*b = "/dev/null";
      BOOST_TEST(ResolveFiles(1, "", &options) == "");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
