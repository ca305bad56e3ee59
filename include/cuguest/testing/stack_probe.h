// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: testing
/// \file
/// `StackProbe` records what a guest must leave alone: the calling thread's whole stack of
/// contexts, entry by entry, the flags of the current one, and the primary context of every device.
/// `UndisturbedScope` probes at its beginning and end, and fails a test when the two differ. It
/// works with Boost.Test, GoogleTest or no framework, on a real driver and on the simulation.
///
///   BOOST_AUTO_TEST_CASE(encode_is_a_good_guest) {
///     cuguest::testing::UndisturbedScope scope(
///         [](const std::string& difference) { BOOST_ERROR(difference); });
///     encoder.Encode(frame);
///   }
///
/// With GoogleTest the function is `ADD_FAILURE() << difference`; without one the default prints
/// and aborts. Both are those of <cudasim/stack_probe.h>, which has their contracts.

#ifndef CUGUEST_TESTING_STACK_PROBE_H_
#define CUGUEST_TESTING_STACK_PROBE_H_

#if __has_include("cudasim/stack_probe.h")
#include "cudasim/stack_probe.h"
#else  // in a checkout whose include/ is the only directory that the compiler was given
#include "../../../subprojects/cudasim/include/cudasim/stack_probe.h"
#endif

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace testing {

using StackProbe = ::cudasim::StackProbe;
using UndisturbedScope = ::cudasim::UndisturbedScope;

}  // namespace testing
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_TESTING_STACK_PROBE_H_
