// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scopes besides guards.

#include "lib/capi/c_scope.h"
#include "cuguest/c.h"
#include "cuguest/internal/scope.h"
#include "lib/capi/c_storage.h"

namespace c = cuguest::internal;

int cuguest_no_context_guard_enter(cuguest_no_context_guard* guard, const char* file, int line) {
  return c::BeginScope(guard, [=](c::Scope* scope) { scope->EnterExactly(nullptr, {file, line}); });
}

int cuguest_no_context_guard_leave(cuguest_no_context_guard* guard) { return c::LeaveScope(guard); }

void cuguest_no_context_guard_cleanup(cuguest_no_context_guard* guard) { c::CleanUpScope(guard); }

int cuguest_host_scope_enter(cuguest_host_scope* scope, const char* file, int line) {
  return c::BeginScope(scope, [=](c::Scope* object) { object->EnterHost(nullptr, {file, line}); });
}

int cuguest_host_scope_leave(cuguest_host_scope* scope) { return c::LeaveScope(scope); }

void cuguest_host_scope_cleanup(cuguest_host_scope* scope) { c::CleanUpScope(scope); }

int cuguest_capture_guard_enter(cuguest_capture_guard* guard, int mode, const char* file,
                                int line) {
  return c::BeginScope(guard, [=](c::Scope* scope) {
    scope->EnterCaptureMode(static_cast<CUstreamCaptureMode>(mode), {file, line});
  });
}

int cuguest_capture_guard_leave(cuguest_capture_guard* guard) { return c::LeaveScope(guard); }

void cuguest_capture_guard_cleanup(cuguest_capture_guard* guard) { c::CleanUpScope(guard); }
