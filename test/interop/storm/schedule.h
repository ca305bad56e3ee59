// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of what the threads do. Every thread takes step 0, step 1, ...; the k-th steps of all
// threads are round k, and within a round the seed decides the order. So every operation has an
// index, and a storm can be cut off behind any of them. In lockstep the operations run one
// at a time in that order; otherwise the threads run freely and meet at resets only.

#ifndef CUGUEST_TEST_INTEROP_STORM_SCHEDULE_H_
#define CUGUEST_TEST_INTEROP_STORM_SCHEDULE_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "test/interop/storm/options.h"

namespace storm {

class Schedule {
 public:
  explicit Schedule(const Options& options);

  // Of step `step` of `thread`.
  [[nodiscard]] std::uint64_t IndexOf(int thread, std::uint64_t step) const;

  // Whether `thread` is the first one to take step `step`.
  [[nodiscard]] bool Leads(int thread, std::uint64_t step) const;

  // In lockstep, waits until every operation before `index` has ended; otherwise at once.
  // False: the storm was stopped, and the operation is not to run.
  [[nodiscard]] bool Begin(int thread, std::uint64_t index);
  void End(std::uint64_t index);

  // Waits for every thread that has not left. False: the storm was stopped.
  [[nodiscard]] bool Meet();
  // The thread takes no more steps. Waits until that is so of all: what a thread has in progress
  // stays so until the last operation. False: the storm was stopped.
  [[nodiscard]] bool Leave();

  void Stop();

 private:
  [[nodiscard]] int Position(int thread, std::uint64_t step) const;
  [[nodiscard]] int ThreadAt(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t NextFrom(std::uint64_t index) const;
  void HoldMeeting();

  const Options& options_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::uint64_t next_;                          // in lockstep: whose turn it is
  std::vector<std::condition_variable> turns_;  // one for each thread
  std::condition_variable meeting_;
  int present_ = 0;  // threads that have not left
  int waiting_ = 0;
  std::uint64_t meetings_ = 0;
};

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_SCHEDULE_H_
