// SPDX-License-Identifier: Apache-2.0
//
// The primary contexts: one per device, counted, shared by the whole process.

#ifndef CUGUEST_LIB_SIM_PRIMARY_H_
#define CUGUEST_LIB_SIM_PRIMARY_H_

#include <cstddef>

namespace cuguest_sim {

// Retains without a release, over all devices.
size_t CountPrimaryReferences();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_PRIMARY_H_
