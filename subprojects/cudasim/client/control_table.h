// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the control functions find the simulated library that they control.
//
// Thread-safe: yes.

#ifndef CUDASIM_CLIENT_CONTROL_TABLE_H_
#define CUDASIM_CLIENT_CONTROL_TABLE_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace cudasim {

// The table of the library `name`, which the function `symbol` returns; nullptr if that is a real
// one, or not there. Aborts if it is of another version than this code was compiled for. `flags`:
// RTLD_NOLOAD for one that is not to be loaded by the question; a simulated one is never unloaded.
template <typename Control>
const Control* ControlTable(const char* name, int flags, const char* symbol, int version) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
  if (library == nullptr) return nullptr;
  void* function = dlsym(library, symbol);
  if ((flags & RTLD_NOLOAD) != 0) dlclose(library);
  if (function == nullptr) return nullptr;
  const Control* control = reinterpret_cast<const Control* (*)()>(function)();
  if (control->version == version) return control;
  std::fprintf(stderr,
               "libcudasim.a was built for version %d of the control interface of the simulated "
               "%s, the one on the library path has version %d\n",
               version, name, control->version);
  std::abort();
}

}  // namespace cudasim

#endif  // CUDASIM_CLIENT_CONTROL_TABLE_H_
