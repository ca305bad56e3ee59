// SPDX-License-Identifier: Apache-2.0

#include "runtime/entry.h"

#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/fault.h"
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

}  // namespace

bool IsPerThread() { return ThisThreadState().per_thread; }

EntryScope::EntryScope(const Entry& entry)
    : entry_(entry), outer_per_thread_(ThisThreadState().per_thread) {
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

}  // namespace cudasim::runtime
