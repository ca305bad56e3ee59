// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/benchmark/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cudasim/sim.h"
#include "cuguest/devices.h"

namespace cuguest_benchmark {

using cuguest::Device;
using cuguest::Driver;

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--check") == 0) options.check = true;
    if (std::strcmp(argv[i], "--smoke") == 0) options.smoke = true;
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) options.only.push_back(argv[++i]);
  }
  return options;
}

bool Options::Wants(const std::string& title) const {
  const auto is_in = [&](const std::string& some) { return title.find(some) != std::string::npos; };
  return only.empty() || std::any_of(only.begin(), only.end(), is_in);
}

void Require(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

const cuguest::ObjectDriver* FindDriver() {
  const auto driver = cuguest::ObjectDriver::GetInitialized();
  if (!driver.ok()) {
    std::printf("no driver: %s\n", std::string(driver.status().message()).c_str());
    return nullptr;
  }
  std::printf("%s driver, CUDA %d.%d, %s\n", cudasim::Sim::IsActive() ? "simulated" : "real",
              (*driver)->version / 1000, (*driver)->version % 1000 / 10,
              NameOf(Device::Borrow(0)).value_or("?").c_str());
  return *driver;
}

CUcontext MakeContext(const Driver& driver, CUdevice device) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  if (driver.CtxCreate(&context, 0, device) != CUDA_SUCCESS) return nullptr;
  driver.CtxPopCurrent(&popped);
  return context;
}

void Times::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
    // Google Benchmark divides the time by the iterations of all threads together;
    // what one thread waits for one of them is `threads` times that.
    times_[run.run_name.function_name].push_back(run.GetAdjustedRealTime() *
                                                 static_cast<double>(run.threads));
  }
}

double Times::Best(const std::string& key) const {
  const auto found = times_.find(key);
  if (found == times_.end()) return 0;
  return *std::min_element(found->second.begin(), found->second.end());
}

const std::vector<double>& Times::All(const std::string& key) const {
  static const std::vector<double> none;
  const auto found = times_.find(key);
  return found == times_.end() ? none : found->second;
}

void Run(const char* program, Times* times) {
  std::string name = program;
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  char* options[] = {name.data(), interleave.data()};
  int option_count = 2;
  benchmark::Initialize(&option_count, options);
  benchmark::RunSpecifiedBenchmarks(times);
}

}  // namespace cuguest_benchmark
