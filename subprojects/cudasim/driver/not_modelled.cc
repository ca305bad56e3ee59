// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/not_modelled.h"

#include <mutex>

#include "driver/api.h"
#include "driver/entry.h"

namespace cudasim::driver {
namespace {

using UnmodelledBook = std::map<std::string, std::uint64_t>;

// A panic reports them, so that the mutex is one that no panic is called under.
std::mutex unmodelled_mutex;
UnmodelledBook& UnmodelledCounts() {
  static auto& counts = *new UnmodelledBook;  // called until the very end
  return counts;
}

}  // namespace

CUresult NotModelled() {
  CountUnmodelled(ThisCall().entry->symbol);
  return CUDA_ERROR_NOT_SUPPORTED;
}

void CountUnmodelled(const char* symbol) {
  const std::lock_guard<std::mutex> lock(unmodelled_mutex);
  ++UnmodelledCounts()[symbol];
}

UnmodelledBook UnmodelledCalls() {
  const std::lock_guard<std::mutex> lock(unmodelled_mutex);
  return UnmodelledCounts();
}

std::uint64_t UnmodelledCallsOf(const char* symbol) {
  std::uint64_t total = 0;
  for (const auto& [called, calls] : UnmodelledCalls()) {
    if (symbol == nullptr || called == symbol) total += calls;
  }
  return total;
}

void ResetUnmodelledCalls() {
  const std::lock_guard<std::mutex> lock(unmodelled_mutex);
  UnmodelledCounts().clear();
}

}  // namespace cudasim::driver
