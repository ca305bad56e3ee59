// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/c_driver_log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "cuguest/status.h"
#include "lib/objects/driver_log.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// How often it was opened in C and not closed, and beside that, in which process.
std::atomic<unsigned long long> g_opened{0};

unsigned long long NoneHere() { return static_cast<unsigned long long>(getpid()) << 32; }

bool IsOpenHere(unsigned long long opened) {
  return opened >> 32 == NoneHere() >> 32 && static_cast<unsigned>(opened) != 0;
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_driver_log_open(void) {
  const absl::Status status = c::OpenDriverLog();
  if (!status.ok()) return cuguest::ResultOf(status);
  unsigned long long opened = c::g_opened.load();
  while (!c::g_opened.compare_exchange_weak(opened,
                                            (c::IsOpenHere(opened) ? opened : c::NoneHere()) + 1)) {
  }
  return CUDA_SUCCESS;
}

int cuguest_driver_log_close(void) {
  unsigned long long opened = c::g_opened.load();
  do {
    if (!c::IsOpenHere(opened)) return CUDA_ERROR_ILLEGAL_STATE;
  } while (!c::g_opened.compare_exchange_weak(opened, opened - 1));
  const CUresult code = cuguest::ResultOf(c::CloseDriverLog());
  if (code != CUDA_SUCCESS) ++c::g_opened;
  return code;
}

size_t cuguest_driver_log_reason(int code, char* text, size_t size) {
  const std::string reason = c::DriverReason(static_cast<CUresult>(code));
  if (size > 0) {
    const size_t fits = std::min(reason.size(), size - 1);
    std::memcpy(text, reason.data(), fits);
    text[fits] = '\0';
  }
  return reason.size();
}
