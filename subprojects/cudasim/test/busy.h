// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams that are kept busy by a host function.

#ifndef CUDASIM_TEST_BUSY_H_
#define CUDASIM_TEST_BUSY_H_

#include <atomic>
#include <chrono>
#include <thread>

#include "test/facts.h"

namespace cudasim_facts {

// Hold
//
// A host function in a stream that returns only after Release(), or after the end of the Hold.
class Hold {
 public:
  explicit Hold(CUstream stream) {
    const CUresult code = RAW(cuLaunchHostFunc)(stream, &Hold::Wait, this);
    OK(code);
    has_returned_ = code != CUDA_SUCCESS;
  }
  ~Hold() {
    Release();
    while (!has_returned_) std::this_thread::yield();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  void Release() { is_released_ = true; }

 private:
  static void CUDA_CB Wait(void* data) {
    auto* hold = static_cast<Hold*>(data);
    while (!hold->is_released_) std::this_thread::yield();
    hold->has_returned_ = true;
  }

  std::atomic<bool> is_released_{false};
  std::atomic<bool> has_returned_{false};
};

// Whether `call`, on a thread of its own, is still waiting while a host function holds the
// stream. What waits is given a moment, what does not a long time.
template <typename Function>
bool WaitsFor(CUstream stream, bool expected, const Function& call) {
  std::atomic<bool> done = false;
  Hold hold(stream);
  const CUcontext context = CurrentContext();
  std::thread thread([&] {
    SetStack({context});
    call();
    done = true;
    SetStack({});
  });
  const auto patience = std::chrono::milliseconds(expected ? 100 : 10000);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  const bool waits = !done;
  hold.Release();
  thread.join();
  OK(RAW(cuCtxSynchronize)());
  return waits;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_BUSY_H_
