// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/sim_library.h"

#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client/control_table.h"
#include "library/control.h"

namespace cudasim {
namespace {

using LibraryControl = library::Control;

const LibraryControl* ControlOf(const char* name) {
  return ControlTable<LibraryControl>(name, RTLD_NOLOAD, library::kControlSymbol,
                                      library::kControlVersion);
}

bool MayBeSimulated(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const char* prefix :
       {"libcublas.", "libcufft.", "libcurand.", "libcusolver.", "libcusparse.", "libnccl."}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

int AddName(dl_phdr_info* info, size_t, void* names) {
  if (MayBeSimulated(info->dlpi_name)) {
    static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  }
  return 0;
}

std::vector<const LibraryControl*> AllControls() {
  std::vector<std::string> names;
  dl_iterate_phdr(AddName, &names);
  std::vector<const LibraryControl*> controls;
  for (const std::string& name : names) {
    if (const LibraryControl* control = ControlOf(name.c_str())) controls.push_back(control);
  }
  return controls;
}

// nullptr where nothing is simulated.
const LibraryControl* ControlWith(const char* entry) {
  const std::vector<const LibraryControl*> controls = AllControls();
  for (const LibraryControl* control : controls) {
    if (control->has_entry(entry)) return control;
  }
  if (controls.empty()) return nullptr;
  std::fprintf(stderr,
               "cudasim: \"%s\" is modelled by no simulated library that is loaded "
               "(SimLibrary::EntryName lists them)\n",
               entry);
  std::abort();
}

}  // namespace

bool SimLibrary::IsActive(const char* soname) { return ControlOf(soname) != nullptr; }

void SimLibrary::FailCall(const char* entry, unsigned nth, int code, bool from_any_thread) {
  if (const LibraryControl* control = ControlWith(entry)) {
    control->fail_call(entry, nth, code, from_any_thread);
  }
}

void SimLibrary::ClearFaults() {
  for (const LibraryControl* control : AllControls()) control->clear_faults();
}

std::uint64_t SimLibrary::Calls(const char* entry) {
  const LibraryControl* control = ControlWith(entry);
  return control != nullptr ? control->calls(entry) : 0;
}

void SimLibrary::ResetCalls() {
  for (const LibraryControl* control : AllControls()) control->reset_calls();
}

const char* SimLibrary::EntryName(size_t index) {
  for (const LibraryControl* control : AllControls()) {
    size_t count = 0;
    while (control->entry_name(count) != nullptr) {
      if (count == index) return control->entry_name(count);
      ++count;
    }
    index -= count;
  }
  return nullptr;
}

}  // namespace cudasim
