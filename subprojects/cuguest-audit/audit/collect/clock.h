// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The times of a thread's events, which are CLOCK_MONOTONIC's to within some microseconds.
//
// Note [Ticks between two looks at the clock]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// To ask for the time takes as long as half of what else an event takes. The kernel has it from the
// processor's counter of ticks, where that counts evenly and is the same on all processors: it says
// so in its name for the clock. There the clock is looked at once in about half a millisecond, and
// between two looks the ticks since the last one count, at the rate that they had before it. So
// what the clock does meanwhile (it is steered to the right time, it stands still while the machine
// sleeps) is missed for no longer. A look during which the thread had to wait for a processor tells
// the time and nothing of the ticks.
//
// Threads: one.

#ifndef CUGUEST_AUDIT_COLLECT_CLOCK_H_
#define CUGUEST_AUDIT_COLLECT_CLOCK_H_

#include <algorithm>
#include <cstdint>

namespace cuguest::audit {

std::uint64_t MonotonicNs();

class Clock {
 public:
  // Never before what it said last.
  std::uint64_t Now() {
    const std::uint64_t since = Ticks() - ticks_;
    return last_ =
               std::max(last_, since < kMostTicks && rate_ != 0 ? ns_ + (since * rate_ >> kRateBits)
                                                                : Look());
  }

 private:
  static constexpr std::uint64_t kMostTicks = 1 << 20;
  static constexpr int kRateBits = 32;

  static std::uint64_t Ticks() {
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  std::uint64_t Look();

  // The last look, and the nanoseconds of a tick before it, times 2^kRateBits; 0: not known.
  std::uint64_t ticks_ = 0;
  std::uint64_t ns_ = 0;
  std::uint64_t rate_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CLOCK_H_
