// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/supervisor.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cudasim/sim.h"
#include "test/interop/storm/options.h"
#include "test/interop/storm/shrink.h"
#include "test/interop/storm/storm.h"

namespace storm {
namespace {

using cudasim::Sim;

bool DriverIsWanted() {
  const char* wanted = std::getenv("CUDASIM_TEST_DRIVER");
  if (wanted == nullptr || Sim::IsActive() == (std::string(wanted) == "sim")) return true;
  std::printf("the driver is not the one that CUDASIM_TEST_DRIVER asks for: %s\n", wanted);
  return false;
}

void Report(const Options& options, const Outcome& outcome) {
  if (outcome.code < 0) std::printf("storm: ended by signal %d\n", -outcome.code);
  if (!options.shrink) return;
  std::printf("storm: looking for the shortest that fails\n");
  std::fflush(stdout);
  const std::optional<Shortest> shortest = Shrink(options);
  if (!shortest.has_value()) {
    std::printf("storm: it did not fail again\n");
    return;
  }
  std::string command = "storm_test --no-shrink --seeds 1";
  for (const std::string& word : shortest->options.Arguments()) command += " '" + word + "'";
  std::printf("%sstorm: shortest: %llu operations%s\nreplay: %s\n",
              shortest->outcome.output.c_str(),
              static_cast<unsigned long long>(shortest->options.operations),
              shortest->options.lockstep ? ", in lockstep" : ", not in lockstep", command.c_str());
}

}  // namespace

int StormMain(int argc, char** argv) {
  const std::optional<Options> options = ParseOptions(argc, argv);
  if (!options.has_value()) return 2;
  if (options->child) return RunStorm(*options);
  if (!DriverIsWanted()) return kFailed;
  std::printf("driver: %s\n", Sim::IsActive() ? "simulated" : "real");
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options->seconds);
  Options storm = *options;
  int storms = 0;
  while (storms < options->seeds || std::chrono::steady_clock::now() < end) {
    const Outcome outcome = RunChild(storm);
    std::printf("%s", outcome.output.c_str());
    std::fflush(stdout);
    if (outcome.failed()) {
      Report(storm, outcome);
      return kFailed;
    }
    if (outcome.code != 0) return outcome.code;
    ++storm.seed;
    ++storms;
  }
  std::printf("storms: %d, and nothing was disturbed\n", storms);
  return 0;
}

}  // namespace storm
