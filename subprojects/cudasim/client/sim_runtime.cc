// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/sim_runtime.h"

#include <cuda_runtime_api.h>

#include <string>

#include "client/control_table.h"
#include "runtime/control.h"

namespace cudasim {
namespace {

// Of the process's shared runtime.
const runtime::Control* RuntimeControl() {
  const std::string name = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  return ControlTable<runtime::Control>(name.c_str(), RTLD_NOLOAD, runtime::kControlSymbol,
                                        runtime::kControlVersion);
}

}  // namespace

bool SimRuntime::IsActive() { return RuntimeControl() != nullptr; }

void SimRuntime::FailCall(const char* entry, unsigned nth, cudaError_t code, bool from_any_thread) {
  if (const runtime::Control* control = RuntimeControl()) {
    control->fail_call(entry, nth, code, from_any_thread);
  }
}

void SimRuntime::ClearFaults() {
  if (const runtime::Control* control = RuntimeControl()) control->clear_faults();
}

void SimRuntime::OnEveryCall(void (*hook)(const char* entry)) {
  if (const runtime::Control* control = RuntimeControl()) control->on_every_call(hook);
}

std::uint64_t SimRuntime::Calls(const char* entry) {
  const runtime::Control* control = RuntimeControl();
  return control != nullptr ? control->calls(entry) : 0;
}

std::uint64_t SimRuntime::TotalCalls() {
  const runtime::Control* control = RuntimeControl();
  return control != nullptr ? control->total_calls() : 0;
}

void SimRuntime::ResetCalls() {
  if (const runtime::Control* control = RuntimeControl()) control->reset_calls();
}

const char* SimRuntime::EntryName(size_t index) {
  const runtime::Control* control = RuntimeControl();
  return control != nullptr ? control->entry_name(index) : nullptr;
}

void SimRuntime::TagExecutionContexts(bool tagged) {
  if (const runtime::Control* control = RuntimeControl()) control->tag_execution_contexts(tagged);
}

}  // namespace cudasim
