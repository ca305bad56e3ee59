// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace cuguest::audit {
namespace {

// The longest look that is not a wait: about a quarter of a microsecond.
constexpr std::uint64_t kLongestLook = 1 << 9;
// Between two looks that give a rate: the fewest for it to be right to 0.1 %, and a second at most.
constexpr std::uint64_t kLeastTicks = 1 << 19;
constexpr std::uint64_t kMostForRate = std::uint64_t{1} << 31;

// Whether the kernel's time is from the ticks. Asked when this library is loaded.
const bool has_ticks = [] {
  constexpr char kTicks[] = "tsc\n";
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char name[sizeof(kTicks)] = {};
  const ssize_t size = read(file, name, sizeof(name));
  close(file);
  return size == static_cast<ssize_t>(std::strlen(kTicks)) && std::strcmp(name, kTicks) == 0;
}();

}  // namespace

std::uint64_t MonotonicNs() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

__attribute__((noinline)) std::uint64_t Clock::Look() {
  const std::uint64_t ticks = Ticks();
  const std::uint64_t ns = MonotonicNs();
  const bool has_waited = Ticks() - ticks > kLongestLook;
  const std::uint64_t passed = ticks - ticks_;
  if (!has_ticks || has_waited) {
    rate_ = 0;
  } else if (passed >= kLeastTicks) {
    rate_ = passed < kMostForRate ? ((ns - ns_) << kRateBits) / passed : 0;
    ticks_ = ticks;
    ns_ = ns;
  }
  return ns;
}

}  // namespace cuguest::audit
