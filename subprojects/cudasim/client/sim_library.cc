// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/sim_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "library/control.h"

namespace cudasim {
namespace {

using cudasim::library::Control;

// The control table of a loaded library; nullptr when that is a real one, or when there is
// none. A simulated one is never unloaded.
const Control* ControlOf(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* symbol = dlsym(library, cudasim::library::kControlSymbol);
  dlclose(library);
  if (symbol == nullptr) return nullptr;
  const Control* control = reinterpret_cast<const Control* (*)()>(symbol)();
  if (control->version == cudasim::library::kControlVersion) return control;
  std::fprintf(stderr,
               "libcudasim.a was built for version %d of the simulated libraries' control "
               "interface, the %s on the library path has version %d\n",
               cudasim::library::kControlVersion, name, control->version);
  std::abort();
}

bool MayBeSimulated(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const char* prefix :
       {"libcublas.", "libcufft.", "libcusolver.", "libcusparse.", "libnccl."}) {
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

std::vector<const Control*> AllControls() {
  std::vector<std::string> names;
  dl_iterate_phdr(AddName, &names);
  std::vector<const Control*> controls;
  for (const std::string& name : names) {
    if (const Control* control = ControlOf(name.c_str())) controls.push_back(control);
  }
  return controls;
}

// nullptr where nothing is simulated.
const Control* ControlWith(const char* entry) {
  const std::vector<const Control*> controls = AllControls();
  for (const Control* control : controls) {
    if (control->has_entry(entry)) return control;
  }
  if (controls.empty()) return nullptr;
  std::fprintf(stderr,
               "cudasim: \"%s\" is no entry of a simulated library that is loaded "
               "(SimLibrary::EntryName lists them)\n",
               entry);
  std::abort();
}

}  // namespace

bool SimLibrary::IsActive(const char* soname) { return ControlOf(soname) != nullptr; }

void SimLibrary::FailCall(const char* entry, unsigned nth, int code, bool from_any_thread) {
  if (const Control* control = ControlWith(entry)) {
    control->fail_call(entry, nth, code, from_any_thread);
  }
}

void SimLibrary::ClearFaults() {
  for (const Control* control : AllControls()) control->clear_faults();
}

std::uint64_t SimLibrary::Calls(const char* entry) {
  const Control* control = ControlWith(entry);
  return control != nullptr ? control->calls(entry) : 0;
}

void SimLibrary::ResetCalls() {
  for (const Control* control : AllControls()) control->reset_calls();
}

const char* SimLibrary::EntryName(size_t index) {
  for (const Control* control : AllControls()) {
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
