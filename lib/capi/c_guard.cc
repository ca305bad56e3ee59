// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/capi/c_guard.h"
#include "cuguest/c.h"
#include "cuguest/internal/scope.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

static_assert(sizeof(cuguest_guard) == 192);

// `ours` is a handle or a ContextRef.
template <typename Context>
CUresult EnterGuard(cuguest_guard* given, const Context& ours, int mode, Location where) noexcept {
  return BeginGuard(given, mode, [&](Guard* guard) {
    guard->scope.Enter(ours, mode == CUGUEST_ALWAYS_PUSH, where);
    return guard->scope.JustEntered();
  });
}

[[gnu::noinline]] CUresult LeaveGuard(cuguest_guard* given, Reported end) noexcept {
  return EndScope<Guard>(given, [=](Guard* guard) { return guard->Leave(end); });
}

CUresult MoveGuard(cuguest_guard* guard, const Incarnation& to, Location where) noexcept {
  const GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->scope.MoveTo(to, where) : code;
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

int cuguest_guard_leave(cuguest_guard* guard) {
  return c::LeaveGuard(guard, c::Reported::kByResult);
}

void cuguest_guard_cleanup(cuguest_guard* guard) {
  static_cast<void>(c::LeaveGuard(guard, c::Reported::kByIncident));
}

int cuguest_guard_move_to(cuguest_guard* guard, CUcontext context, const char* file, int line) {
  return c::MoveGuard(guard, c::Incarnation::Unknown(context), {file, line});
}

int cuguest_guard_move_to_ref(cuguest_guard* guard, const cuguest_ref* ref, const char* file,
                              int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::MoveGuard(guard, c::NamedBy(*ref), {file, line});
}

int cuguest_guard_ref(const cuguest_guard* guard, cuguest_ref* ref) {
  const c::StorageOf<const c::Guard, const cuguest_guard> storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? c::WriteRef(storage->scope.Ref(), ref) : code;
}

int cuguest_guard_reassert(cuguest_guard* guard) {
  const c::GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->scope.Reassert() : code;
}

int cuguest_push(CUcontext context) {
  return c::Scope::PushUnowned(c::Incarnation::Unknown(context));
}

int cuguest_push_ref(const cuguest_ref* ref) {
  return c::IsRef(ref) ? c::Scope::PushUnowned(c::NamedBy(*ref)) : CUDA_ERROR_INVALID_VALUE;
}

int cuguest_pop(void) { return c::Scope::PopUnowned(); }
