// SPDX-License-Identifier: Apache-2.0
//
// The door through which testing/sim_runtime.h configures this library.

#include "lib/sim/runtime/control.h"

#include "lib/sim/runtime/entry.h"
#include "lib/sim/runtime/fault.h"

namespace cuguest_sim_runtime {
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
    kControlVersion, FailCall, ClearFaults, Calls, TotalCalls, ResetCalls, EntryName,
};

}  // namespace
}  // namespace cuguest_sim_runtime

extern "C" __attribute__((visibility("default"))) const cuguest_sim_runtime::Control*
cuguestSimRuntimeControl() {
  return &cuguest_sim_runtime::kControl;
}
