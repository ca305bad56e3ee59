// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program of cases says of a case that finds out as it runs that it does not apply.

#include <string>

#include "test/facts.h"
#include "test/support/child.h"

namespace {

constexpr char kReason[] = "there is no such thing here";

// This program again, with that case alone.
cudasim_test::Ended RunCase(const std::string& name) {
  return cudasim_test::RunSelf({"--run_test=run_by_runner/" + name});
}

bool Says(const cudasim_test::Ended& ended, const std::string& line) {
  return ended.output.find(line + "\n") != std::string::npos;
}

}  // namespace

// Of a suite of their own, which nothing runs but RunCase(): a filter for a suite enables all of
// its cases.
BOOST_AUTO_TEST_SUITE(run_by_runner, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(says_is_skipped) { cudasim_test::SayIsSkipped(kReason); }

BOOST_AUTO_TEST_CASE(fails_before_it_says_so) {
  BOOST_TEST(false);
  cudasim_test::SayIsSkipped(kReason);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(runner)

BOOST_AUTO_TEST_CASE(case_that_says_so_is_skipped) {
  const cudasim_test::Ended ended = RunCase("says_is_skipped");
  BOOST_TEST(ended.code == 77, ended.output);
  BOOST_TEST(Says(ended, std::string("skipped: run_by_runner/says_is_skipped: ") + kReason),
             ended.output);
  BOOST_TEST(Says(ended, "cases: 0 passed, 0 failed, 1 skipped"), ended.output);
}

BOOST_AUTO_TEST_CASE(case_that_fails_is_not_skipped) {
  const cudasim_test::Ended ended = RunCase("fails_before_it_says_so");
  BOOST_TEST((ended.code != 0 && ended.code != 77), ended.output);
  BOOST_TEST(Says(ended, "cases: 0 passed, 1 failed, 0 skipped"), ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
