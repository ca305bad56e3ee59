// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A storm: threads that do what the seed says, in contexts that they share.

#ifndef CUGUEST_TEST_INTEROP_STORM_STORM_H_
#define CUGUEST_TEST_INTEROP_STORM_STORM_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "test/interop/storm/footprint.h"
#include "test/interop/storm/operations.h"
#include "test/interop/storm/options.h"
#include "test/interop/storm/schedule.h"
#include "test/interop/storm/world.h"

namespace storm {

// The exit code of a storm that failed.
inline constexpr int kFailed = 1;
// How the line of a failure begins; the index of the operation follows.
inline constexpr const char* kFailedAt = "storm: FAILED at operation ";

class Storm {
 public:
  explicit Storm(const Options& options);

  // Prints what was done. Returns whether nothing was disturbed, and nothing is left.
  bool Run();

 private:
  struct FirstFailure {
    std::uint64_t index;
    std::string text;
  };

  void RunThread(int thread);
  void TakeSteps(int thread, Worker* worker);
  void TakeStep(Worker* worker, std::uint64_t step, std::uint64_t index);
  void Fail(int thread, std::uint64_t step, std::uint64_t index, const char* operation,
            const std::string& what);
  void Watch();
  void CompareSizes();
  [[nodiscard]] const Operation& Pick(Random* random, std::uint64_t step) const;
  [[nodiscard]] bool IsReset(std::uint64_t step) const;
  void PrintTallies(double seconds) const;

  const Options options_;
  World world_;
  Schedule schedule_;
  const Operations usual_;
  const Operations heavy_;
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<int> running_{0};
  mutable std::mutex mutex_;
  Tallies tallies_;
  std::uint64_t incidents_ = 0;
  std::optional<FirstFailure> failure_;
  std::vector<ProcessSize> sizes_;  // kSizes of them, at equal distances
};

// Runs one storm in this process; returns the exit code.
int RunStorm(const Options& options);

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_STORM_H_
