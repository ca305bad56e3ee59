// SPDX-License-Identifier: Apache-2.0

#include "runtime/fault.h"

#include <cstring>

#include "driver/call_book.h"
#include "driver/panic.h"
#include "runtime/entry.h"

namespace cudasim::runtime {
namespace {

cudasim::driver::CallBook book;

size_t IndexOf(const char* name) {
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.name, name) == 0) return entry.name_index;
  }
  cudasim::driver::Panic(
      "\"%s\" is no entry of the simulated runtime (SimRuntime::EntryName lists them)", name);
}

}  // namespace

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

std::uint64_t Calls(const char* name) { return book.Calls(IndexOf(name)); }

std::uint64_t TotalCalls() { return book.TotalCalls(); }

void ResetCalls() { book.ResetCalls(); }

}  // namespace cudasim::runtime
