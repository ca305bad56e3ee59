// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lives in a cuguest_guard.

#ifndef CUGUEST_LIB_CAPI_C_GUARD_H_
#define CUGUEST_LIB_CAPI_C_GUARD_H_

#include <cuda.h>

#include <utility>

#include "cuguest/c.h"
#include "cuguest/internal/scope.h"
#include "lib/capi/c_storage.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A scope, and what a source of its own has begun for it and ends: a plain guard's user links
// neither capture modes nor references.
struct Guard {
  using Ending = void (*)(Guard*, Reported);

  Guard() noexcept : scope(Scope::kNotSet) {}
  CUresult Leave(Reported end) noexcept {
    const CUresult code = scope.Leave(end);
    EndOnce(&end_reference, end);
    EndOnce(&end_mode, end);
    return code;
  }
  // A listener of what leaving reports may leave the guard, too.
  void EndOnce(Ending* ending, Reported end) noexcept {
    if (const Ending given = std::exchange(*ending, nullptr)) given(this, end);
  }

  Scope scope;
  Scope mode{Scope::kNotSet};  // while it has an end_mode
  Ending end_mode = nullptr;
  Ending end_reference = nullptr;
  CUdevice device = 0;  // whose primary context end_reference releases
};
using GuardStorage = StorageOf<Guard, cuguest_guard>;

inline bool IsMode(int mode) noexcept {
  return mode == CUGUEST_ELIDE || mode == CUGUEST_ALWAYS_PUSH;
}

// By `enter`, which enters guard->scope, or returns why it cannot; takes it back where it fails.
template <typename Enter>
CUresult BeginGuard(cuguest_guard* given, int mode, Enter enter) noexcept {
  const GuardStorage storage(given);
  CUresult code = IsMode(mode) ? storage.CanBegin() : CUDA_ERROR_INVALID_VALUE;
  if (code != CUDA_SUCCESS) return code;
  code = enter(storage.Begin());
  if (code != CUDA_SUCCESS) storage.End();
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CAPI_C_GUARD_H_
