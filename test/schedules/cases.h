// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the programs of this folder share: explorations with names, each of which is expected to
// find nothing, or to find something where the source was made wrong on purpose.

#ifndef CUGUEST_TEST_SCHEDULES_CASES_H_
#define CUGUEST_TEST_SCHEDULES_CASES_H_

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/schedules/explorer.h"

namespace schedules {

enum class Expect { kSuccess, kFailure };

struct Case {
  std::string name;
  std::function<std::unique_ptr<Program>()> make;
  Bounds bounds = {};
  std::uint64_t executions = 0;  // exactly so many; 0: any
};

// Programs that belong together, explored one after another. Only one of them needs to fail where
// failure is expected.
struct Group {
  std::string name;
  std::vector<Case> cases;
  Expect expect = Expect::kSuccess;
  bool is_long = false;  // explored only if it is asked for
};

inline std::string BoundsText(const Bounds& bounds) {
  std::string text = bounds.preemptions == kUnbounded
                         ? "every schedule"
                         : "up to " + std::to_string(bounds.preemptions) + " preemptions";
  if (bounds.stale_reads != 0) {
    text += bounds.stale_reads == kUnbounded
                ? ", weak memory"
                : ", weak memory with up to " + std::to_string(bounds.stale_reads) + " stale reads";
  }
  return text;
}

inline std::string BoundsOf(const Group& group) {
  std::string text;
  for (const Case& one : group.cases) {
    const std::string bounds = BoundsText(one.bounds);
    if (text.find(bounds) == std::string::npos) text += (text.empty() ? "" : "; ") + bounds;
  }
  return text;
}

// Returns whether all went as expected; prints a line for each group, and the steps of what failed
// unexpectedly.
inline bool RunGroup(const Group& group, bool is_verbose) {
  Outcome sum;
  bool is_as_expected = true;
  const auto begin = std::chrono::steady_clock::now();
  std::string found;
  for (const Case& one : group.cases) {
    const Outcome outcome = Explore(one.bounds, one.make);
    if (is_verbose) {
      std::printf("  %s: %llu interleavings, %llu redundant\n", one.name.c_str(),
                  static_cast<unsigned long long>(outcome.executions),
                  static_cast<unsigned long long>(outcome.redundant));
    }
    sum.executions += outcome.executions;
    sum.redundant += outcome.redundant;
    sum.steps += outcome.steps;
    if (outcome.failed()) {
      found = "in " + one.name + ": " + outcome.failure;
      break;
    }
    if (!outcome.is_complete || (one.executions != 0 && one.executions != outcome.executions)) {
      std::printf("FAILED: %s, %s: %llu interleavings%s, not %llu\n", group.name.c_str(),
                  one.name.c_str(), static_cast<unsigned long long>(outcome.executions),
                  outcome.is_complete ? "" : " and more",
                  static_cast<unsigned long long>(one.executions));
      is_as_expected = false;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const bool expects_failure = group.expect == Expect::kFailure;
  if (expects_failure != !found.empty()) is_as_expected = false;
  std::printf(
      "%s: %s, %zu programs, %s: %llu interleavings, %llu redundant, %llu steps, %.1f s%s\n",
      is_as_expected ? "passed" : "FAILED", group.name.c_str(), group.cases.size(),
      BoundsText(group.cases.front().bounds).c_str(),
      static_cast<unsigned long long>(sum.executions),
      static_cast<unsigned long long>(sum.redundant), static_cast<unsigned long long>(sum.steps),
      took.count(),
      !expects_failure ? ""
      : found.empty()  ? "; the defect was not found"
                       : "; the defect was found");
  if (expects_failure && !found.empty()) {
    std::printf("  %s\n", found.substr(0, found.find('\n')).c_str());
  } else if (!found.empty()) {
    std::printf("  %s\n", found.c_str());
  }
  std::fflush(stdout);
  return is_as_expected;
}

// What a program explores: each defines it, and main.cc explores them.
std::vector<Group> Groups();

}  // namespace schedules

#endif  // CUGUEST_TEST_SCHEDULES_CASES_H_
