// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The clock of events, CLOCK_MONOTONIC.

#ifndef CUGUEST_AUDIT_COMMAND_CLOCK_H_
#define CUGUEST_AUDIT_COMMAND_CLOCK_H_

#include <cstdint>
#include <ctime>

namespace cuguest::audit {

inline std::uint64_t MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_CLOCK_H_
