// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's log of calls that fail, as callbacks get it: which lines, when, and on which thread.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(error_log_facts, *cudasim_test::NeedsDriver(12090, "cuLogsRegisterCallback"))

using namespace cudasim_facts;
using cudasim::Sim;

namespace {

thread_local bool t_in_call = false;

// What one callback got.
class Subscriber {
 public:
  Subscriber() { OK(RAW(cuLogsRegisterCallback)(&Hear, this, &handle_)); }
  ~Subscriber() {
    if (handle_ != nullptr) End();
  }
  void End() {
    OK(RAW(cuLogsUnregisterCallback)(handle_));
    handle_ = nullptr;
  }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  std::vector<std::string> lines;  // of the thread that made it; the others are only counted
  std::atomic<int> inside{0};
  std::atomic<int> outside{0};

 private:
  static void CUDA_CB Hear(void* user, CUlogLevel, char* message, size_t length) {
    auto* const self = static_cast<Subscriber*>(user);
    ++(t_in_call ? self->inside : self->outside);
    if (std::this_thread::get_id() == self->thread_) self->lines.emplace_back(message, length);
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  CUlogsCallbackHandle handle_ = nullptr;
};

bool Has(const std::string& line, const char* words) {
  return line.find(words) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_last_line_names_the_code) {
  Subscriber subscriber;
  CUdevice device = 0;
  IS(RAW(cuCtxGetDevice)(&device), INVALID_CONTEXT);
  BOOST_TEST_REQUIRE(subscriber.lines.size() >= 2U);
  BOOST_TEST(Has(subscriber.lines.back(), "Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from "),
             subscriber.lines.back());
  BOOST_TEST(Has(subscriber.lines.back(), "cuCtxGetDevice"), subscriber.lines.back());
  BOOST_TEST(!Has(subscriber.lines.front(), "Returning"), subscriber.lines.front());
}

BOOST_AUTO_TEST_CASE(a_good_call_has_no_line) {
  const OwnContext context;
  SetStack({context.get()});
  Subscriber subscriber;
  CUdevice device = 0;
  OK(RAW(cuCtxGetDevice)(&device));
  BOOST_TEST(subscriber.lines.empty());
}

BOOST_AUTO_TEST_CASE(each_subscriber_gets_every_line) {
  Subscriber first;
  Subscriber second;
  CUdevice device = 0;
  IS(RAW(cuCtxGetDevice)(&device), INVALID_CONTEXT);
  BOOST_TEST(first.lines == second.lines, boost::test_tools::per_element());
  const size_t before = first.lines.size();
  first.End();
  IS(RAW(cuCtxGetDevice)(&device), INVALID_CONTEXT);
  BOOST_TEST(first.lines.size() == before);
  BOOST_TEST(second.lines.size() == 2 * before);
}

BOOST_AUTO_TEST_CASE(a_line_comes_during_its_call) {
  Subscriber subscriber;
  std::vector<std::thread> threads;
  constexpr int kThreads = 4;
  constexpr int kCalls = 50;
  std::atomic<int> failed{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&failed] {
      for (int call = 0; call < kCalls; ++call) {
        CUdevice device = 0;
        t_in_call = true;
        const CUresult code = RAW(cuCtxGetDevice)(&device);
        t_in_call = false;
        if (code == CUDA_ERROR_INVALID_CONTEXT) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(failed == kThreads * kCalls);
  BOOST_TEST(subscriber.inside >= kThreads * kCalls);
  BOOST_TEST(subscriber.outside == 0);
}

BOOST_AUTO_TEST_CASE(callbacks_come_and_go_in_captures) {
  const OwnContext context;
  SetStack({context.get()});
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  { const Subscriber subscriber; }
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(a_capture_is_named_as_reason) {
  const OwnContext context;
  SetStack({context.get()});
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  Subscriber subscriber;
  CUdeviceptr pointer = 0;
  IS(RAW(cuMemAlloc)(&pointer, 64), STREAM_CAPTURE_UNSUPPORTED);
  BOOST_TEST_REQUIRE(!subscriber.lines.empty());
  BOOST_TEST(Has(subscriber.lines.front(), "conflicts with a stream capture sequence"),
             subscriber.lines.front());
  CUgraph graph = nullptr;
  IS(RAW(cuStreamEndCapture)(stream, &graph), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuStreamDestroy)(stream));
}

// What unregistering waits for. A plugin that is unloaded needs this.
BOOST_AUTO_TEST_CASE(unregistering_waits_for_running_callbacks) {
  struct Slow {
    std::atomic<bool> entered{false};
    std::atomic<bool> left{false};
    static void CUDA_CB Hear(void* user, CUlogLevel, char*, size_t) {
      auto* const self = static_cast<Slow*>(user);
      self->entered = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      self->left = true;
    }
  };
  Slow slow;
  CUlogsCallbackHandle handle = nullptr;
  OK(RAW(cuLogsRegisterCallback)(&Slow::Hear, &slow, &handle));
  CUresult code = CUDA_SUCCESS;
  std::thread other([&code] {
    CUdevice device = 0;
    code = RAW(cuCtxGetDevice)(&device);
  });
  while (!slow.entered) std::this_thread::yield();
  OK(RAW(cuLogsUnregisterCallback)(handle));
  BOOST_TEST(slow.left);
  other.join();
  IS(code, INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(null_callbacks_and_handles_are_refused, *cudasim_test::OnlySim()) {
  CUlogsCallbackHandle handle = nullptr;
  IS(RAW(cuLogsRegisterCallback)(nullptr, nullptr, &handle), INVALID_VALUE);
  IS(RAW(cuLogsUnregisterCallback)(nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
