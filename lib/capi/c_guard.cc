// SPDX-License-Identifier: Apache-2.0

#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/thread_residency.h"
#include "lib/capi/c_storage.h"
#include "lib/context/thread_guards.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Without kExact, and so without room for what that remembers.
class GuardInStorage : public GuardBase {
 public:
  GuardInStorage(const Incarnation& ours, GuardMode mode, Location where) noexcept {
    EnterAs(ours, mode, where);
  }
  CUresult MoveTo(const Incarnation& to, Location where) noexcept { return Move(to, where); }
  // Whether there is nothing to leave any more.
  bool IsOver() const noexcept { return !IsInside() && state_ != State::kSuspended; }
};

namespace {

using GuardStorage = StorageOf<GuardInStorage, cuguest_guard>;
static_assert(sizeof(cuguest_guard) == 128);
using ResidencyStorage = StorageOf<Bound<ThreadResidency>, cuguest_residency>;

CUresult EnterInStorage(cuguest_guard* guard, const Incarnation& ours, int mode,
                        Location where) noexcept {
  const GuardStorage storage(guard);
  CUresult code = storage.CanBegin();
  if (code == CUDA_SUCCESS && mode != CUGUEST_ELIDE && mode != CUGUEST_ALWAYS_PUSH) {
    code = CUDA_ERROR_INVALID_VALUE;
  }
  if (code != CUDA_SUCCESS) return code;
  const GuardMode modes[] = {GuardMode::kElide, GuardMode::kAlwaysPush};
  code = storage.Begin(ours, modes[mode], where)->result();
  if (code != CUDA_SUCCESS) storage.End();
  return code;
}

CUresult MoveInStorage(cuguest_guard* guard, const Incarnation& to, Location where) noexcept {
  const GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->MoveTo(to, where) : code;
}

// A HostScope that reports it, and does nothing, where it is to be left on another thread.
class HostScopeInStorage : public HostScope {
 public:
  explicit HostScopeInStorage(Location location) noexcept
      : HostScope(location.file, location.line), where_(location) {}
  CUresult Leave() const noexcept {
    return thread_.IsThis() ? CUDA_SUCCESS : ReportElsewhere(nullptr, where_);
  }

 private:
  const BoundThread thread_;
  const Location where_;
};

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

int cuguest_guard_enter(cuguest_guard* guard, CUcontext context, int mode, const char* file,
                        int line) {
  return c::EnterInStorage(guard, c::Incarnation::Unknown(context), mode, {file, line});
}

int cuguest_guard_enter_ref(cuguest_guard* guard, const cuguest_ref* ref, int mode,
                            const char* file, int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::EnterInStorage(guard, c::NamedBy(*ref), mode, {file, line});
}

int cuguest_guard_move_to(cuguest_guard* guard, CUcontext context, const char* file, int line) {
  return c::MoveInStorage(guard, c::Incarnation::Unknown(context), {file, line});
}

int cuguest_guard_move_to_ref(cuguest_guard* guard, const cuguest_ref* ref, const char* file,
                              int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::MoveInStorage(guard, c::NamedBy(*ref), {file, line});
}

int cuguest_guard_reassert(cuguest_guard* guard) {
  const c::GuardStorage storage(guard);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->Reassert() : code;
}

int cuguest_guard_leave(cuguest_guard* guard) {
  const c::GuardStorage storage(guard);
  CUresult code = storage.HasBegun();
  if (code != CUDA_SUCCESS) return code;
  code = storage->Restore();
  if (storage->IsOver()) storage.End();
  return code;
}

void cuguest_guard_cleanup(cuguest_guard* guard) { static_cast<void>(cuguest_guard_leave(guard)); }

int cuguest_no_context_guard_enter(cuguest_no_context_guard* guard, const char* file, int line) {
  return c::BeginScope<cuguest::NoContextGuard>(guard, file, line);
}

int cuguest_no_context_guard_leave(cuguest_no_context_guard* guard) {
  return c::EndScope<cuguest::NoContextGuard>(
      guard, [](cuguest::NoContextGuard* object) { return object->Restore(); });
}

void cuguest_no_context_guard_cleanup(cuguest_no_context_guard* guard) {
  static_cast<void>(cuguest_no_context_guard_leave(guard));
}

int cuguest_host_scope_enter(cuguest_host_scope* scope, const char* file, int line) {
  return c::BeginScope<c::HostScopeInStorage>(scope, cuguest::Location{file, line});
}

int cuguest_host_scope_leave(cuguest_host_scope* scope) {
  return c::EndScope<c::HostScopeInStorage>(
      scope, [](c::HostScopeInStorage* object) { return object->Leave(); });
}

void cuguest_host_scope_cleanup(cuguest_host_scope* scope) {
  static_cast<void>(cuguest_host_scope_leave(scope));
}

int cuguest_capture_guard_enter(cuguest_capture_guard* guard, int mode, const char* file,
                                int line) {
  if (mode < CUGUEST_CAPTURE_GLOBAL || mode > CUGUEST_CAPTURE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return c::BeginScope<cuguest::CaptureModeGuard>(guard, static_cast<CUstreamCaptureMode>(mode),
                                                  file, line);
}

int cuguest_capture_guard_leave(cuguest_capture_guard* guard) {
  return c::EndScope<cuguest::CaptureModeGuard>(
      guard, [](cuguest::CaptureModeGuard* object) { return object->Restore(); });
}

void cuguest_capture_guard_cleanup(cuguest_capture_guard* guard) {
  static_cast<void>(cuguest_capture_guard_leave(guard));
}

int cuguest_residency_enter(cuguest_residency* residency, const cuguest_ref* ref, const char* file,
                            int line) {
  if (!c::IsRef(ref)) return CUDA_ERROR_INVALID_VALUE;
  return c::BeginScope<cuguest::ThreadResidency>(residency, c::NamedBy(*ref).Ref(), file, line);
}

int cuguest_residency_settle(cuguest_residency* residency) {
  const c::ResidencyStorage storage(residency);
  const CUresult code = storage.HasBegun();
  return code == CUDA_SUCCESS ? storage->object.Settle() : code;
}

int cuguest_residency_move_to(cuguest_residency* residency, const cuguest_ref* ref) {
  const c::ResidencyStorage storage(residency);
  const CUresult code = c::IsRef(ref) ? storage.HasBegun() : CUDA_ERROR_INVALID_VALUE;
  return code == CUDA_SUCCESS ? storage->object.MoveTo(c::NamedBy(*ref).Ref()) : code;
}

int cuguest_residency_leave(cuguest_residency* residency) {
  return c::EndScope<cuguest::ThreadResidency>(
      residency, [](cuguest::ThreadResidency* object) { return object->Leave(); });
}

void cuguest_residency_cleanup(cuguest_residency* residency) {
  static_cast<void>(cuguest_residency_leave(residency));
}
