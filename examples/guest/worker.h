// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUGUEST_EXAMPLES_GUEST_WORKER_H_
#define CUGUEST_EXAMPLES_GUEST_WORKER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace guest {

// A thread that runs jobs, one after the other.
class Worker {
 public:
  Worker() : thread_([this] { Loop(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Returns when `job` is done.
  //
  // Threads: any, but one at a time.
  void Run(const std::function<void()>& job);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* job_ = nullptr;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace guest

#endif  // CUGUEST_EXAMPLES_GUEST_WORKER_H_
