// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The door through which cudasim/sim.h configures this library.

#include "driver/control.h"

#include <cstring>

#include "driver/code/library.h"
#include "driver/code/link.h"
#include "driver/code/module.h"
#include "driver/context/context.h"
#include "driver/context/device.h"
#include "driver/context/primary.h"
#include "driver/entry.h"
#include "driver/graph/graph.h"
#include "driver/launch/launch.h"
#include "driver/memory/array.h"
#include "driver/memory/memory.h"
#include "driver/memory/pool.h"
#include "driver/memory/texture.h"
#include "driver/memory/virtual_memory.h"
#include "driver/not_modelled.h"
#include "driver/process.h"
#include "driver/stream/event.h"
#include "driver/stream/schedule.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

// One name per base: the first row of each.
const char* EntryName(size_t index) {
  for (const Entry& entry : Entries()) {
    if (entry.base_index == IndexOf(entry) && index-- == 0) return entry.base;
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

cudasim::SimLive Live() {
  cudasim::SimLive live = {};
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
    DeviceFeatures::SupportExecAffinity,
    DeviceFeatures::SupportCig,
    DeviceFeatures::SupportPageableAccess,
    DeviceFeatures::SupportMemoryPools,
    Context::SetNextId,
    FailCall,
    ClearFaults,
    OnEveryCall,
    Calls,
    TotalCalls,
    ResetCalls,
    UnmodelledCallsOf,
    CountUnmodelled,
    EntryName,
    FindEntry,
    Live,
    RegisterKernel,
    SkipUnknownKernels,
    SkippedLaunchesOf,
    Schedule::Set,
    FindVariableOfKernel,
    ContextIdOfKernel,
    KernelMayAccess,
    ReadTexture,
    ReadSurface,
    WriteSurface,
    Process::End,
    []() -> const Tool& { return TheTool(); },
    [](CUdevice device) { return Context::Primary(device)->handle(); },
};

}  // namespace
}  // namespace cudasim::driver

extern "C" __attribute__((visibility("default"))) const cudasim::driver::Control* cudasimControl() {
  return &cudasim::driver::kControl;
}
