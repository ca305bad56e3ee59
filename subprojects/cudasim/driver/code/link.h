// SPDX-License-Identifier: Apache-2.0
//
// Links in progress.

#ifndef CUDASIM_DRIVER_CODE_LINK_H_
#define CUDASIM_DRIVER_CODE_LINK_H_

#include <cstddef>

namespace cudasim::driver {

// Made with cuLinkCreate and not destroyed; no context takes them along.
size_t CountLinkStates();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_LINK_H_
