// SPDX-License-Identifier: Apache-2.0
//
// The id of a context, from drivers that have ids and from those that have none.

#ifndef CUGUEST_LIB_CORE_CONTEXT_ID_H_
#define CUGUEST_LIB_CORE_CONTEXT_ID_H_

#include "cuguest/driver_table.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The id of `context`, or of the current one for nullptr; CUDA_ERROR_CONTEXT_IS_DESTROYED if it
// was destroyed. Below CUDA 12.0 the id is 0 and the answer comes from cuCtxGetApiVersion, which
// gives CUDA_ERROR_INVALID_CONTEXT for a destroyed handle (cudasim/test/destroyed_facts_test.cc).
inline CUresult ReadId(const DriverTable& driver, CUcontext context,
                       unsigned long long* id) noexcept {
  if (driver.CtxGetId != nullptr) return driver.CtxGetId(context, id);
  unsigned version = 0;
  *id = 0;
  const CUresult code = driver.CtxGetApiVersion(context, &version);
  return code == CUDA_ERROR_INVALID_CONTEXT && context != nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                  : code;
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CORE_CONTEXT_ID_H_
