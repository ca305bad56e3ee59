// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUDASIM_CONFORMANCE_THREADS_H_
#define CUDASIM_CONFORMANCE_THREADS_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "conformance/world.h"

namespace conformance {

// Threads
//
// The threads of a sequence, one of which runs at a time.
class Threads {
 public:
  Threads();
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Returns when `work` has run on thread `index`.
  void RunOn(int index, const std::function<void()>& work);

 private:
  static constexpr int kNobody = -1;

  void Serve(int index);

  std::mutex mutex_;
  std::condition_variable changed_[kThreads];
  std::condition_variable done_;
  int turn_ = kNobody;
  const std::function<void()>* work_ = nullptr;  // null when it is a thread's turn to end
  std::thread threads_[kThreads];
};

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_THREADS_H_
