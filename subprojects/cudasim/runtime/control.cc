// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The door through which cudasim/sim_runtime.h configures this library.

#include "runtime/control.h"

#include "runtime/entry.h"
#include "runtime/execution.h"

namespace cudasim::runtime {
namespace {

// The first row of each name.
const char* EntryName(size_t index) {
  for (const Entry& entry : Entries()) {
    const bool first = Entries().begin_row + entry.name_index == &entry;
    if (first && index-- == 0) return entry.name;
  }
  return nullptr;
}

constexpr Control kControl = {
    kControlVersion, FailCall,   ClearFaults, OnEveryCall,          Calls,
    TotalCalls,      ResetCalls, EntryName,   TagExecutionContexts,
};

}  // namespace
}  // namespace cudasim::runtime

extern "C" __attribute__((visibility("default"))) const cudasim::runtime::Control*
cudasimRuntimeControl() {
  return &cudasim::runtime::kControl;
}
