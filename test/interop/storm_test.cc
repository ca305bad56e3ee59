// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many threads in many contexts on every device do whatever hosts, guests and hostile callees
// do. After every operation the whole stack of the thread is what it should be, its capture
// goes on, and no guard reported anything that was not caused; at the end nothing is left.
// A std::thread for each thread of the storm; see storm/storm.h.
//
//   storm_test                                   a few short storms
//   storm_test --seconds 3600                    for an hour
//   storm_test --seeds 1 --operations 1000000    one long one
//
// A storm that fails prints how to see it fail again, as short as it could be made.

#include "test/interop/storm/supervisor.h"

int main(int argc, char** argv) { return storm::StormMain(argc, argv); }
