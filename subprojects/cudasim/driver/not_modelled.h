// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of entries that are exported and not modelled (unmodelled_list.h), per symbol.
//
// Threads: any.

#ifndef CUDASIM_DRIVER_NOT_MODELLED_H_
#define CUDASIM_DRIVER_NOT_MODELLED_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace cudasim::driver {

// Those that got this far: not one that took a fault, or that the process's state refused.
// `symbol` is "cuGraphGetEdges_v2"; null: all.
std::uint64_t UnmodelledCallsOf(const char* symbol);

// Of each symbol that was called, in the order of the list.
std::vector<std::pair<const char*, std::uint64_t>> UnmodelledCalls();

void ResetUnmodelledCalls();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_NOT_MODELLED_H_
