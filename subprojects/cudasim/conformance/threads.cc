// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/threads.h"

namespace conformance {

Threads::Threads() {
  for (int i = 0; i < kThreads; ++i) threads_[i] = std::thread([=] { Serve(i); });
}

Threads::~Threads() {
  for (int i = 0; i < kThreads; ++i) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      work_ = nullptr;
      turn_ = i;
    }
    changed_[i].notify_one();
    threads_[i].join();
  }
}

void Threads::RunOn(int index, const std::function<void()>& work) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  turn_ = index;
  changed_[index].notify_one();
  done_.wait(lock, [&] { return turn_ == kNobody; });
}

void Threads::Serve(int index) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_[index].wait(lock, [&] { return turn_ == index; });
    if (work_ == nullptr) return;
    (*work_)();
    turn_ = kNobody;
    done_.notify_one();
  }
}

}  // namespace conformance
