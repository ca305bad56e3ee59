// SPDX-License-Identifier: Apache-2.0
//
// What a context can be told: flags, limits, cache configuration.

#ifndef CUDASIM_DRIVER_CONTEXT_SETTINGS_H_
#define CUDASIM_DRIVER_CONTEXT_SETTINGS_H_

#include "driver/context/context.h"

namespace cudasim::driver {

// The range of stream priorities is 0 to this.
inline constexpr int kGreatestPriority = -5;

// Whether cuCtxCreate and the primary context accept them.
bool AreContextFlags(unsigned flags);

// The values a new incarnation begins with.
void ResetSettings(Context* context);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_SETTINGS_H_
