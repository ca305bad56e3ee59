// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/thread_residency.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {
using ResidencyStorage = StorageOf<ThreadResidency, cuguest_residency>;
}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_residency_enter(cuguest_residency* residency, const cuguest_ref* ref, const char* file,
                            int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  const c::ResidencyStorage storage(residency);
  CUresult code = storage.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  code = storage.Begin(c::NamedBy(*ref).Ref(), cuguest::Location{file, line})->result();
  if (code != CUDA_SUCCESS) storage.End();
  return code;
}

int cuguest_residency_settle(cuguest_residency* residency) {
  const c::ResidencyStorage storage(residency);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->Reassert() : code;
}

int cuguest_residency_move_to(cuguest_residency* residency, const cuguest_ref* ref) {
  const c::ResidencyStorage storage(residency);
  const CUresult code = c::IsRef(ref) ? storage.HasBegun() : CUDA_ERROR_INVALID_VALUE;
  return code == CUDA_SUCCESS ? storage->MoveTo(c::NamedBy(*ref).Ref()) : code;
}

int cuguest_residency_leave(cuguest_residency* residency) {
  return c::EndScope<cuguest::ThreadResidency>(
      residency, [](cuguest::ThreadResidency* object) { return object->Leave(); });
}

// Its destructor leaves.
void cuguest_residency_cleanup(cuguest_residency* residency) {
  static_cast<void>(c::EndScope<cuguest::ThreadResidency>(
      residency, [](cuguest::ThreadResidency*) { return CUDA_SUCCESS; }));
}
