// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Uses cuguest inside every driver call, as a tool's callback may, to show that no lock of
// cuguest's is held then: on the calling thread, and on another one that is waited for. Where one
// is held, held_locks.h says so, or the program hangs, and SIGALRM kills it.

#ifndef CUGUEST_TEST_SUPPORT_REENTRY_H_
#define CUGUEST_TEST_SUPPORT_REENTRY_H_

#include <cuda.h>

namespace cuguest_test {

// What is done in each driver call; for callbacks, too.
void UseCuguest(const char* during);

// In every driver call of the simulation as long as it exists; one at a time.
class Reentry {
 public:
  // SIGALRM comes in `seconds`. `bystander` is a context that nothing destroys meanwhile.
  Reentry(CUcontext bystander, unsigned seconds);
  Reentry(const Reentry&) = delete;
  Reentry& operator=(const Reentry&) = delete;
  ~Reentry();

  // Driver calls in which cuguest was used.
  [[nodiscard]] static int Count();
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_REENTRY_H_
