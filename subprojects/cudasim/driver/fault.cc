// SPDX-License-Identifier: Apache-2.0

#include "driver/fault.h"

#include <atomic>
#include <cstring>

#include "driver/call_book.h"
#include "driver/entry.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

CallBook book;
std::atomic<bool> hidden[CallBook::kMaxEntries];
std::atomic<void (*)(const char*)> hook_of_calls{nullptr};

size_t IndexOf(const char* base) {
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.base, base) == 0) return entry.base_index;
  }
  Panic("\"%s\" is no entry of the simulation (Sim::EntryName lists them)", base);
}

}  // namespace

void CountCall(size_t base_index) { book.Count(base_index); }

CUresult TakeFault(size_t base_index) { return static_cast<CUresult>(book.TakeFault(base_index)); }

void FailCall(const char* base, unsigned nth, CUresult code, bool from_any_thread) {
  const size_t index = IndexOf(base);
  if (nth == 0) Panic("Sim::FailCall(\"%s\", 0): the next call is 1", base);
  book.FailCall(index, nth, code, from_any_thread);
}

void ClearFaults() { book.ClearFaults(); }

unsigned PendingFaults(const char* base) { return book.PendingFaults(IndexOf(base)); }

void OnEveryCall(void (*hook)(const char* base)) { hook_of_calls.store(hook); }

void RunHook(const char* base) {
  thread_local bool t_is_in_hook = false;
  const auto hook = hook_of_calls.load(std::memory_order_relaxed);
  if (hook == nullptr || t_is_in_hook) return;
  t_is_in_hook = true;
  hook(base);
  t_is_in_hook = false;
}

std::uint64_t Calls(const char* base) { return book.Calls(IndexOf(base)); }

std::uint64_t TotalCalls() { return book.TotalCalls(); }

void ResetCalls() { book.ResetCalls(); }

void HideEntry(const char* base) {
  if (base != nullptr) {
    hidden[IndexOf(base)].store(true, std::memory_order_relaxed);
    return;
  }
  for (std::atomic<bool>& one : hidden) one.store(false, std::memory_order_relaxed);
}

bool IsHidden(size_t base_index) { return hidden[base_index].load(std::memory_order_relaxed); }

}  // namespace cudasim::driver
