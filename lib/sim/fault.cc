// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/fault.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "lib/sim/entry.h"
#include "lib/sim/panic.h"
#include "lib/sim/thread_number.h"

namespace cuguest_sim {
namespace {

constexpr size_t kMaxEntries = 1024;

// One cache line each, so that threads in different entries do not share one.
struct alignas(64) Meter {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<unsigned> armed{0};
  std::atomic<bool> hidden{false};
};
Meter meters[kMaxEntries];

struct Fault {
  size_t base_index;
  unsigned remaining;
  CUresult code;
  std::uint64_t thread;  // 0: any
};

std::mutex fault_mutex;
// Never destroyed: entries are called until the very end of the process.
std::vector<Fault>& Faults() {
  static auto& faults = *new std::vector<Fault>;
  return faults;
}

size_t IndexOf(const char* base) {
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.base, base) == 0) return entry.base_index;
  }
  Panic("\"%s\" is no entry of the simulation (Sim::EntryName lists them)", base);
}

}  // namespace

void CountCall(size_t base_index) {
  meters[base_index].calls.fetch_add(1, std::memory_order_relaxed);
}

CUresult TakeFault(size_t base_index) {
  if (meters[base_index].armed.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const std::lock_guard<std::mutex> lock(fault_mutex);
  CUresult taken = CUDA_SUCCESS;
  auto& faults = Faults();
  const auto fires = [&](Fault& fault) {
    if (fault.base_index != base_index) return false;
    if (fault.thread != 0 && fault.thread != ThisThread()) return false;
    if (--fault.remaining > 0) return false;
    if (taken == CUDA_SUCCESS) taken = fault.code;
    meters[base_index].armed.fetch_sub(1, std::memory_order_relaxed);
    return true;
  };
  faults.erase(std::remove_if(faults.begin(), faults.end(), fires), faults.end());
  return taken;
}

void FailCall(const char* base, unsigned nth, CUresult code, bool from_any_thread) {
  const size_t index = IndexOf(base);
  if (nth == 0) Panic("Sim::FailCall(\"%s\", 0): the next call is 1", base);
  const std::lock_guard<std::mutex> lock(fault_mutex);
  Faults().push_back({index, nth, code, from_any_thread ? 0 : ThisThread()});
  meters[index].armed.fetch_add(1, std::memory_order_relaxed);
}

void ClearFaults() {
  const std::lock_guard<std::mutex> lock(fault_mutex);
  for (const Fault& fault : Faults()) {
    meters[fault.base_index].armed.fetch_sub(1, std::memory_order_relaxed);
  }
  Faults().clear();
}

std::uint64_t Calls(const char* base) {
  return meters[IndexOf(base)].calls.load(std::memory_order_relaxed);
}

std::uint64_t TotalCalls() {
  std::uint64_t total = 0;
  for (const Meter& meter : meters) total += meter.calls.load(std::memory_order_relaxed);
  return total;
}

void ResetCalls() {
  for (Meter& meter : meters) meter.calls.store(0, std::memory_order_relaxed);
}

void HideEntry(const char* base) {
  if (base != nullptr) {
    meters[IndexOf(base)].hidden.store(true, std::memory_order_relaxed);
    return;
  }
  for (Meter& meter : meters) meter.hidden.store(false, std::memory_order_relaxed);
}

bool IsHidden(size_t base_index) {
  return meters[base_index].hidden.load(std::memory_order_relaxed);
}

}  // namespace cuguest_sim
