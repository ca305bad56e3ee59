// SPDX-License-Identifier: Apache-2.0
//
// What a context can be told: flags, limits, cache configuration.

#ifndef CUGUEST_LIB_SIM_SETTINGS_H_
#define CUGUEST_LIB_SIM_SETTINGS_H_

#include "lib/sim/context.h"

namespace cuguest_sim {

// The range of stream priorities is 0 to this.
inline constexpr int kGreatestPriority = -5;

// Whether cuCtxCreate and the primary context accept them.
bool AreContextFlags(unsigned flags);

// The values a new life begins with.
void ResetSettings(Context* context);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_SETTINGS_H_
