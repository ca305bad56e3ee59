// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plays sequences of steps (scope_sequence.h) on the driver, and says what is wrong afterwards.

#ifndef CUGUEST_TEST_GUARD_SCOPE_PLAYER_H_
#define CUGUEST_TEST_GUARD_SCOPE_PLAYER_H_

#include <string>

#include "test/guard/scope_sequence.h"

namespace scope_sequence {

struct Outcome {
  std::string wrong;         // empty if nothing is
  std::string steps;         // those that were done, with what they gave
  long faults = 0;           // that callees committed
  long entries_more = 0;     // of the stack than the host left there
  long modes = 0;            // that were compared, inside host scopes and after them
  bool is_at_limit = false;  // as docs/limits.md says of a push that is popped by hand
};

// On a thread of its own, which remembers nothing of another sequence. What a step does not apply
// to it leaves out: so any steps of a sequence are a sequence.
Outcome Play(const Sequence& sequence);

// The fewest steps of it, and of the host's stack, with which something is still wrong.
Sequence Shrunk(Sequence sequence);

}  // namespace scope_sequence

#endif  // CUGUEST_TEST_GUARD_SCOPE_PLAYER_H_
