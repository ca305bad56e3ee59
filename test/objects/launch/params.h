// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters in one piece; and a float4 that the host's compiler knows nothing of: cuguest learns
// its alignment.

#ifndef CUGUEST_TEST_OBJECTS_LAUNCH_PARAMS_H_
#define CUGUEST_TEST_OBJECTS_LAUNCH_PARAMS_H_

#include <cstddef>

#include "cuguest/objects/param_buffer.h"
#include "test/objects/memory/memories.h"

namespace cuguest_launches {

template <typename... Ts>
cuguest::ParamBuffer Packed(const Ts&... values) {
  cuguest::ParamBuffer params;
  const auto add = [&params](const auto& value) { SUCCEEDS(params.Add(value)); };
  (add(values), ...);
  return params;
}

struct Quad {
  float x, y, z, w;
};

}  // namespace cuguest_launches

template <>
struct cuguest::ParamTraits<cuguest_launches::Quad> {
  static constexpr std::size_t kAlignment = 16;
};

#endif  // CUGUEST_TEST_OBJECTS_LAUNCH_PARAMS_H_
