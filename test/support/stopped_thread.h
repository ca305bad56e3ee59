// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that is stopped in the middle of its work, at each of its places in turn.

#ifndef CUGUEST_TEST_SUPPORT_STOPPED_THREAD_H_
#define CUGUEST_TEST_SUPPORT_STOPPED_THREAD_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace cuguest_test {

// The program has Reach() called at the places: at each driver call, say, and wherever the library
// has taken a lock. It stops there for a short time only, since a fork may have to wait for the
// lock. One at a time.
class StoppedThread {
 public:
  // How many places the work has.
  static int CountPlaces(const std::function<void()>& work) {
    std::thread([&] { Run(-1, work); }).join();
    return s_places;
  }

  // Returns when it is at `place`, or is done.
  StoppedThread(int place, const std::function<void()>& work) {
    s_is_there = false;
    s_may_go_on = false;
    thread_ = new std::thread([place, work] { Run(place, work); });
    while (!s_is_there) std::this_thread::yield();
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  ~StoppedThread() = default;

  // Lets it end. In the process that began it: a child of a fork does not have it.
  void End() {
    s_may_go_on = true;
    thread_->join();
    delete thread_;
  }

  // How often one has stopped.
  static int stops() { return s_stops; }

  static void Reach() {
    if (!s_is_it || s_places++ != s_stop_at) return;
    ++s_stops;
    s_is_there = true;
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!s_may_go_on && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

 private:
  static constexpr std::chrono::milliseconds kLongest{100};

  static void Run(int place, const std::function<void()>& work) {
    s_places = 0;
    s_stop_at = place;
    s_is_it = true;
    work();
    s_is_it = false;
    s_is_there = true;
  }

  static inline thread_local bool s_is_it = false;
  static inline std::atomic<int> s_places{0};
  static inline std::atomic<int> s_stops{0};
  static inline std::atomic<int> s_stop_at{-1};
  static inline std::atomic<bool> s_is_there{false};
  static inline std::atomic<bool> s_may_go_on{false};

  std::thread* thread_;  // left alone in a child
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_STOPPED_THREAD_H_
