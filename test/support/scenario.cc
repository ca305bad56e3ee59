// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/scenario.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cudasim/sim.h"
#include "cuguest/driver.h"

namespace cuguest_test {
namespace {

using cudasim::Sim;

// Empty if the child did as it should.
std::string Complaint(const Scenario& scenario, const Ended& ended) {
  if (ended.code != scenario.code) {
    return "it ended with " + std::to_string(ended.code) + ", not " + std::to_string(scenario.code);
  }
  std::size_t from = 0;
  for (const std::string& line : scenario.lines) {
    const std::size_t found = ended.output.find(line, from);
    if (found == std::string::npos) return "it did not print, in its place: " + line;
    from = found + line.size();
  }
  return "";
}

int Usage(const char* program, const std::vector<Scenario>& scenarios) {
  std::fprintf(stderr,
               "usage: %s [--run_test=[*/]NAME | NAME]\n"
               "  --run_test=NAME  one scenario instead of all, in a process of its own, checked\n"
               "  NAME             the scenario in this process, with nothing of it checked\n"
               "scenarios:\n",
               program);
  for (const Scenario& scenario : scenarios) std::fprintf(stderr, "  %s\n", scenario.name);
  return 2;
}

std::string WhySkipped(const Scenario& scenario) {
  if (scenario.on == On::kSimulation && !Sim::IsActive()) return "needs the simulated driver";
  if (scenario.on == On::kRealDriver && Sim::IsActive()) return "needs a real driver";
  return scenario.skip == nullptr ? "" : scenario.skip();
}

}  // namespace

void Fork(const std::function<void()>& in_child, pid_t (*make)()) {
  std::fflush(stdout);
  const pid_t child = make();
  CHECK(child >= 0);
  if (child == 0) {
    in_child();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int RunScenarios(int argc, char** argv, const std::vector<Scenario>& scenarios) {
  const Scenario* only = nullptr;
  if (argc > 1) {
    const std::string argument = argv[1];
    const bool is_filter = argument.rfind("--run_test=", 0) == 0;
    const std::string name =
        is_filter ? argument.substr(argument.find_last_of("=/") + 1) : argument;
    for (const Scenario& scenario : scenarios) {
      if (scenario.name == name) only = &scenario;
    }
    if (argc > 2 || only == nullptr) return Usage(argv[0], scenarios);
    if (!is_filter) {
      only->run();
      return 0;
    }
  }
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  const char* wanted = std::getenv("CUDASIM_TEST_DRIVER");
  if (wanted != nullptr && Sim::IsActive() != (std::string(wanted) == "sim")) {
    std::printf("the driver is not the one that CUDASIM_TEST_DRIVER asks for: %s\n", wanted);
    return 1;
  }
  const auto driver = cuguest::Driver::Get();
  const int version = driver.ok() ? (*driver)->version : 0;
  std::printf("driver: %s, CUDA %d.%d\n", Sim::IsActive() ? "simulated" : "real", version / 1000,
              version % 1000 / 10);
  for (const Scenario& scenario : scenarios) {
    if (only != nullptr && only != &scenario) continue;
    const std::string why = WhySkipped(scenario);
    if (!why.empty()) {
      std::printf("skipped: %s: %s\n", scenario.name, why.c_str());
      ++skipped;
      continue;
    }
    const Ended ended = RunSelf({scenario.name}, scenario.environment);
    const std::string complaint = Complaint(scenario, ended);
    std::printf("%s: %s\n", complaint.empty() ? "passed" : "FAILED", scenario.name);
    if (!complaint.empty()) {
      std::printf("  %s\n--- its output\n%s---\n", complaint.c_str(), ended.output.c_str());
    }
    ++(complaint.empty() ? passed : failed);
  }
  std::printf("cases: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
  if (failed != 0) return 1;
  return passed == 0 ? 77 : 0;
}

}  // namespace cuguest_test
