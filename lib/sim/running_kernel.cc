// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/running_kernel.h"

#include <memory>

#include "lib/sim/memory.h"
#include "lib/sim/module.h"

namespace cuguest_sim {
namespace {

thread_local const RunningKernel* this_kernel = nullptr;

}  // namespace

KernelScope::KernelScope(const RunningKernel& kernel) : outer_(this_kernel) {
  this_kernel = &kernel;
}
KernelScope::~KernelScope() { this_kernel = outer_; }

const RunningKernel* ThisKernel() { return this_kernel; }

bool FindVariableOfKernel(const char* name, void** address, size_t* size) {
  std::shared_ptr<const PlacedVariables> variables;
  if (this_kernel == nullptr) return false;
  if (FindVariablesOf(this_kernel->module, &variables) != CUDA_SUCCESS) return false;
  const auto found = variables->find(name);
  if (found == variables->end()) return false;
  *address = ToPointer(found->second.address);
  if (size != nullptr) *size = found->second.size;
  return true;
}

std::uint64_t ContextIdOfKernel() { return this_kernel != nullptr ? this_kernel->life.id : 0; }

}  // namespace cuguest_sim
