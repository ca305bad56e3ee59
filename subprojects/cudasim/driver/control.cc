// SPDX-License-Identifier: Apache-2.0
//
// The door through which testing/sim.h configures this library.

#include "lib/sim/control.h"

#include <cstring>

#include "lib/sim/array.h"
#include "lib/sim/context.h"
#include "lib/sim/entry.h"
#include "lib/sim/event.h"
#include "lib/sim/fault.h"
#include "lib/sim/graph.h"
#include "lib/sim/launch.h"
#include "lib/sim/library.h"
#include "lib/sim/link.h"
#include "lib/sim/memory.h"
#include "lib/sim/module.h"
#include "lib/sim/pool.h"
#include "lib/sim/primary.h"
#include "lib/sim/process.h"
#include "lib/sim/running_kernel.h"
#include "lib/sim/stream.h"
#include "lib/sim/texture.h"
#include "lib/sim/virtual_memory.h"

namespace cuguest_sim {
namespace {

// One name per base: the first row of each.
const char* EntryName(size_t index) {
  for (const Entry& entry : Entries()) {
    const bool first = Entries().begin_row + entry.base_index == &entry;
    if (first && index-- == 0) return entry.base;
  }
  return nullptr;
}

// Also one that came after the driver's version.
void* FindEntry(const char* symbol) {
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.symbol, symbol) == 0) return entry.address();
  }
  return nullptr;
}

cuguest::testing::SimLive Live() {
  cuguest::testing::SimLive live = {};
  live.contexts = Context::CountUser();
  live.primary_references = CountPrimaryReferences();
  live.allocations = Memory::Count();
  live.streams = CountStreams();
  live.events = CountEvents();
  live.modules = CountModules();
  live.green_contexts = Context::CountGreen();
  live.graphs = CountGraphs();
  live.pools = CountPools();
  live.virtual_memory = CountVirtualMemory();
  live.arrays = CountArrays();
  live.textures = CountTextures();
  live.libraries = CountLibraries();
  live.link_states = CountLinkStates();
  return live;
}

constexpr Control kControl = {
    kControlVersion,
    Process::SetDeviceCount,
    Process::SetDriverVersion,
    HideEntry,
    FailCall,
    ClearFaults,
    OnEveryCall,
    Calls,
    TotalCalls,
    ResetCalls,
    EntryName,
    FindEntry,
    Live,
    RegisterKernel,
    FindVariableOfKernel,
    ContextIdOfKernel,
    KernelMayAccess,
    ReadTexture,
    ReadSurface,
    WriteSurface,
    Process::End,
};

}  // namespace
}  // namespace cuguest_sim

extern "C" __attribute__((visibility("default"))) const cuguest_sim::Control* cuguestSimControl() {
  return &cuguest_sim::kControl;
}
