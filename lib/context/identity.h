// SPDX-License-Identifier: Apache-2.0
//
// What tells one incarnation of a context from another, and the only way into one. Whatever
// remembers an incarnation and asks whether it goes on, or pushes it, does so here.

#ifndef CUGUEST_LIB_CONTEXT_IDENTITY_H_
#define CUGUEST_LIB_CONTEXT_IDENTITY_H_

#include "cuguest/driver.h"
#include "cuguest/internal/incarnation.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The id of `context`, or of the current one for nullptr; CUDA_ERROR_CONTEXT_IS_DESTROYED
// if its life is over. Below CUDA 12.0 the id is 0 and the answer comes from
// cuCtxGetApiVersion, which says CUDA_ERROR_INVALID_CONTEXT of a dead handle
// (test/sim/destroyed_facts_test.cc).
inline CUresult ReadId(const Driver& driver, CUcontext context, unsigned long long* id) noexcept {
  if (driver.CtxGetId != nullptr) return driver.CtxGetId(context, id);
  unsigned version = 0;
  *id = 0;
  const CUresult code = driver.CtxGetApiVersion(context, &version);
  return code == CUDA_ERROR_INVALID_CONTEXT && context != nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                  : code;
}

// CUDA_SUCCESS if the incarnation goes on, CUDA_ERROR_CONTEXT_IS_DESTROYED if it is over, also
// where the handle has begun another; of an unknown one, whether the handle has any. What the
// driver says otherwise (a forked child, a callback) is passed on.
//
// Below CUDA 12.0 another incarnation at the same handle is not told from the old one.
inline CUresult CheckIncarnation(const Driver& driver, const Incarnation& incarnation) noexcept {
  unsigned long long id = 0;
  const CUresult code = ReadId(driver, incarnation.context, &id);
  if (code != CUDA_SUCCESS || !incarnation.IsKnown() || id == incarnation.id) return code;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// Pushes it if it goes on. Of an unknown one nothing is asked: the guard of a raw handle
// promises three driver calls, and takes its caller's word.
inline CUresult EnterIncarnation(const Driver& driver, const Incarnation& incarnation) noexcept {
  const CUresult code =
      incarnation.IsKnown() ? CheckIncarnation(driver, incarnation) : CUDA_SUCCESS;
  return code == CUDA_SUCCESS ? driver.CtxPushCurrent(incarnation.context) : code;
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_IDENTITY_H_
