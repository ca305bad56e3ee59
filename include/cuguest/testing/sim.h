// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// testing/sim.h                                                  tier: testing
// -----------------------------------------------------------------------------
/// \file
/// Forwards to <cudasim/sim.h>, the control of the simulated driver, and names what
/// it has as cuguest 0.1 did. Include that header, and say `cudasim`: this one is
/// removed in 0.3.

#ifndef CUGUEST_TESTING_SIM_H_
#define CUGUEST_TESTING_SIM_H_

#if __has_include("cudasim/sim.h")
#include "cudasim/sim.h"
#else  // in a checkout whose include/ is the only directory that the compiler was given
#include "../../../subprojects/cudasim/include/cudasim/sim.h"
#endif

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {

using Sim = ::cudasim::Sim;
using SimKernel = ::cudasim::SimKernel;
using SimLaunch = ::cudasim::SimLaunch;
using SimLive = ::cudasim::SimLive;

}  // namespace testing
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_TESTING_SIM_H_
