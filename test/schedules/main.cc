// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// main() of every program of groups. Arguments:
//   -v         prints every program
//   -a         explores the long groups, too
//   -m NAME    a source was made wrong, in the way of this name, which one of them must find
//   NAME       the only group to explore

#include <string>
#include <utility>
#include <vector>

#include "test/schedules/cases.h"

int main(int argc, char** argv) {
  bool is_verbose = false;
  bool with_long = false;
  std::string mutation;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "-v") {
      is_verbose = true;
    } else if (argument == "-a") {
      with_long = true;
    } else if (argument == "-m" && i + 1 < argc) {
      mutation = argv[++i];
    } else {
      only = argument;
    }
  }
  using schedules::Group;
  // Most defects show with one preemption in some program: all of them are explored so before the
  // first one in full.
  Group mutated{mutation, {}, schedules::Expect::kFailure};
  std::vector<schedules::Case> in_full;
  int failed = 0;
  for (const Group& group : schedules::Groups()) {
    if (only.empty() ? group.is_long && !with_long : group.name != only) continue;
    if (!mutation.empty()) {
      for (schedules::Case one : group.cases) {
        in_full.push_back(one);
        one.bounds.preemptions = 1;
        one.executions = 0;
        mutated.cases.push_back(std::move(one));
      }
    } else if (!schedules::RunGroup(group, is_verbose)) {
      ++failed;
    }
  }
  mutated.cases.insert(mutated.cases.end(), in_full.begin(), in_full.end());
  if (!mutation.empty() && !schedules::RunGroup(mutated, is_verbose)) ++failed;
  return failed == 0 ? 0 : 1;
}
