// SPDX-License-Identifier: Apache-2.0
//
// Links in progress.

#ifndef CUGUEST_LIB_SIM_LINK_H_
#define CUGUEST_LIB_SIM_LINK_H_

#include <cstddef>

namespace cuguest_sim {

// Made with cuLinkCreate and not destroyed; no context takes them along.
size_t CountLinkStates();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_LINK_H_
