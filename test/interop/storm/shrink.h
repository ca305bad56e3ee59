// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef CUGUEST_TEST_INTEROP_STORM_SHRINK_H_
#define CUGUEST_TEST_INTEROP_STORM_SHRINK_H_

#include <optional>
#include <string>

#include "test/interop/storm/options.h"

namespace storm {

// How one storm ended.
struct Outcome {
  int code = 0;
  std::string output;
  [[nodiscard]] bool failed() const;
};
// In a process of its own.
Outcome RunChild(const Options& options);

struct Shortest {
  Options options;
  Outcome outcome;
};

// The shortest storm within `options`, which failed, that fails too: first in lockstep, where
// it is the same every time, then with the threads running freely, where it is tried several
// times. Nothing if it does not fail again. Takes it that whatever fails, fails also in a
// longer storm.
std::optional<Shortest> Shrink(const Options& options);

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_SHRINK_H_
