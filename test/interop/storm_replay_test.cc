// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machinery of the storm (storm_test.cc) itself: a fault that is planted in it is found,
// and the storm is cut down to the operation that the fault was planted in; and what the seed
// says is done in lockstep as well as by threads that run freely.

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/interop/storm/supervisor.h"
#include "test/support/scenario.h"

namespace {

using cuguest_test::Ended;

struct Case {
  const char* plant;
  // What must be printed, in this order.
  const char* lines[3];
};

// Six threads: the index decides which thread it is.
constexpr Case kCases[] = {
    {"leak_push@777",
     {"the stack is not what it should be", "shortest: 778 operations, in lockstep", "--only"}},
    {"leak_memory@500", {"left behind", "shortest: 501 operations, in lockstep", "--only"}},
    {"crash@333", {"ended by signal 9", "shortest: 334 operations, in lockstep", "--only"}},
    {"lose_capture@60", {"capture", "shortest: 61 operations, in lockstep", "--only"}},
    {"race@50", {"one at a time", "shortest: 51 operations, not in lockstep", "--only"}},
};

bool PrintsInOrder(const std::string& output, const char* const (&lines)[3]) {
  std::size_t from = 0;
  for (const char* line : lines) {
    const std::size_t found = output.find(line, from);
    if (found == std::string::npos) return false;
    from = found + std::strlen(line);
  }
  return true;
}

bool Report(const char* name, bool passed, const std::string& output) {
  std::printf("%s: %s\n", passed ? "passed" : "FAILED", name);
  if (!passed) std::printf("--- its output\n%s---\n", output.c_str());
  std::fflush(stdout);
  return passed;
}

Ended RunStorm(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--seeds", "1", "--threads", "6", "--operations", "1200"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cuguest_test::RunSelf(arguments);
}

bool Finds(const Case& planted) {
  const Ended ended = RunStorm({"--plant", planted.plant});
  return Report(planted.plant, ended.code == 1 && PrintsInOrder(ended.output, planted.lines),
                ended.output);
}

// Every operation and how often it was done, and how many incidents, without the times.
std::string Counts(const std::string& output) {
  std::istringstream lines(output);
  std::string counts;
  for (std::string line; std::getline(lines, line);) {
    const bool is_operation = line.size() > 3 && line.compare(line.size() - 3, 3, " us") == 0;
    if (is_operation) counts += line.substr(0, 34) + "\n";
    const std::size_t incidents = line.find("incidents caused");
    if (incidents != std::string::npos) counts += line.substr(incidents);
  }
  return counts;
}

bool FollowsTheSeed() {
  const Ended free = RunStorm({"--seed", "5"});
  const Ended lockstep = RunStorm({"--seed", "5", "--lockstep"});
  const Ended other = RunStorm({"--seed", "6"});
  const std::string counts = Counts(free.output);
  return Report("follows the seed",
                free.code == 0 && lockstep.code == 0 && other.code == 0 && !counts.empty() &&
                    counts == Counts(lockstep.output) && counts != Counts(other.output),
                free.output + lockstep.output);
}

bool Refuses(const std::vector<std::string>& arguments) {
  const Ended ended = RunStorm(arguments);
  return Report(("refuses " + arguments.back()).c_str(), ended.code == 2, ended.output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return storm::StormMain(argc, argv);
  if (!cudasim::Sim::IsActive()) {
    std::printf("skipped: it takes hundreds of storms, too long where contexts cost time\n");
    return 77;
  }
  bool passed = FollowsTheSeed();
  passed &= Refuses({"--only", "6"});
  passed &= Refuses({"--only", "1,"});
  passed &= Refuses({"--operations", "1e3"});
  passed &= Refuses({"--threads", "0"});
  passed &= Refuses({"--seeds", "0"});
  passed &= Refuses({"--plant", "nothing@1"});
  passed &= Refuses({"--seed"});
  for (const Case& planted : kCases) passed &= Finds(planted);
  return passed ? 0 : 1;
}
