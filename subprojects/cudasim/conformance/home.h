// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of the process that each sequence starts from, and that it is brought back to. Making
// a context takes a real driver 60 ms or more, so that sequences share two of them.

#ifndef CUDASIM_CONFORMANCE_HOME_H_
#define CUDASIM_CONFORMANCE_HOME_H_

#include "conformance/threads.h"
#include "conformance/world.h"

namespace conformance {

// 1, or 2: sequences are then of two devices. Set once, before anything else.
int& Devices();

// Puts what there is at the start of a sequence into `world`: user contexts C1 and C2, the primary
// context P1 (active in a cheap sequence), host memory B1 to B4; and on a second device the context
// D1, with the stream T1 and memory O1.
void Open(World* world);

// Destroys what the sequence left. Ends the process with code 3 if a context cannot be used any
// more.
void Close(World* world, Threads* threads);

// How many contexts that took: they are what a recording's time goes into.
int ContextsMade();

}  // namespace conformance

#endif  // CUDASIM_CONFORMANCE_HOME_H_
