// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random sequences of scopes, of faults of their callees and of contexts that end. After each the
// caller's context is current, or its own end is the reason, which a code has said. Without faults,
// and around an ExactGuard, the whole stack is the host's; otherwise it differs by no more entries
// than Bound() of scope_player.cc says, and not without an incident. Without faults the thread has
// the host's capture mode inside a host scope, and the innermost guard's after it.
//
// The same sequences each time. In the environment:
//   CUGUEST_TEST_SEED       of the first sequence of each class (0)
//   CUGUEST_TEST_SEQUENCES  how many of each class
//   CUGUEST_TEST_SECONDS    as many as begin in that time, in place of a number
// A sequence that goes wrong is printed with its seed, and with the fewest of its steps that do.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "test/guard/scope_player.h"
#include "test/support/test.h"

#ifdef __SANITIZE_ADDRESS__
// What a scope that is left open has of its stack is lost with its thread, as exact_guard.h says.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:EnterExactly";
}
#endif

BOOST_AUTO_TEST_SUITE(random_scopes)

namespace {

using scope_sequence::Class;
using scope_sequence::Generate;
using scope_sequence::Outcome;
using scope_sequence::Play;
using scope_sequence::Sequence;
using Clock = std::chrono::steady_clock;

std::uint64_t NumberOr(const char* variable, std::uint64_t otherwise) {
  const char* const number = std::getenv(variable);
  return number != nullptr ? std::strtoull(number, nullptr, 10) : otherwise;
}

// The simulation ends the process where a driver's state would be undefined: then these are the
// last words.
char g_now[128];
void SayWhere(int) {
  static_cast<void>(!write(STDERR_FILENO, g_now, std::strlen(g_now)));
  std::signal(SIGABRT, SIG_DFL);
}

// Until `count` sequences, or with `seconds` that time, are over.
class Budget {
 public:
  explicit Budget(std::uint64_t sequences) : left_(sequences) {
    const auto seconds = NumberOr("CUGUEST_TEST_SECONDS", 0);
    left_ = NumberOr("CUGUEST_TEST_SEQUENCES", left_);
    has_time_ = seconds > 0;
    end_ = Clock::now() + std::chrono::milliseconds(seconds * 1000 / std::size(kAll));
  }
  bool Take() { return has_time_ ? Clock::now() < end_ : left_-- > 0; }

 private:
  static constexpr auto& kAll = scope_sequence::kAllClasses;
  std::uint64_t left_;
  bool has_time_;
  Clock::time_point end_;
};

std::string Report(const Sequence& sequence) {
  const Sequence shrunk = scope_sequence::Shrunk(sequence);
  const Outcome outcome = Play(shrunk);
  return "CUGUEST_TEST_SEED=" + std::to_string(sequence.seed) + " CUGUEST_TEST_SEQUENCES=1, " +
         outcome.wrong + "\n  " + NameOf(sequence.its) + ", on [" + shrunk.host +
         "]:" + outcome.steps;
}

void PlayAll(Class its) {
  std::signal(SIGABRT, &SayWhere);
  std::uint64_t seed = NumberOr("CUGUEST_TEST_SEED", 0);
  std::uint64_t played = 0;
  long wrong = 0;
  std::string reports;
  long most = 0;
  std::uint64_t limits = 0;
  long modes = 0;
  const auto begin = Clock::now();
  for (Budget budget(2000); budget.Take(); ++seed, ++played) {
    const Sequence sequence = Generate(its, seed);
    std::snprintf(g_now, sizeof(g_now), "while it played %s, CUGUEST_TEST_SEED=%llu\n", NameOf(its),
                  static_cast<unsigned long long>(seed));
    const Outcome outcome = Play(sequence);
    most = std::max(most, std::labs(outcome.entries_more) - outcome.faults);
    limits += outcome.is_at_limit ? 1U : 0U;
    modes += outcome.modes;
    if (outcome.wrong.empty()) continue;
    if (wrong++ < 5) reports += "\n" + Report(sequence);
  }
  const std::chrono::duration<double> time = Clock::now() - begin;
  BOOST_TEST_MESSAGE(NameOf(its) << ": " << played << " sequences, " << wrong << " wrong, "
                                 << static_cast<long>(static_cast<double>(played) / time.count())
                                 << " a second; entries beyond faults " << most << ", at a limit "
                                 << limits << ", modes compared " << modes);
  BOOST_TEST(wrong == 0, NameOf(its)
                             << ": " << wrong << " of " << played << " are wrong:" << reports);
  // Few, so that a limit does not hide what is no limit.
  const std::uint64_t at_most = its == Class::kClean ? 1 + played / 1000 : 10 + played / 5;
  BOOST_TEST(limits <= at_most, NameOf(its) << ": " << limits << " are at a limit");
  std::signal(SIGABRT, SIG_DFL);
}

}  // namespace

BOOST_AUTO_TEST_CASE(clean, *cuguest_test::OnlySim()) { PlayAll(Class::kClean); }
BOOST_AUTO_TEST_CASE(raw_faults, *cuguest_test::OnlySim()) { PlayAll(Class::kRawFaults); }
BOOST_AUTO_TEST_CASE(exact_guard, *cuguest_test::OnlySim()) { PlayAll(Class::kExactGuard); }
BOOST_AUTO_TEST_CASE(failing_calls, *cuguest_test::OnlySim()) { PlayAll(Class::kFailingCalls); }
BOOST_AUTO_TEST_CASE(resets, *cuguest_test::OnlySim()) { PlayAll(Class::kResets); }
BOOST_AUTO_TEST_CASE(destroyed, *cuguest_test::OnlySim()) { PlayAll(Class::kDestroyed); }
BOOST_AUTO_TEST_CASE(mixed, *cuguest_test::OnlySim()) { PlayAll(Class::kMixed); }

BOOST_AUTO_TEST_SUITE_END()
