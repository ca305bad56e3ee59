// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/call_book.h"

#include <algorithm>

namespace cudasim::driver {

int CallBook::TakeFault(size_t entry) {
  if (meters_[entry].armed.load(std::memory_order_relaxed) == 0) return 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  int taken = 0;
  const auto fires = [&](Fault& fault) {
    if (fault.entry != entry) return false;
    if (fault.thread != 0 && fault.thread != ThisThread()) return false;
    if (fault.remaining > 1) {
      --fault.remaining;
      return false;
    }
    if (taken != 0) return false;  // this call fails already: the next one is its
    taken = fault.code;
    meters_[entry].armed.fetch_sub(1, std::memory_order_relaxed);
    return true;
  };
  faults_->erase(std::remove_if(faults_->begin(), faults_->end(), fires), faults_->end());
  return taken;
}

void CallBook::FailCall(size_t entry, unsigned nth, int code, bool from_any_thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (faults_ == nullptr) faults_ = new std::vector<Fault>;
  faults_->push_back({entry, nth, code, from_any_thread ? 0 : ThisThread()});
  meters_[entry].armed.fetch_add(1, std::memory_order_relaxed);
}

void CallBook::ClearFaults() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (faults_ == nullptr) return;
  for (const Fault& fault : *faults_) {
    meters_[fault.entry].armed.fetch_sub(1, std::memory_order_relaxed);
  }
  faults_->clear();
}

void CallBook::RunHook(void (*hook)(const char*), const char* name) {
  thread_local bool t_is_in_hook = false;
  if (t_is_in_hook) return;
  t_is_in_hook = true;
  hook(name);
  t_is_in_hook = false;
}

std::uint64_t CallBook::TotalCalls() const {
  std::uint64_t total = 0;
  for (const Meter& meter : meters_) total += meter.calls.load(std::memory_order_relaxed);
  return total;
}

void CallBook::ResetCalls() {
  for (Meter& meter : meters_) meter.calls.store(0, std::memory_order_relaxed);
}

}  // namespace cudasim::driver
