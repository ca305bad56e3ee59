// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/incarnation.h                                                tier: 2
// -----------------------------------------------------------------------------
//
// Not for embedders. What a guard remembers of a context.

#ifndef CUGUEST_INTERNAL_INCARNATION_H_
#define CUGUEST_INTERNAL_INCARNATION_H_

#include <cuda.h>

#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

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
  [[nodiscard]] CUGUEST_HIDE constexpr bool IsKnown() const noexcept { return id != kUnknownId; }

  CUcontext context;
  unsigned long long id;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_INCARNATION_H_
