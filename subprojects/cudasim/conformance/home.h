// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of the process that each sequence starts from, and that it is brought back to. Making
// a context takes a real driver 60 ms or more, so that sequences share two of them.

#ifndef CUDASIM_CONFORMANCE_HOME_H_
#define CUDASIM_CONFORMANCE_HOME_H_

#include "conformance/threads.h"
#include "conformance/world.h"

namespace conformance {

// Puts what there is at the start of a sequence into `world`: user contexts C1 and C2, the primary
// context P1 (active in a cheap sequence), host memory B1 to B4.
void Open(World* world);

// Destroys what the sequence left. Ends the process with code 3 if a context cannot be used any
// more.
void Close(World* world, Threads* threads);

// How many contexts that took: they are what a recording's time goes into.
int ContextsMade();

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_HOME_H_
