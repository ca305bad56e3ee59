// SPDX-License-Identifier: Apache-2.0
//
// The machinery of the storm (storm_test.cc) itself: a fault that is planted in it is found,
// and the storm is cut down to the operation that the fault was planted in. The storms run in
// children, with a std::thread for each of their threads.

#include <cstdio>
#include <cstring>
#include <string>

#include "cuguest/testing/sim.h"
#include "test/interop/storm/supervisor.h"
#include "test/support/scenario.h"

namespace {

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
    {"lose_capture@900", {"capture", "shortest: 901 operations, in lockstep", "--only"}},
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

bool Finds(const Case& planted) {
  const cuguest_test::Ended ended = cuguest_test::RunSelf(
      {"--seeds", "1", "--threads", "6", "--operations", "1200", "--plant", planted.plant});
  const bool found = ended.code == 1 && PrintsInOrder(ended.output, planted.lines);
  std::printf("%s: %s\n", found ? "passed" : "FAILED", planted.plant);
  if (!found) std::printf("--- its output\n%s---\n", ended.output.c_str());
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return storm::StormMain(argc, argv);
  if (!cuguest::testing::Sim::IsActive()) {
    std::printf("skipped: it takes hundreds of storms, too long where contexts cost time\n");
    return 77;
  }
  int failed = 0;
  for (const Case& planted : kCases) failed += Finds(planted) ? 0 : 1;
  return failed == 0 ? 0 : 1;
}
