// SPDX-License-Identifier: Apache-2.0

#include "driver/launch/running_kernel.h"

#include <memory>

#include "driver/code/module.h"
#include "driver/context/peer.h"
#include "driver/memory/memory.h"

namespace cudasim::driver {
namespace {

thread_local const RunningKernel* this_kernel = nullptr;

bool IsOnThisDevice(const Allocation& memory, const Life& kernel) {
  const bool is_of_device = !memory.IsOnHost() && !memory.IsManaged();
  if (!is_of_device || memory.device == kernel.context->device()) return true;
  const bool has_context = memory.kind != MemoryKind::kPool && memory.kind != MemoryKind::kMapped;
  return !has_context || IsPeer(kernel.id, memory.life.id);
}

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

bool KernelMayAccess(const void* address, size_t bytes) {
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  Allocation memory;
  return this_kernel != nullptr && Memory::Find(base, &memory) &&
         IsOnThisDevice(memory, this_kernel->life) && Memory::Reaches(base, bytes, Memory::kWrite);
}

std::uint64_t ContextIdOfKernel() { return this_kernel != nullptr ? this_kernel->life.id : 0; }

}  // namespace cudasim::driver
