// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// testing/sim_library.h                                          tier: testing
// -----------------------------------------------------------------------------
/// \file
/// Forwards to <cudasim/sim_library.h>, the control of the simulated libraries, and names what
/// it has as cuguest 0.1 did. Include that header, and say `cudasim`: this one is
/// removed in 0.3.

#ifndef CUGUEST_TESTING_SIM_LIBRARY_H_
#define CUGUEST_TESTING_SIM_LIBRARY_H_

#if __has_include("cudasim/sim_library.h")
#include "cudasim/sim_library.h"
#else  // in a checkout whose include/ is the only directory that the compiler was given
#include "../../../subprojects/cudasim/include/cudasim/sim_library.h"
#endif

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {

using SimLibrary = ::cudasim::SimLibrary;

}  // namespace testing
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_TESTING_SIM_LIBRARY_H_
