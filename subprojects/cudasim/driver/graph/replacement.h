// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Other work for a node of an executable graph.

#ifndef CUDASIM_DRIVER_GRAPH_REPLACEMENT_H_
#define CUDASIM_DRIVER_GRAPH_REPLACEMENT_H_

#include <cuda.h>

#include "driver/graph/graph.h"

namespace cudasim::driver {

// Whether Replace() would replace it, or what forbids that.
CUgraphExecUpdateResult CheckReplacement(const Work& old, const Work& work);

// Whether a graph can be instantiated with it while a context of the device is current, which is
// where a copy works that names none, of memory that is in none. Source: test/reach_facts_test.cc.
bool CanWorkOn(CUdevice device, const Work& work);

// Replaces `old` by `work`, which is of the same type, in the same context. Not SUCCESS: what
// forbids it, and nothing is changed. Source: test/graph_update_facts_test.cc,
// test/graph_node_context_facts_test.cc and test/two_devices_facts_test.cc.
CUgraphExecUpdateResult Replace(Work* old, const Work& work);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_REPLACEMENT_H_
