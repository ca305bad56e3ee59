// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/guest/worker.h"

namespace guest {

Worker::~Worker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::Run(const std::function<void()>& job) {
  std::unique_lock<std::mutex> lock(mutex_);
  job_ = &job;
  changed_.notify_all();
  changed_.wait(lock, [this] { return job_ == nullptr; });
}

void Worker::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return job_ != nullptr || ending_; });
    if (job_ == nullptr) return;
    lock.unlock();
    (*job_)();
    lock.lock();
    job_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace guest
