// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUGUEST_TEST_SHARE_WATCH_H_
#define CUGUEST_TEST_SHARE_WATCH_H_

#include <cuda.h>

#include <atomic>
#include <thread>

#include "test/support/raw_driver.h"

namespace cuguest_test {

// Whether a context is alive, also after it was destroyed: it is an entry of another thread's
// stack meanwhile, which keeps its memory.
class Watch {
 public:
  explicit Watch(CUcontext context) : thread_([this, context] { Hold(context); }) {
    while (!holding_) std::this_thread::yield();
  }
  ~Watch() {
    done_ = true;
    thread_.join();
  }
  bool IsAlive() {
    asked_ = true;
    while (asked_) std::this_thread::yield();
    return alive_;
  }

 private:
  void Hold(CUcontext context) {
    static_cast<void>(RAW(cuCtxPushCurrent)(context));
    holding_ = true;
    while (!done_) {
      if (asked_) {
        unsigned version = 0;
        alive_ = RAW(cuCtxGetApiVersion)(context, &version) == CUDA_SUCCESS;
        asked_ = false;
      }
      std::this_thread::yield();
    }
    CUcontext popped = nullptr;
    static_cast<void>(RAW(cuCtxPopCurrent)(&popped));
  }

  std::atomic<bool> holding_{false};
  std::atomic<bool> asked_{false};
  std::atomic<bool> alive_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SHARE_WATCH_H_
