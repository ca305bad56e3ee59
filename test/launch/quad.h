// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A float4 that the host's compiler knows nothing of: cuguest learns its alignment.

#ifndef CUGUEST_TEST_LAUNCH_QUAD_H_
#define CUGUEST_TEST_LAUNCH_QUAD_H_

#include <cstddef>

#include "cuguest/param_layout.h"

namespace cuguest_launches {

struct Quad {
  float x, y, z, w;
};

}  // namespace cuguest_launches

template <>
struct cuguest::ParamTraits<cuguest_launches::Quad> {
  static constexpr std::size_t kAlignment = 16;
};

#endif  // CUGUEST_TEST_LAUNCH_QUAD_H_
