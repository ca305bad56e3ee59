// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main of a program that is storms: each runs in a process of its own, so that one that
// crashes or hangs is a failure like any other. Of one that fails, the supervisor looks for
// the shortest: the fewest operations, and of those the fewest threads.

#ifndef CUGUEST_TEST_INTEROP_STORM_SUPERVISOR_H_
#define CUGUEST_TEST_INTEROP_STORM_SUPERVISOR_H_

namespace storm {

int StormMain(int argc, char** argv);

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_SUPERVISOR_H_
