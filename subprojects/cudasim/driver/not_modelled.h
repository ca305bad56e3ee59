// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of what is not modelled, per symbol: entries of unmodelled_list.h, calls of modelled ones
// that asked for more than there is, and those of the runtime and the toolkit libraries.
//
// Threads: any.

#ifndef CUDASIM_DRIVER_NOT_MODELLED_H_
#define CUDASIM_DRIVER_NOT_MODELLED_H_

#include <cstdint>
#include <map>
#include <string>

namespace cudasim::driver {

// NotModelled() of api.h counts the entry that this thread is in: not a call that took a fault, or
// that the process's state refused. `symbol` is "cuGraphGetEdges_v2".
void CountUnmodelled(const char* symbol);

std::map<std::string, std::uint64_t> UnmodelledCalls();

// `symbol` null: of all.
std::uint64_t UnmodelledCallsOf(const char* symbol);

void ResetUnmodelledCalls();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_NOT_MODELLED_H_
