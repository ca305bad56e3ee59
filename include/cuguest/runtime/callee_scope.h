// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// `CalleeScope` makes a context current for code that uses the runtime and is not known to behave
/// (cuFFT, PyTorch, a plugin): the caller's own entry survives even a cudaSetDevice. Reassert()
/// restores the context between its calls, the destructor the caller's stack and last error.
///
///   runtime::CalleeScope scope(context);
///   if (!scope.ok()) return ToStatus(scope);
///   cufftPlan1d(&plan, n, CUFFT_C2C, 1);
///   scope.Reassert();                        // our context again, and an incident if not
///   cufftExecC2C(plan, in, out, CUFFT_FORWARD);
///
/// It cannot restore the device that cudaGetDevice names while *no* context is current: setting
/// that creates a primary context, and it decides nothing (Note [What cudaGetDevice says]). Nor can
/// it undo what the callee did to contexts: a primary context that it created stays.

#ifndef CUGUEST_RUNTIME_CALLEE_SCOPE_H_
#define CUGUEST_RUNTIME_CALLEE_SCOPE_H_

#include <cuda.h>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/last_error_scope.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// A ContextGuard in mode kAlwaysPush and a LastErrorScope.
/// Stack:   +1 on construction, undone on destruction, whatever the callee left.
/// Count:   none.
/// Threads: bound; as ContextGuard, scopes end in any order. Of two that do not end in reverse
///          order, each may report an error that the other's callee left.
/// Errors:  as ContextGuard: test ok(), ToStatus(scope). What it finds changed is an incident with
///          this scope's file and line: of the stack as from a guard, kLastError if the callee
///          changed the last error and no Note() came after that. LastErrorScope::Leave() says
///          which error is taken back.
/// Cost:    5 driver calls, 4 with a raw handle; two cudaPeekAtLastError.
class [[nodiscard]] CalleeScope {
 public:
  /// As ContextGuard's; a ContextRef is checked.
  /// Requires: `context` is alive.
  [[nodiscard]] explicit CalleeScope(const ContextRef& context,
                                     Location where = Location::Here()) noexcept
      : errors_(where), guard_(context, GuardMode::kAlwaysPush, where) {}
  [[nodiscard]] explicit CalleeScope(CUcontext context, Location where = Location::Here()) noexcept
      : errors_(where), guard_(context, GuardMode::kAlwaysPush, where) {}

  [[nodiscard]] bool ok() const noexcept { return guard_.ok(); }
  [[nodiscard]] CUresult result() const noexcept { return guard_.result(); }
  [[nodiscard]] const char* doing() const noexcept { return guard_.doing(); }
  [[nodiscard]] const char* advice() const noexcept { return guard_.advice(); }

  /// For calls of the callee whose error is expected; see LastErrorScope::Note.
  cudaError_t Note(cudaError_t code, const char* call) noexcept { return errors_.Note(code, call); }

  /// As ContextGuard::Reassert.
  CUresult Reassert() noexcept { return guard_.Reassert(); }

  /// Ends the scope now, by ContextGuard::Leave and LastErrorScope::Leave.
  CUresult Leave() noexcept {
    const CUresult code = guard_.Leave();
    static_cast<void>(errors_.Leave());
    return code;
  }

 private:
  LastErrorScope errors_;  // ends after the guard
  ContextGuard guard_;
};

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_CALLEE_SCOPE_H_
