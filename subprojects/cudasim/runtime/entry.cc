// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/entry.h"

#include <cstring>

#include "driver/call_book.h"
#include "driver/panic.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/not_modelled.h"
#include "runtime/thread.h"

namespace cudasim::runtime {
namespace {

cudaError_t Establish(Floor floor) {
  switch (floor) {
    case Floor::kNothing:
      return cudaSuccess;
    case Floor::kLastError:
      EnsureDriver();
      return cudaSuccess;
    case Floor::kDriver:
      return EnsureDriver();
    case Floor::kExecution:
      // A real runtime of before has no such symbol.
      return RuntimeVersion() < 13010 ? cudaErrorNotSupported : EnsureDriver();
    case Floor::kContext:
      break;
  }
  const cudaError_t code = EnsureDriver();
  return code != cudaSuccess ? code : BindContext();
}

cudaError_t Refusal(const Entry& entry) {
  CountCall(entry.name_index);
  const cudaError_t injected = TakeFault(entry.name_index);
  return injected != cudaSuccess ? injected : Establish(entry.floor);
}

cudasim::driver::CallBook book;

size_t IndexOf(const char* name) {
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.name, name) == 0) return entry.name_index;
  }
  cudasim::driver::Panic(
      "\"%s\" is no entry of the simulated runtime (SimRuntime::EntryName lists them)", name);
}

}  // namespace

int NotModelled(const char* symbol) {
  CountUnmodelled(symbol);
  ThisThreadState().last_error = cudaErrorNotSupported;
  return cudaErrorNotSupported;
}

bool IsPerThread() { return ThisThreadState().per_thread; }

EntryScope::EntryScope(const Entry& entry)
    : entry_(entry), outer_per_thread_(ThisThreadState().per_thread) {
  book.RunHook(entry.name);
  ThisThreadState().per_thread = entry.per_thread;
  refusal_ = Refusal(entry);
}

EntryScope::~EntryScope() { ThisThreadState().per_thread = outer_per_thread_; }

// "Not ready" is an answer, not an error.
cudaError_t EntryScope::Leave(cudaError_t code) const {
  const bool notes = entry_.floor != Floor::kLastError && code != cudaErrorNotReady;
  if (notes && code != cudaSuccess) ThisThreadState().last_error = code;
  return code;
}

void CountCall(size_t name_index) { book.Count(name_index); }

cudaError_t TakeFault(size_t name_index) {
  return static_cast<cudaError_t>(book.TakeFault(name_index));
}

void FailCall(const char* name, unsigned nth, cudaError_t code, bool from_any_thread) {
  const size_t index = IndexOf(name);
  if (nth == 0) cudasim::driver::Panic("SimRuntime::FailCall(\"%s\", 0): the next call is 1", name);
  book.FailCall(index, nth, code, from_any_thread);
}

void ClearFaults() { book.ClearFaults(); }

void OnEveryCall(void (*hook)(const char* name)) { book.OnEveryCall(hook); }

std::uint64_t Calls(const char* name) { return book.Calls(IndexOf(name)); }

std::uint64_t TotalCalls() { return book.TotalCalls(); }

void ResetCalls() { book.ResetCalls(); }

}  // namespace cudasim::runtime
