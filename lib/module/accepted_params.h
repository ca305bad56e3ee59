// SPDX-License-Identifier: Apache-2.0
//
// What is remembered of a kernel's parameters, so that launches check them once.   tier: 3

#ifndef CUGUEST_LIB_MODULE_ACCEPTED_PARAMS_H_
#define CUGUEST_LIB_MODULE_ACCEPTED_PARAMS_H_

#include <atomic>
#include <cstdint>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The fingerprints of the layouts that were last found right, and the number of parameters.
// Each is only ever replaced by another that is right, so their order does not matter.
struct AcceptedParams {
  std::atomic<std::uint64_t> values{0};
  std::atomic<std::uint64_t> packed{0};
  std::atomic<std::int64_t> count{-1};
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_ACCEPTED_PARAMS_H_
