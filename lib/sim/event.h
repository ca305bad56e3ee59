// SPDX-License-Identifier: Apache-2.0
//
// Events. Work is done when it is submitted, so a recorded event has happened.

#ifndef CUGUEST_LIB_SIM_EVENT_H_
#define CUGUEST_LIB_SIM_EVENT_H_

#include <cstddef>

namespace cuguest_sim {

size_t CountEvents();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_EVENT_H_
