// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/clock.h"

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "test/support/test.h"

using cuguest::audit::Clock;
using cuguest::audit::MonotonicNs;

namespace {

// How far what the clock says is from the time, at most, in so many nanoseconds.
std::uint64_t Farthest(Clock* clock, std::uint64_t duration) {
  std::uint64_t farthest = 0;
  const std::uint64_t end = MonotonicNs() + duration;
  for (std::uint64_t before = 0; before < end;) {
    before = MonotonicNs();
    const std::uint64_t said = clock->Now();
    const std::uint64_t after = MonotonicNs();
    if (said < before) farthest = std::max(farthest, before - said);
    if (said > after) farthest = std::max(farthest, said - after);
  }
  return farthest;
}

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::uint64_t kMillisecond = 1'000'000;

}  // namespace

BOOST_AUTO_TEST_SUITE(event_clock)

BOOST_AUTO_TEST_CASE(says_the_time) {
  Clock clock;
  BOOST_TEST(Farthest(&clock, 200 * kMillisecond) < 20 * kMicrosecond);
}

// A first look says nothing of the ticks, and one after a long time nothing of their rate.
BOOST_AUTO_TEST_CASE(says_the_time_after_any_pause) {
  Clock clock;
  for (const long pause : {1'000L, 100'000L, 400'000L, 3'000'000L, 1'500'000'000L}) {
    const timespec time = {pause / 1'000'000'000, pause % 1'000'000'000};
    clock.Now();
    nanosleep(&time, nullptr);
    BOOST_TEST_INFO_SCOPE("a pause of " << pause << " ns");
    BOOST_TEST(Farthest(&clock, 2 * kMillisecond) < 20 * kMicrosecond);
  }
}

BOOST_AUTO_TEST_CASE(never_goes_back) {
  Clock clock;
  std::uint64_t last = clock.Now();
  const std::uint64_t end = last + 200 * kMillisecond;
  std::uint64_t backwards = 0;
  while (last < end) {
    const std::uint64_t now = clock.Now();
    if (now < last) ++backwards;
    last = now;
  }
  BOOST_TEST(backwards == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
