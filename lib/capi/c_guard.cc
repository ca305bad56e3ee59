// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/internal/scope.h"
#include "lib/capi/c_scope.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

static_assert(sizeof(cuguest_guard) == 128);

// `ours` is a handle or a ContextRef.
template <typename Context>
CUresult EnterGuard(cuguest_guard* guard, const Context& ours, int mode, Location where) noexcept {
  if (mode != CUGUEST_ELIDE && mode != CUGUEST_ALWAYS_PUSH) return CUDA_ERROR_INVALID_VALUE;
  return BeginScope(guard,
                    [&](Scope* scope) { scope->Enter(ours, mode == CUGUEST_ALWAYS_PUSH, where); });
}

using GuardStorage = StorageOf<Scope, cuguest_guard>;

CUresult MoveGuard(cuguest_guard* guard, const Incarnation& to, Location where) noexcept {
  const GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->MoveTo(to, where) : code;
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_guard_enter(cuguest_guard* guard, CUcontext context, int mode, const char* file,
                        int line) {
  return c::EnterGuard(guard, context, mode, {file, line});
}

int cuguest_guard_enter_ref(cuguest_guard* guard, const cuguest_ref* ref, int mode,
                            const char* file, int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::EnterGuard(guard, c::NamedBy(*ref).Ref(), mode, {file, line});
}

int cuguest_guard_leave(cuguest_guard* guard) { return c::LeaveScope(guard); }

void cuguest_guard_cleanup(cuguest_guard* guard) { c::CleanUpScope(guard); }

int cuguest_guard_move_to(cuguest_guard* guard, CUcontext context, const char* file, int line) {
  return c::MoveGuard(guard, c::Incarnation::Unknown(context), {file, line});
}

int cuguest_guard_move_to_ref(cuguest_guard* guard, const cuguest_ref* ref, const char* file,
                              int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::MoveGuard(guard, c::NamedBy(*ref), {file, line});
}

int cuguest_guard_ref(const cuguest_guard* guard, cuguest_ref* ref) {
  const c::StorageOf<const c::Scope, const cuguest_guard> storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? c::WriteRef(storage->Ref(), ref) : code;
}

int cuguest_guard_reassert(cuguest_guard* guard) {
  const c::GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->Reassert() : code;
}

int cuguest_push(CUcontext context) {
  return c::Scope::PushUnowned(c::Incarnation::Unknown(context));
}

int cuguest_push_ref(const cuguest_ref* ref) {
  return c::IsRef(ref) ? c::Scope::PushUnowned(c::NamedBy(*ref)) : CUDA_ERROR_INVALID_VALUE;
}

int cuguest_pop(void) { return c::Scope::PopUnowned(); }
