// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a scope in a caller's storage begins and ends.

#ifndef CUGUEST_LIB_CAPI_C_SCOPE_H_
#define CUGUEST_LIB_CAPI_C_SCOPE_H_

#include "cuguest/internal/scope.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// By `enter`, one of the functions of Scope that enter; takes it back where that fails.
template <typename Given, typename Enter>
CUresult BeginScope(Given* given, Enter enter) noexcept {
  const StorageOf<Scope, Given> storage(given);
  CUresult code = storage.CanBegin();
  if (code != CUDA_SUCCESS) return code;
  Scope* const scope = storage.Begin(Scope::kNotSet);
  enter(scope);
  code = scope->JustEntered();
  if (code != CUDA_SUCCESS) storage.End();
  return code;
}
template <typename Given>
CUresult LeaveScope(Given* given, Reported end = Reported::kByResult) noexcept {
  return EndScope<Scope>(given, [=](Scope* scope) { return scope->LeaveByCall(end); });
}
template <typename Given>
void CleanUpScope(Given* given) noexcept {
  static_cast<void>(LeaveScope(given, Reported::kByIncident));
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CAPI_C_SCOPE_H_
