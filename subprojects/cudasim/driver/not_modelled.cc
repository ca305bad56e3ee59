// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/not_modelled.h"

#include <atomic>
#include <cstring>

#include "driver/api.h"
#include "driver/call_book.h"
#include "driver/entry.h"

namespace cudasim::driver {
namespace {

std::atomic<std::uint64_t> calls_of_row[CallBook::kMaxEntries];

}  // namespace

CUresult NotModelled() {
  calls_of_row[IndexOf(*ThisCall().entry)].fetch_add(1, std::memory_order_relaxed);
  return CUDA_ERROR_NOT_SUPPORTED;
}

std::vector<std::pair<const char*, std::uint64_t>> UnmodelledCalls() {
  std::vector<std::pair<const char*, std::uint64_t>> called;
  for (const Entry& entry : Entries()) {
    const std::uint64_t calls = calls_of_row[IndexOf(entry)].load(std::memory_order_relaxed);
    if (calls > 0) called.emplace_back(entry.symbol, calls);
  }
  return called;
}

std::uint64_t UnmodelledCallsOf(const char* symbol) {
  std::uint64_t total = 0;
  for (const auto& [called, calls] : UnmodelledCalls()) {
    if (symbol == nullptr || std::strcmp(called, symbol) == 0) total += calls;
  }
  return total;
}

void ResetUnmodelledCalls() {
  for (std::atomic<std::uint64_t>& calls : calls_of_row) calls.store(0, std::memory_order_relaxed);
}

}  // namespace cudasim::driver
