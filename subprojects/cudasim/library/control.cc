// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The door through which cudasim/sim_library.h configures this library.

#include "library/control.h"

#include <algorithm>
#include <cstring>

#include "driver/panic.h"
#include "library/entry.h"

namespace cudasim::library {
namespace {

const Entry* Find(const char* name) {
  return std::find_if(Entries().begin(), Entries().end(),
                      [&](const Entry& entry) { return std::strcmp(entry.name, name) == 0; });
}

size_t RowOf(const char* name) { return static_cast<size_t>(Find(name) - Entries().begin()); }

bool HasEntry(const char* name) { return Find(name) != Entries().end(); }

void FailCall(const char* name, unsigned nth, int code, bool from_any_thread) {
  if (nth == 0) {
    cudasim::driver::Panic("SimLibrary::FailCall(\"%s\", 0): the next call is 1", name);
  }
  TheBook().FailCall(RowOf(name), nth, code, from_any_thread);
}

void ClearFaults() { TheBook().ClearFaults(); }

std::uint64_t Calls(const char* name) { return TheBook().Calls(RowOf(name)); }

void ResetCalls() { TheBook().ResetCalls(); }

const char* EntryName(size_t index) {
  return index < Entries().count ? Entries().begin_row[index].name : nullptr;
}

constexpr Control kControl = {
    kControlVersion, HasEntry, FailCall, ClearFaults, Calls, ResetCalls, EntryName,
};

}  // namespace
}  // namespace cudasim::library

extern "C" __attribute__((visibility("default"))) const cudasim::library::Control*
cudasimLibraryControl() {
  return &cudasim::library::kControl;
}
