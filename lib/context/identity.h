// SPDX-License-Identifier: Apache-2.0
//
// cuguest/internal/incarnation.h for code that has a driver's table.

#ifndef CUGUEST_LIB_CONTEXT_IDENTITY_H_
#define CUGUEST_LIB_CONTEXT_IDENTITY_H_

#include "cuguest/driver.h"
#include "cuguest/internal/incarnation.h"
#include "lib/core/context_id.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

inline CUresult CheckIncarnation(const Driver& driver, const Incarnation& incarnation) noexcept {
  unsigned long long id = 0;
  const CUresult code = ReadId(driver, incarnation.context, &id);
  return incarnation.Judge(code, id);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_IDENTITY_H_
