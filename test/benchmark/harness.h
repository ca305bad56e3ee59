// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the benchmarks share: which driver is measured, how each thing is repeated, and
// the figure that is taken from the repetitions.

#ifndef CUGUEST_TEST_BENCHMARK_HARNESS_H_
#define CUGUEST_TEST_BENCHMARK_HARNESS_H_

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/objects/driver.h"
#include "cuguest/status.h"

namespace cuguest_benchmark {

constexpr int kThreads[] = {1, 4, 16};

// --check: fail if a promise is not kept. --smoke: only try whether everything runs.
struct Options {
  bool check = false;
  bool smoke = false;
  // Of the table, the groups with one of these in their title; all if there is none.
  std::vector<std::string> only;

  [[nodiscard]] bool Wants(const std::string& title) const;
};
Options Parse(int argc, char** argv);

// Ends the program with `what` unless `fine`.
void Require(bool fine, const char* what);

template <typename T>
T Take(absl::StatusOr<T> result) {
  Require(result.ok(), result.status().ToString().c_str());
  return *std::move(result);
}
template <typename T>
T Take(T object) {
  Require(object.ok(), cuguest::ToStatus(object).ToString().c_str());
  return object;
}

// The driver, initialised, after a line that says which it is; nullptr if there is none.
const cuguest::ObjectDriver* FindDriver();

// A floating context; nullptr if it cannot be made.
CUcontext MakeContext(const cuguest::Driver& driver, CUdevice device = 0);

// Keeps the repetitions of each benchmark, and prints nothing while they run.
class Times : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  // In nanoseconds that one thread waits for one iteration; 0 if it was not measured.
  // Whatever else the machine does only adds, so the best is the nearest to the cost.
  double Best(const std::string& key) const;
  const std::vector<double>& All(const std::string& key) const;

 private:
  std::map<std::string, std::vector<double>> times_;
};

// Registers `body(state)` under `key`, for `threads` threads.
template <typename Body>
void Register(const std::string& key, int threads, const Options& options, Body body) {
  benchmark::RegisterBenchmark(key.c_str(), std::move(body))
      ->Threads(threads)
      ->UseRealTime()
      ->Repetitions(options.smoke ? 2 : 9)
      ->MinTime(options.smoke ? 0.0005 : 0.02);
}

// Runs all that is registered, the repetitions of different ones interleaved.
void Run(const char* program, Times* times);

}  // namespace cuguest_benchmark

#define REQUIRE(claim) ::cuguest_benchmark::Require((claim), #claim)

#endif  // CUGUEST_TEST_BENCHMARK_HARNESS_H_
