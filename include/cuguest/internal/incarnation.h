// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. What a guard remembers of a context, what tells one incarnation from
// another, and the only way into one.

#ifndef CUGUEST_INTERNAL_INCARNATION_H_
#define CUGUEST_INTERNAL_INCARNATION_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/internal/stack_calls.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// One incarnation of a context, or a handle of which no more is known. An id of 0 is known:
// it is what a context of a driver below CUDA 12.0 is remembered by. Not initialised by itself,
// since a guard has room for many.
struct Incarnation {
  CUGUEST_HIDE static constexpr unsigned long long kUnknownId = ~0ULL;

  [[nodiscard]] CUGUEST_HIDE static constexpr Incarnation Unknown(CUcontext context) noexcept {
    return {context, kUnknownId};
  }
  [[nodiscard]] CUGUEST_HIDE static Incarnation Of(const ContextRef& ref) noexcept {
    return {ref.get(), ref.id()};
  }
  // Needs a known one.
  [[nodiscard]] CUGUEST_HIDE ContextRef Ref() const noexcept { return {context, id}; }
  // Names none, for the reason that `code` is.
  [[nodiscard]] CUGUEST_HIDE static ContextRef NoRef(CUresult code) noexcept {
    ContextRef ref;
    if (code != CUDA_SUCCESS) ref.result_ = code;
    return ref;
  }
  [[nodiscard]] CUGUEST_HIDE constexpr bool IsKnown() const noexcept { return id != kUnknownId; }

  // What `code` and `now`, the answer to a question for the handle's id, say of this incarnation:
  // CUDA_SUCCESS if it is alive, CUDA_ERROR_CONTEXT_IS_DESTROYED if it is not, also where the
  // handle has begun another; of an unknown one, whether the handle has any. Other errors of the
  // driver (a forked child, a callback) are passed on.
  //
  // Below CUDA 12.0 another incarnation at the same handle is not told from the old one.
  [[nodiscard]] CUGUEST_HIDE constexpr CUresult Check(CUresult code,
                                                      unsigned long long now) const noexcept {
    return code != CUDA_SUCCESS || !IsKnown() || now == id ? code : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }

  CUcontext context;
  unsigned long long id;
};

// Costs one driver call. The driver must be resolved.
CUGUEST_HIDE inline CUresult CheckIncarnation(const Incarnation& incarnation) noexcept {
  unsigned long long id = 0;
  const CUresult code = GetId(incarnation.context, &id);
  return incarnation.Check(code, id);
}

// Pushes it if it is alive. An unknown one is not checked: the guard of a raw handle promises
// four driver calls, and its caller promises that the context is alive.
CUGUEST_HIDE inline CUresult EnterIncarnation(const Incarnation& incarnation) noexcept {
  const CUresult code = incarnation.IsKnown() ? CheckIncarnation(incarnation) : CUDA_SUCCESS;
  return code == CUDA_SUCCESS ? Push(incarnation.context) : code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_INCARNATION_H_
