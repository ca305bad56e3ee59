// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/entry.h"

#include <atomic>
#include <cstring>

#include "driver/call_book.h"
#include "driver/not_modelled.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

CUresult Refusal(const Entry& entry) {
  CountCall(entry.base_index);
  const CUresult injected = TakeFault(entry.base_index);
  if (injected != CUDA_SUCCESS) return injected;
  const CUresult process = Process::Serves(entry.floor);
  if (process != CUDA_SUCCESS) return process;
  return CUDA_SUCCESS;
}

CallBook book;
std::atomic<bool> hidden[CallBook::kMaxEntries];

size_t IndexOf(const char* base) {
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.base, base) == 0) return entry.base_index;
  }
  Panic("\"%s\" is no entry of the simulation (Sim::EntryName lists them)", base);
}

}  // namespace

Call& ThisCall() {
  thread_local Call call;
  return call;
}

const CUstream*& CallbackStream() {
  thread_local const CUstream* stream = nullptr;
  return stream;
}

void PanicHandle(const void* handle, const char* text) {
  const Entry* entry = ThisCall().entry;
  Panic("%s(%p): %s", entry != nullptr ? entry->base : "(no entry)", handle, text);
}

void PanicNull() {
  PanicHandle(nullptr,
              "a null argument where a real driver crashes (measured on an H100, driver "
              "580.159.04)");
}

EntryScope::EntryScope(const Entry& entry) : outer_(ThisCall()), refusal_(CUDA_SUCCESS) {
  RunHook(entry.base);
  ThisCall() = Call{&entry, entry.per_thread};
  refusal_ = Refusal(entry);
  if (refusal_ == CUDA_SUCCESS) Schedule::Tick();
}

void CountCall(size_t base_index) { book.Count(base_index); }

CUresult TakeFault(size_t base_index) { return static_cast<CUresult>(book.TakeFault(base_index)); }

void FailCall(const char* base, unsigned nth, CUresult code, bool from_any_thread) {
  const size_t index = IndexOf(base);
  if (nth == 0) Panic("Sim::FailCall(\"%s\", 0): the next call is 1", base);
  book.FailCall(index, nth, code, from_any_thread);
}

void ClearFaults() { book.ClearFaults(); }

unsigned PendingFaults(const char* base) { return book.PendingFaults(IndexOf(base)); }

void OnEveryCall(void (*hook)(const char* base)) { book.OnEveryCall(hook); }

void RunHook(const char* base) { book.RunHook(base); }

std::uint64_t Calls(const char* base) { return book.Calls(IndexOf(base)); }

std::uint64_t TotalCalls() { return book.TotalCalls(); }

void ResetCalls() {
  book.ResetCalls();
  ResetUnmodelledCalls();
}

void HideEntry(const char* base) {
  if (base != nullptr) {
    hidden[IndexOf(base)].store(true, std::memory_order_relaxed);
    return;
  }
  for (std::atomic<bool>& one : hidden) one.store(false, std::memory_order_relaxed);
}

bool IsHidden(size_t base_index) { return hidden[base_index].load(std::memory_order_relaxed); }

}  // namespace cudasim::driver
