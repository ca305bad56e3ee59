// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Call counters and injected faults of a simulated library, per entry, and the hook of its calls.
//
// Threads: any. An entry that is not armed costs two relaxed atomics.

#ifndef CUDASIM_DRIVER_CALL_BOOK_H_
#define CUDASIM_DRIVER_CALL_BOOK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cudasim::driver {

// The calling thread's own number, from 1. Not pthread_self(), which a later thread
// may get again.
inline std::uint64_t ThisThread() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// CallBook
//
// An entry is a number below kMaxEntries. Codes are those of the library whose book it
// is; 0 is success in all of them. Constant-initialised and for static storage: entries
// are called until the very end of the process.
class CallBook {
 public:
  static constexpr size_t kMaxEntries = 1024;

  constexpr CallBook() = default;

  void Count(size_t entry) { meters_[entry].calls.fetch_add(1, std::memory_order_relaxed); }

  // The code to return instead of doing the call, or 0.
  int TakeFault(size_t entry);

  // `nth` is 1 for the next call.
  void FailCall(size_t entry, unsigned nth, int code, bool from_any_thread);
  void ClearFaults();
  unsigned PendingFaults(size_t entry) const {
    return meters_[entry].armed.load(std::memory_order_relaxed);
  }

  // `hook` runs at the beginning of every call that is not made by it; nullptr removes it.
  void OnEveryCall(void (*hook)(const char* name)) { hook_.store(hook); }
  void RunHook(const char* name) const {
    if (const auto hook = hook_.load(std::memory_order_relaxed)) RunHook(hook, name);
  }

  std::uint64_t Calls(size_t entry) const {
    return meters_[entry].calls.load(std::memory_order_relaxed);
  }
  std::uint64_t TotalCalls() const;
  void ResetCalls();

 private:
  // One cache line each, so that threads in different entries do not share one.
  struct alignas(64) Meter {
    std::atomic<std::uint64_t> calls{0};
    std::atomic<unsigned> armed{0};
  };

  struct Fault {
    size_t entry;
    unsigned remaining;
    int code;
    std::uint64_t thread;  // 0: any
  };

  static void RunHook(void (*hook)(const char*), const char* name);

  Meter meters_[kMaxEntries] = {};
  std::atomic<void (*)(const char*)> hook_{nullptr};
  std::mutex mutex_;
  std::vector<Fault>* faults_ = nullptr;  // never deleted
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CALL_BOOK_H_
