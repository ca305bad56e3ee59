// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/internal/scope.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using GuardStorage = StorageOf<Scope, cuguest_guard>;

CUresult MoveGuard(cuguest_guard* guard, const Incarnation& to, Location where) noexcept {
  const GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->MoveTo(to, where) : code;
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_guard_move_to(cuguest_guard* guard, CUcontext context, const char* file, int line) {
  return c::MoveGuard(guard, c::Incarnation::Unknown(context), {file, line});
}

int cuguest_guard_move_to_ref(cuguest_guard* guard, const cuguest_ref* ref, const char* file,
                              int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::MoveGuard(guard, c::NamedBy(*ref), {file, line});
}

int cuguest_guard_reassert(cuguest_guard* guard) {
  const c::GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->Reassert() : code;
}
