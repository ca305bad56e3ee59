// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/sim_runtime.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/control.h"

namespace cudasim {
namespace {

using cudasim::runtime::Control;

// The control table of the process's shared runtime; nullptr when that is a real one, or
// when there is none yet. It is never unloaded.
const Control* FindControl() {
  const std::string name = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* symbol = dlsym(library, cudasim::runtime::kControlSymbol);
  dlclose(library);
  if (symbol == nullptr) return nullptr;
  const Control* control = reinterpret_cast<const Control* (*)()>(symbol)();
  if (control->version != cudasim::runtime::kControlVersion) {
    std::fprintf(stderr,
                 "libcudasim.a was built for version %d of the simulated runtime's control "
                 "interface, the %s on the library path has version %d\n",
                 cudasim::runtime::kControlVersion, name.c_str(), control->version);
    std::abort();
  }
  return control;
}

}  // namespace

bool SimRuntime::IsActive() { return FindControl() != nullptr; }

void SimRuntime::FailCall(const char* entry, unsigned nth, cudaError_t code, bool from_any_thread) {
  if (const Control* control = FindControl()) {
    control->fail_call(entry, nth, code, from_any_thread);
  }
}

void SimRuntime::ClearFaults() {
  if (const Control* control = FindControl()) control->clear_faults();
}

void SimRuntime::OnEveryCall(void (*hook)(const char* entry)) {
  if (const Control* control = FindControl()) control->on_every_call(hook);
}

std::uint64_t SimRuntime::Calls(const char* entry) {
  const Control* control = FindControl();
  return control != nullptr ? control->calls(entry) : 0;
}

std::uint64_t SimRuntime::TotalCalls() {
  const Control* control = FindControl();
  return control != nullptr ? control->total_calls() : 0;
}

void SimRuntime::ResetCalls() {
  if (const Control* control = FindControl()) control->reset_calls();
}

const char* SimRuntime::EntryName(size_t index) {
  const Control* control = FindControl();
  return control != nullptr ? control->entry_name(index) : nullptr;
}

}  // namespace cudasim
