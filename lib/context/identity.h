// SPDX-License-Identifier: Apache-2.0
//
// What tells one life of a context from another.

#ifndef CUGUEST_LIB_CONTEXT_IDENTITY_H_
#define CUGUEST_LIB_CONTEXT_IDENTITY_H_

#include "cuguest/driver.h"

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

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_IDENTITY_H_
