// SPDX-License-Identifier: Apache-2.0

#include "test/support/scenario.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuguest/driver.h"
#include "cuguest/testing/sim.h"

extern char** environ;

namespace cuguest_test {
namespace {

using cuguest::testing::Sim;

std::string NameOf(const std::string& entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool changed = false;
    for (const std::string& change : changes) changed = changed || NameOf(change) == NameOf(*entry);
    if (!changed) entries.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) entries.push_back(change);
  }
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

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

std::string WhySkipped(const Scenario& scenario) {
  if (scenario.on == On::kSimulation && !Sim::IsActive()) return "needs the simulated driver";
  if (scenario.on == On::kRealDriver && Sim::IsActive()) return "needs a real driver";
  return scenario.skip == nullptr ? "" : scenario.skip();
}

}  // namespace

Ended RunSelf(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment) {
  Ended ended;
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::vector<std::string> argv = {"/proc/self/exe"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> envp = Environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  if (posix_spawn(&child, argv[0].c_str(), &actions, nullptr, Pointers(argv).data(),
                  Pointers(envp).data()) != 0) {
    std::abort();
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], buffer, sizeof(buffer))) > 0) {
    ended.output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ended;
}

CUcontext MakeContext() {
  const auto driver = cuguest::Driver::GetInitialized();
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  CHECK(driver.ok());
  CHECK((*driver)->CtxCreate(&context, 0, 0) == CUDA_SUCCESS);
  CHECK((*driver)->CtxPopCurrent(&popped) == CUDA_SUCCESS);
  return context;
}

void CheckFailed(const char* file, int line, const char* what) {
  std::printf("%s:%d: not so: %s\n", file, line, what);
  std::fflush(stdout);
  _exit(1);
}

int RunScenarios(int argc, char** argv, const std::vector<Scenario>& scenarios) {
  if (argc == 2) {
    for (const Scenario& scenario : scenarios) {
      if (std::strcmp(argv[1], scenario.name) != 0) continue;
      scenario.run();
      return 0;
    }
    return 2;
  }
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  const char* wanted = std::getenv("CUGUEST_TEST_DRIVER");
  if (wanted != nullptr && Sim::IsActive() != (std::string(wanted) == "sim")) {
    std::printf("the driver is not the one that CUGUEST_TEST_DRIVER asks for: %s\n", wanted);
    return 1;
  }
  const auto driver = cuguest::Driver::Get();
  const int version = driver.ok() ? (*driver)->version : 0;
  std::printf("driver: %s, CUDA %d.%d\n", Sim::IsActive() ? "simulated" : "real", version / 1000,
              version % 1000 / 10);
  for (const Scenario& scenario : scenarios) {
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
